//! What a process that holds secrets does first.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Keeps the process's memory out of core files.
///
/// The limit is one byte and not zero: a kernel that hands core files to a program ignores every limit but this one, which it
/// takes as the wish to have none.
pub fn forbid_core_files() {
    let limit = Rlimit { current: Some(1), maximum: Some(1) };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        tracing::warn!(%error, "core files cannot be forbidden");
    }
}
