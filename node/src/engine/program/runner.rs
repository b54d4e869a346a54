//! Telling, by whatever this machine has.

use std::path::Path;

use futures::future::BoxFuture;

use super::{Commands, Program, systemctl, systemd};

/// How telling a program went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It was told.
    Done,
    /// There is nobody to tell, and why.
    Skipped(String),
    /// It could not be told, or did not take it, and why.
    Failed(String),
}

/// Tells programs. A trait, so that tests see what would be told.
pub trait Runner: Send + Sync + std::fmt::Debug {
    /// Tells one program and waits until it has taken it, within limits of its own.
    fn tell(&self, program: Program) -> BoxFuture<'static, Told>;
}

/// The programs of this machine: its service manager and its allowed commands.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The commands that may be run.
    pub commands: Commands,
    /// Units of the user's own service manager instead of the machine's.
    pub is_user: bool,
}

/// Where the machine's service manager shows that it runs.
const BOOTED: &str = "/run/systemd/system";

impl Machine {
    fn has_manager(&self) -> bool {
        self.is_user || Path::new(BOOTED).exists()
    }
}

impl Runner for Machine {
    fn tell(&self, program: Program) -> BoxFuture<'static, Told> {
        let me = self.clone();
        Box::pin(async move {
            match program {
                Program::Command(words) => me.commands.run(&words).await,
                Program::Restart { .. } | Program::Reload { .. } if !me.has_manager() => {
                    Told::Skipped("this machine does not run systemd".to_owned())
                }
                unit => match systemd::tell(&unit, me.is_user).await {
                    Ok(told) => told,
                    Err(error) => {
                        tracing::debug!(%error, "the service manager cannot be reached over D-Bus: using systemctl");
                        systemctl::tell(&unit, me.is_user).await
                    }
                },
            }
        })
    }
}
