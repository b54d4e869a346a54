//! The shapes of requests and of the answers that are nobody else's. All of them are JSON objects.

use quartermaster_actors::fleet::FleetOverview;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operate::{OperateError, StatusReport};

/// The request of endpoints that need to be told nothing: an empty message or `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoRequest {}

/// The request of every change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeRequest {
    /// Who wants it, one line: a person or a program.
    #[schema(min_length = 1, max_length = 200)]
    pub who: String,
    /// Why, one line.
    #[schema(min_length = 1, max_length = 1000)]
    pub why: String,
}

/// The request of a change to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostChangeRequest {
    /// The host's identity.
    pub name: String,
    /// Who wants it, one line: a person or a program.
    #[schema(min_length = 1, max_length = 200)]
    pub who: String,
    /// Why, one line.
    #[schema(min_length = 1, max_length = 1000)]
    pub why: String,
}

/// The request of `host`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostRequest {
    /// The host's identity.
    pub name: String,
}

/// The request of `hosts`; every part may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsRequest {
    /// Only hosts in this state: `known`, `waiting`, `in_flight`, `held`, `cooling`, `gave_up` or `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Only hosts whose name holds this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Only hosts after this one: the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Hosts on one page, 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub most: Option<u64>,
}

/// The answer of `ping`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PingReply {
    /// The instance.
    pub instance: String,
    /// Its site; may be empty.
    pub site: String,
    /// The version of its program.
    pub version: &'static str,
    /// `leading`, `standby`, `paused` or `draining`.
    pub role: &'static str,
}

/// The answer of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StatusReply {
    /// The run state, the link, the fleet in numbers and the actors.
    #[serde(flatten)]
    pub status: StatusReport,
    /// The oldest in the queue, the slowest step, the last failures; none when the keeper of the fleet has no time.
    pub overview: Option<FleetOverview>,
}

/// The answer of `config`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ConfigReply {
    /// The instance.
    pub instance: String,
    /// Every key with the value in force; of a secret, whether it is set.
    #[schema(value_type = Object)]
    pub config: serde_json::Value,
}

/// The answer when something was not done. The headers `Nats-Service-Error` and `Nats-Service-Error-Code` say it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorReply {
    /// The instance.
    pub instance: String,
    /// What is wrong.
    pub error: ErrorBody,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Stable, for machines: `bad_input`, `unknown_host`, `committed`, `not_now`, `busy`, `unavailable` or `too_large`.
    pub code: String,
    /// A number that goes with it, as in HTTP.
    pub status: u16,
    /// For people.
    pub message: String,
    /// Where in the request the fault is, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl ErrorBody {
    /// The error as it is sent.
    pub fn of(error: &OperateError) -> Self {
        Self {
            code: error.code().to_owned(),
            status: error.status(),
            message: quartermaster_actors::text::chain(error),
            at: error.at().map(str::to_owned),
        }
    }
}
