//! Control by message: what the NATS micro service `quartermaster` is asked and answers, and the verbs that ask it.
//!
//! `verbs` is the table of endpoints, `wire` their shapes, `fields` reads requests, `answer` carries them out on an operator,
//! `ask` asks instances and gathers what they answer, `show` is for people.

mod answer;
mod fields;
mod schema;
#[cfg(test)]
mod tests;
mod verbs;
mod wire;

pub use answer::{Desk, busy};
pub use schema::schema_of;
pub use verbs::{SERVICE, VERBS, VerbRow, endpoints};
pub use wire::{
    ChangeRequest, ConfigReply, ErrorBody, ErrorReply, HostChangeRequest, HostRequest, HostsRequest,
    NoRequest, PingReply,
};
