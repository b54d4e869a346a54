//! What an operator may ask of one instance and tell it to do, whoever carries the words: the control service, the web page.
//! Every change has somebody who asked and a reason, is logged and audited here.
mod audit;
mod change;
mod error;
mod hosts;
mod operator;
mod redacted;
mod report;
#[cfg(test)]
mod tests;

pub use audit::{Audit, AuditPublisher, AuditRecord};
pub use change::{Change, ChangeReport, MAX_WHO, MAX_WHY, Via};
pub use error::OperateError;
pub use hosts::{HostReport, HostsReport};
pub use operator::{About, Operator, OperatorParts};
pub use redacted::redacted;
pub use report::{
    ActorView, ClaimsView, ClusterView, ElectionView, EndingsView, FleetView, HealthView, LeaderView,
    LinkView, PauseView, ReadyView, RunStateView, StatusReport, claims_view, election_view, fleet_view,
    moment, run_state_view,
};
