//! The control service: on the daemon's own connection, or on one of its own where control runs in another account or on
//! another broker.

use std::collections::BTreeMap;
use std::sync::Arc;

use quartermaster_actors::link::{LinkHandle, LinkParts};
use quartermaster_actors::metrics::Fact;
use quartermaster_actors::service::{ServiceHandle, ServiceSettings};
use quartermaster_actors::supervise::{Owned, RestartPolicy, Ward};
use quartermaster_actors::vault::{Outside, VaultKeeper};

use super::settings;
use crate::config::Config;
use crate::control::{self, Desk};
use crate::operate::{Operator, moment};

/// The control service of one instance.
pub(super) struct Service {
    link: LinkHandle,
    desk: Desk,
    handle: Option<ServiceHandle>,
    wards: Vec<Box<dyn Ward>>,
}

impl Service {
    /// Everything it needs; it answers once [`Service::open`] was called.
    pub fn build(config: &Config, daemon: &LinkHandle) -> Self {
        let desk = Desk::new(config.identity.as_str());
        let mut wards: Vec<Box<dyn Ward>> = Vec::new();
        if !config.control.enabled {
            return Self { link: daemon.clone(), desk, handle: None, wards };
        }
        let link = match &config.control.login {
            None => daemon.clone(),
            Some(login) => {
                let (vault, keeper) =
                    VaultKeeper::owned(settings::control_vault(config, login), Outside::real());
                let parts = LinkParts::real(Arc::new(vault), Arc::new(crate::clock::now), Arc::new(log));
                let link = LinkHandle::new(settings::control_link(config, login), parts);
                wards.push(Box::new(keeper));
                wards.push(Box::new(Owned::new(
                    link.slot().clone(),
                    RestartPolicy::standard(),
                    link.factory(),
                )));
                link
            }
        };
        let handle = ServiceHandle::new(service(config, &link, &desk));
        let owned = Owned::new(handle.slot().clone(), RestartPolicy::standard(), handle.factory());
        wards.push(Box::new(owned));
        Self { link, desk, handle: Some(handle), wards }
    }

    /// The owners' records of its actors, to be started with the others.
    pub fn wards(&mut self) -> Vec<Box<dyn Ward>> {
        std::mem::take(&mut self.wards)
    }

    /// The connection that control uses.
    pub const fn link(&self) -> &LinkHandle {
        &self.link
    }

    /// From now on requests are carried out.
    pub fn open(self, operator: &Operator) -> Option<ServiceHandle> {
        self.desk.open(operator.clone());
        self.handle
    }
}

fn service(config: &Config, link: &LinkHandle, desk: &Desk) -> ServiceSettings {
    let (prefix, instance) = (config.control.subject_prefix.clone(), config.identity.to_string());
    let metadata = [("site", config.site.clone()), ("instance", instance.clone())];
    ServiceSettings {
        name: control::SERVICE,
        version: env!("CARGO_PKG_VERSION"),
        description: "Provisions Choria servers",
        metadata: BTreeMap::from(metadata.map(|(key, value)| (key.to_owned(), value))),
        endpoints: control::endpoints(&prefix, &instance),
        started: moment(crate::clock::now().seconds()),
        handler: desk.handler(),
        busy: control::busy(&instance),
        link: link.clone(),
        prefix,
        instance,
    }
}

/// The daemon's own link has its metrics; this one has a line in the log.
fn log(fact: Fact) {
    if let Fact::LinkChanged { connected, detail } = fact {
        if connected {
            tracing::info!(component = "control", "Control: {detail}");
        } else {
            tracing::warn!(component = "control", "Control: {detail}");
        }
    }
}
