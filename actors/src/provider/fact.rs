//! What is worth a log line and a number.

use std::sync::Arc;
use std::time::Duration;

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
