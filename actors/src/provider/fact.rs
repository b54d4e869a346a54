//! What is worth a log line and a number.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::Level;

use super::effect::{Note, ProcessId};
use super::stderr::Said;

/// Something of a provider. Every text is masked and harmless in a log.
#[derive(Debug, Clone)]
pub struct ProviderFact {
    /// The provider's local name.
    pub provider: String,
    /// What it is.
    pub what: Happening,
}

impl ProviderFact {
    /// Writes it to the log.
    pub fn log(&self) {
        let provider = self.provider.as_str();
        match &self.what {
            Happening::Said(process, said) => said_line(provider, *process, said),
            Happening::Noted(Note::Ready(process)) => {
                tracing::info!(provider, process, "Provider is ready");
            }
            Happening::Noted(Note::Odd(process, what)) => {
                tracing::warn!(provider, process, "Provider: {what}");
            }
            Happening::Noted(Note::Late(process)) => {
                tracing::warn!(provider, process, "Provider answered a call that was given up");
            }
            Happening::Noted(Note::Crashed(process, why, delay)) => {
                tracing::error!(provider, process, "Provider will be started again in {delay:?}: {why}");
            }
            Happening::Noted(Note::Replaced(process, why)) => {
                tracing::warn!(provider, process, "Provider is replaced: {why}");
            }
            Happening::Noted(Note::Ended(process)) => {
                tracing::info!(provider, process, "Provider has ended");
            }
            Happening::Noted(Note::Failed(_, error)) => {
                tracing::error!(provider, "Provider has failed: {}", error.error);
            }
            Happening::Called(call) => {
                let (action, code) = (call.action.as_str(), call.code);
                tracing::debug!(provider, action, code, "{} took {:?}", call.method, call.took);
            }
            Happening::Noted(Note::BadFrame(_)) | Happening::Moved(..) | Happening::Loaded(_) => {}
        }
    }
}

/// A line of a process. One about a host stands with the host's other lines.
fn said_line(provider: &str, process: ProcessId, said: &Said) {
    macro_rules! say {
        ($level:ident) => {
            match said.about.as_deref() {
                Some(about) => {
                    tracing::$level!(component = about, host = about, provider, process, "{}", said.text);
                }
                None => tracing::$level!(provider, process, "{}", said.text),
            }
        };
    }
    match said.level {
        Level::Trace => say!(trace),
        Level::Debug => say!(debug),
        Level::Info => say!(info),
        Level::Warn => say!(warn),
        Level::Error => say!(error),
    }
}

/// What can happen.
#[derive(Debug, Clone)]
pub enum Happening {
    /// A process said this on standard error.
    Said(ProcessId, Said),
    /// Something of a process, or of the provider as a whole.
    Noted(Note),
    /// A call ended.
    Called(CallEnded),
    /// Bytes passed: read, and written.
    Moved(u64, u64),
    /// How much it has to do changed.
    Loaded(Load),
}

/// What a provider has to do at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Processes that are ready for calls.
    pub ready: usize,
    /// Calls that wait for their turn.
    pub queued: usize,
    /// Calls that a process has in its hands.
    pub open: usize,
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnded {
    /// The method, as on the wire.
    pub method: &'static str,
    /// The action, if the schema has it; empty if not.
    pub action: String,
    /// `ok`, or the error's code; a provider's own codes are all `other`.
    pub code: &'static str,
    /// From the asking to the sending.
    pub waited: Duration,
    /// From the sending to the end.
    pub took: Duration,
}

/// Where facts go. Called on the runner's thread; must not block.
pub type ProviderSink = Arc<dyn Fn(ProviderFact) + Send + Sync>;
