//! How hosts are shown: what one may ask for, and the shapes of the answers, which everybody publishes as they are.

use quartermaster_proto::choria::identity::Identity;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::terms::Counts;
use crate::journal::HelperRecord;

/// Hosts on one page at most.
pub const MAX_PAGE: usize = 1000;

/// Which hosts to show, ordered by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostQuery {
    /// Only hosts in this state: `known`, `waiting`, `in_flight`, `held`, `cooling`, `gave_up` or `done`.
    pub state: Option<String>,
    /// Only hosts whose name holds this text.
    pub text: Option<String>,
    /// Only hosts whose name comes after this one: the `next` of the page before.
    pub after: Option<Identity>,
    /// At most so many; never more than [`MAX_PAGE`], and one at least.
    pub most: usize,
}

/// One page of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostPage {
    /// The hosts, ordered by name.
    pub hosts: Vec<HostView>,
    /// The last host of this page, when there are more: the `after` of the next query.
    #[schema(value_type = Option<String>)]
    pub next: Option<Identity>,
    /// How many hosts fit the query, on all pages.
    pub total: usize,
}

/// One host. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    /// The host.
    #[schema(value_type = String)]
    pub identity: Identity,
    /// `known`, `waiting`, `in_flight`, `held`, `cooling`, `gave_up` or `done`.
    pub state: String,
    /// How long it has been in this state.
    pub in_state_ms: u64,
    /// The attempt under way, or the next one; counts from 1.
    pub attempt: u32,
    /// Failed attempts in a row.
    pub failures: u32,
    /// The step under way, for a host in flight.
    pub step: Option<String>,
    /// How often this step was tried.
    pub step_tries: Option<u32>,
    /// How long this step has been under way.
    pub in_step_ms: Option<u64>,
    /// How long it was in the queue before its latest cycle, or has been so far.
    pub waited_ms: u64,
    /// How long until its next attempt, for a cooling host.
    pub retry_in_ms: Option<u64>,
    /// For a held host: how its cycle ended (`provisioned`, `updating`, `shut_down`, `already_serving`).
    pub held_after: Option<String>,
    /// For a provisioned host: whether it was seen as an ordinary server since.
    pub confirmed: Option<bool>,
    /// How long ago it was noticed first.
    pub first_seen_ms: u64,
    /// How long ago it was noticed last.
    pub last_seen_ms: u64,
    /// The last failure, until an attempt succeeds.
    pub failure: Option<FailureView>,
}

/// Why the last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureView {
    /// One of the fixed causes.
    pub cause: String,
    /// The whole reason.
    pub error: String,
    /// How long ago, milliseconds.
    pub ago_ms: u64,
    /// The helper run of that attempt, if it came to one.
    pub helper: Option<HelperRecord>,
}

/// What deserves a look now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetOverview {
    /// Hosts by state.
    pub counts: Counts,
    /// The host that has been in the queue for longest.
    pub oldest_waiting: Option<OldestWaiting>,
    /// The step that has been under way for longest.
    pub slowest_step: Option<SlowestStep>,
    /// The hosts that failed last, newest failure first.
    pub failures: Vec<HostView>,
}

/// The host that has been in the queue for longest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OldestWaiting {
    /// The host.
    #[schema(value_type = String)]
    pub identity: Identity,
    /// For how long, milliseconds.
    pub waited_ms: u64,
}

/// The step that has been under way for longest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlowestStep {
    /// The host.
    #[schema(value_type = String)]
    pub identity: Identity,
    /// The step's name.
    pub step: String,
    /// How often it was tried.
    pub tries: u32,
    /// For how long, milliseconds.
    pub took_ms: u64,
}

/// What became of the wish to forget a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Forgot {
    /// It is forgotten, with its history.
    Forgotten,
    /// Nobody knows it.
    Unknown,
    /// It is between configure and restart, and must not be left there.
    Committed,
}
