//! The operator as the one behind the pages.

use quartermaster_actors::fleet::{FleetOverview, HostQuery};
use quartermaster_proto::choria::Identity;

use crate::operate::{
    Change, ChangeReport, HealthView, HostReport, HostsReport, OperateError, Operator, ReadyView,
    StatusReport, Via,
};
use crate::web::{Answer, Desk, DeskError, HostSearch, Wish};

/// Failures shown at a glance.
const FAILURES: usize = 20;

impl From<OperateError> for DeskError {
    fn from(error: OperateError) -> Self {
        Self { status: error.status(), code: error.code().to_owned(), sentence: error.to_string() }
    }
}

impl Desk for Operator {
    fn health(&self) -> HealthView {
        Self::health(self)
    }

    fn ready(&self) -> ReadyView {
        Self::ready(self)
    }

    fn status(&self) -> StatusReport {
        Self::status(self)
    }

    fn overview(&self) -> Answer<'_, FleetOverview> {
        Box::pin(async { Ok(Self::overview(self, FAILURES).await?) })
    }

    fn hosts(&self, search: HostSearch) -> Answer<'_, HostsReport> {
        Box::pin(async move {
            let HostSearch { state, text, after, most } = search;
            let after = after.map(|name| Identity::parse(&name)).transpose();
            let after = after.map_err(|error| OperateError::BadInput {
                at: "/after".to_owned(),
                what: error.to_string(),
            })?;
            Ok(Self::hosts(self, HostQuery { state, text, after, most }).await?)
        })
    }

    fn host(&self, name: String) -> Answer<'_, HostReport> {
        Box::pin(async move { Ok(Self::host(self, &name).await?) })
    }

    fn change(&self, wish: Wish, who: String, why: String) -> Answer<'_, ChangeReport> {
        Box::pin(async move {
            let change = Change::new(&who, &why, Via::Web)?;
            let report = match wish {
                Wish::Pause => self.pause(&change).await?,
                Wish::Resume => self.resume(&change).await?,
                Wish::Discover => self.discover(&change).await?,
                Wish::Retry { host } => self.retry(&host, &change).await?,
            };
            Ok(report)
        })
    }
}
