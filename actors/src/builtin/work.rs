//! What a builtin does, and what it has to do it with.

use std::ffi::OsString;
use std::path::PathBuf;

use futures::future::LocalBoxFuture;
use quartermaster_proto::provider::{Execute, Executed, Members, ProviderError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::child::Orphans;

/// Lines that may wait to be said; what does not fit is dropped.
const LINES: usize = 256;

/// The part of a builtin that is its own. What it is given has been checked against its schema.
pub trait Work {
    /// Takes the configuration.
    fn configure(&mut self, config: &Members) -> Result<(), ProviderError>;

    /// Does an action. Once `stop` is cancelled it ends soon and says how much was done.
    fn execute(
        &self,
        call: Execute,
        stop: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Executed, ProviderError>>;
}

/// What a builtin has of its surroundings: what a provider's process would have been started with.
#[derive(Debug, Clone)]
pub struct Hands {
    /// The environment of what it starts.
    pub environment: Vec<(OsString, OsString)>,
    /// Where that starts; none is this process's own directory.
    pub directory: Option<PathBuf>,
    /// Who ends what that leaves behind.
    pub orphans: Orphans,
    /// Where its diagnostics go.
    pub voice: Voice,
}

/// The standard error of a builtin: lines for people.
#[derive(Debug, Clone)]
pub struct Voice(mpsc::Sender<String>);

impl Voice {
    /// A voice, and where what it says is heard.
    pub fn new() -> (Self, mpsc::Receiver<String>) {
        let (sender, lines) = mpsc::channel(LINES);
        (Self(sender), lines)
    }

    pub(super) fn say(&self, line: String) {
        let _ = self.0.try_send(line);
    }
}
