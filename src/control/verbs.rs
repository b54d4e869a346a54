//! The endpoints, once: their names, lanes, what they are for, and the schemas that are published with them.

use std::collections::BTreeMap;

use quartermaster_actors::service::{Endpoint, Lane};
use serde_json::Value;

use super::schema_of;
use super::wire::{
    ChangeRequest, ConfigReply, ErrorReply, HostChangeRequest, HostRequest, HostsRequest, NoRequest,
    PingReply, StatusReply,
};
use crate::operate::{ChangeReport, HostReport, HostsReport};

/// The service's name.
pub const SERVICE: &str = "quartermaster";

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct VerbRow {
    /// The endpoint's name.
    pub name: &'static str,
    /// Where its requests wait.
    pub lane: Lane,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// The schema of the request.
    pub request: fn() -> Value,
    /// The schema of the answer.
    pub reply: fn() -> Value,
}

const fn question(
    name: &'static str,
    about: &'static str,
    request: fn() -> Value,
    reply: fn() -> Value,
) -> VerbRow {
    VerbRow { name, lane: Lane::Question, about, request, reply }
}

const fn command(name: &'static str, about: &'static str, request: fn() -> Value) -> VerbRow {
    VerbRow { name, lane: Lane::Command, about, request, reply: schema_of::<ChangeReport> }
}

/// The table.
#[rustfmt::skip]
pub const VERBS: [VerbRow; 12] = [
    question("ping", "Says who is there.", schema_of::<NoRequest>, schema_of::<PingReply>),
    question("status", "Tells the run state, the link, the fleet in numbers and the actors.", schema_of::<NoRequest>, schema_of::<StatusReply>),
    command("pause", "No new host, no helper, no discovery; cycles end at their next safe point.", schema_of::<ChangeRequest>),
    command("resume", "Works again after a pause, and looks for hosts at once.", schema_of::<ChangeRequest>),
    command("flip", "Pauses who works, resumes who is paused.", schema_of::<ChangeRequest>),
    command("drain", "Takes nothing new, finishes what is in flight, and ends the process with exit code 0.", schema_of::<ChangeRequest>),
    command("discover", "Looks for hosts now.", schema_of::<ChangeRequest>),
    question("hosts", "Shows a page of hosts, filtered by state and by name.", schema_of::<HostsRequest>, schema_of::<HostsReport>),
    question("host", "Tells everything that happened to one host.", schema_of::<HostRequest>, schema_of::<HostReport>),
    command("retry", "Tries one host again now, whatever it waits for.", schema_of::<HostChangeRequest>),
    command("forget", "Forgets one host and its history.", schema_of::<HostChangeRequest>),
    question("config", "Shows the configuration in force, without its secrets.", schema_of::<NoRequest>, schema_of::<ConfigReply>),
];

/// What the service is told of its endpoints. They are published with their schemas and the subject of this instance alone.
pub fn endpoints(prefix: &str, instance: &str) -> Vec<Endpoint> {
    let endpoint = |row: &VerbRow| {
        let lane = match row.lane {
            Lane::Command => "command",
            Lane::Question => "question",
        };
        let metadata = [
            ("description", row.about.to_owned()),
            ("format", "application/json".to_owned()),
            ("kind", lane.to_owned()),
            ("instance_subject", format!("{prefix}.{}.{instance}", row.name)),
            ("request_schema", (row.request)().to_string()),
            ("response_schema", (row.reply)().to_string()),
            ("error_schema", schema_of::<ErrorReply>().to_string()),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
        Endpoint { name: row.name, lane: row.lane, metadata: BTreeMap::from(metadata) }
    };
    VERBS.iter().map(endpoint).collect()
}
