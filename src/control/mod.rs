//! Control by message: what the NATS micro service `quartermaster` is asked and answers, and the verbs that ask it.
//!
//! `verbs` is the table of endpoints, `wire` their shapes, `fields` reads requests, `answer` carries them out on an operator,
//! `ask` asks instances and gathers what they answer, `show` is for people.

mod answer;
mod args;
pub mod ask;
mod command;
mod fields;
mod schema;
pub mod show;
#[cfg(test)]
mod tests;
mod verbs;
mod watch;
mod wire;

pub use answer::{Desk, busy};
pub use args::{
    AccessArgs, ChangeArgs, DrainArgs, HostArgs, HostChangeArgs, HostsArgs, ReadArgs, SayArgs, Verb,
    WatchArgs,
};
pub use command::run;
pub use schema::schema_of;
pub use verbs::{SERVICE, VERBS, VerbRow, endpoints};
pub use wire::{
    ChangeRequest, ConfigReply, ErrorBody, ErrorReply, HostChangeRequest, HostRequest, HostsRequest,
    NoRequest, PingReply, StatusReply,
};
