//! A mesh of a test's own: a real broker with the accounts of the table, the programs as processes, machines as folders.
#![allow(dead_code, reason = "each test uses a part of it")]

/// The name of a file into which a test's own command copies what it was told about.
pub const COPIED: &str = "copied-by-the-test";

/// Where each program tells its numbers: wherever there is a free port.
const ANY_PORT: &str = "127.0.0.1:0";

mod archive;
mod broker;
mod bus;
mod canary;
mod machine;
mod module;
mod program;
mod shown;
mod site;
mod tap;
mod wait;

pub use archive::{Entry, archive, gzip_of_zeros};
pub use broker::Broker;
pub use canary::Canary;
pub use machine::{Machine, still_there};
pub use module::Module;
pub use program::Program;
pub use site::{Options, Site};
pub use tap::Tap;
pub use wait::{eventually, eventually_async, never};
