//! What a process that holds secrets does first.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Keeps the process's memory out of core files, and away from other processes of the same account.
///
/// The limit is one byte and not zero: a kernel that hands core files to a program ignores every limit but this one, which it
/// takes as the wish to have none. A process that is not dumpable has no core file at all, whatever the limit and whoever takes
/// it, and nobody but root may look into its memory; the programs it starts are as usual again.
pub fn forbid_core_files() {
    let limit = Rlimit { current: Some(1), maximum: Some(1) };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        tracing::warn!(%error, "core files cannot be limited");
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "core files cannot be forbidden");
    }
}
