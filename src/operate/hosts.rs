//! What is told of hosts.

use quartermaster_actors::fleet::{HostPage, HostView};
use quartermaster_actors::journal::AttemptRecord;
use serde::Serialize;
use utoipa::ToSchema;

/// One page of hosts of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HostsReport {
    /// The instance.
    pub instance: String,
    /// Its hosts.
    #[serde(flatten)]
    pub page: HostPage,
}

/// One host of one instance, with all that happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HostReport {
    /// The instance.
    pub instance: String,
    /// The host.
    pub host: String,
    /// Where it stands; none when it has left and only its history is known.
    pub now: Option<HostView>,
    /// The attempt under way.
    pub running: Option<AttemptRecord>,
    /// The attempts that are over, oldest first.
    pub history: Vec<AttemptRecord>,
}
