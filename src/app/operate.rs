//! What an operator is given, and where changes are recorded.

use std::sync::Arc;

use quartermaster_actors::control::ControlHandle;
use quartermaster_actors::discovery::{Discoverer, LookAgain};
use quartermaster_actors::fleet::FleetHandle;
use quartermaster_actors::link::LinkHandle;
use quartermaster_actors::supervise::{OverseerHandle, Slot};

use super::cluster::Cluster;
use crate::config::Config;
use crate::operate::{About, Audit, AuditPublisher, Operator, OperatorParts, redacted};

/// The operator of this instance. Changes are recorded in `state_dir` and published by `publish`.
pub(super) fn operator(
    config: &Config,
    control: &ControlHandle,
    fleet: &FleetHandle,
    link: &LinkHandle,
    cluster: &Cluster,
    discovery: &Slot<Discoverer>,
    overseer: &OverseerHandle,
) -> Operator {
    let (looked, discovery, cluster) = (link.clone(), discovery.clone(), cluster.clone());
    Operator::new(OperatorParts {
        about: About {
            instance: config.identity.to_string(),
            site: config.site.clone(),
            cluster: config.cluster.as_str(),
        },
        config: redacted(config),
        control: control.clone(),
        fleet: fleet.clone(),
        look: Arc::new(move || discovery.try_send(LookAgain("an operator asked"))),
        link: Arc::new(move || looked.snapshot()),
        cluster: Arc::new(move || cluster.view()),
        overseer: overseer.clone(),
        audit: Audit::new(config.state_dir.as_deref(), publisher(config, link)),
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
