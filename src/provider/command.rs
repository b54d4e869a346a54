//! The verbs: from arguments to exit code.

use clap::Subcommand;

use super::{builtin, check, confined, lock, replay, schema, wrap};
use crate::cli::out::Out;
use crate::exit::Exit;

/// `quartermaster provider …`.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Try whether a program is a good provider
    Check(check::Args),
    /// Show what a provider declares
    Schema(schema::Args),
    /// Serve an older helper, which is a process for each call, as a provider
    Wrap(wrap::Args),
    /// Serve a builtin provider as a process of its own, for other hosts and for tests
    Builtin(builtin::Args),
    /// Answer as a recorded provider did
    Replay(replay::Args),
    /// Write down the digests of providers, or compare them with those written down
    Lock(lock::Args),
    /// Give up rights, then become another program
    #[command(hide = true)]
    Confined(confined::Args),
}

/// Does what was said.
pub fn run(command: &ProviderCommand, out: &mut Out) -> Exit {
    if let ProviderCommand::Confined(args) = command {
        // While there is one thread only.
        return confined::run(args);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("cannot start: {error}\n"));
            return Exit::Failure;
        }
    };
    match command {
        ProviderCommand::Check(args) => runtime.block_on(check::run(args, out)),
        ProviderCommand::Schema(args) => runtime.block_on(schema::run(args, out)),
        ProviderCommand::Wrap(args) => {
            let local = tokio::task::LocalSet::new();
            let exit = local.block_on(&runtime, wrap::run(args));
            // Its reader of standard input waits in a thread that nothing wakes.
            runtime.shutdown_background();
            exit
        }
        ProviderCommand::Builtin(args) => {
            let local = tokio::task::LocalSet::new();
            let exit = local.block_on(&runtime, builtin::run(args, out));
            runtime.shutdown_background();
            exit
        }
        ProviderCommand::Confined(args) => confined::run(args),
        ProviderCommand::Replay(args) => replay::run(args),
        ProviderCommand::Lock(args) => runtime.block_on(lock::run(args, out)),
    }
}

/// Standard error may have no reader any more; that changes no exit code.
pub(super) fn say(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(text.as_bytes());
}
