//! What an operator is given, and where changes are recorded.

use std::sync::Arc;

use quartermaster_actors::control::ControlHandle;
use quartermaster_actors::discovery::{Discoverer, LookAgain};
use quartermaster_actors::fleet::FleetHandle;
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::LinkHandle;
use quartermaster_actors::supervise::{OverseerHandle, Slot};

use super::cluster::Cluster;
use crate::config::Config;
use crate::operate::{About, Audit, AuditPublisher, Operator, OperatorParts, redacted};

/// What an operator is made of.
pub(super) struct Means<'a> {
    pub control: &'a ControlHandle,
    pub fleet: &'a FleetHandle,
    pub journal: &'a JournalHandle,
    pub link: &'a LinkHandle,
    pub control_link: &'a LinkHandle,
    pub cluster: &'a Cluster,
    pub discovery: &'a Slot<Discoverer>,
    pub overseer: &'a OverseerHandle,
}

/// The operator of this instance. Changes are recorded in `state_dir` and on the audit's subject.
pub(super) fn operator(config: &Config, means: &Means<'_>) -> Operator {
    let (link, cluster) = (means.link.clone(), means.cluster.clone());
    let discovery = means.discovery.clone();
    Operator::new(OperatorParts {
        about: About {
            instance: config.identity.to_string(),
            site: config.site.clone(),
            cluster: config.cluster.as_str(),
        },
        config: redacted(config),
        control: means.control.clone(),
        fleet: means.fleet.clone(),
        journal: means.journal.clone(),
        look: Arc::new(move || discovery.try_send(LookAgain("an operator asked"))),
        link: Arc::new(move || link.snapshot()),
        cluster: Arc::new(move || cluster.view()),
        overseer: means.overseer.clone(),
        audit: Audit::new(config.state_dir.as_deref(), publisher(config, means.control_link)),
        started: std::time::Instant::now(),
    })
}

/// Publishes on `<prefix>.audit`.
fn publisher(config: &Config, link: &LinkHandle) -> Option<AuditPublisher> {
    if !config.control.enabled {
        return None;
    }
    let (link, subject) = (link.clone(), format!("{}.audit", config.control.subject_prefix));
    Some(Arc::new(move |record| {
        let (link, subject) = (link.clone(), subject.clone());
        Box::pin(async move { link.publish(subject, record).await.map_err(|error| error.to_string()) })
    }))
}
