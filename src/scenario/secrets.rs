//! What must not be read in any record, log line, trace or message.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quartermaster_proto::provider::{Mask, Value};

/// The secrets of a run. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets {
    mask: Arc<Mutex<Mask>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Covers everything in these values from now on.
    pub fn cover<'a>(&self, values: impl IntoIterator<Item = &'a Value>) {
        self.lock().cover(values);
    }

    /// The text with every secret covered.
    pub fn text(&self, text: &str) -> String {
        self.lock().text(text)
    }

    /// The value with every secret in it covered.
    pub fn value(&self, value: &Value) -> Value {
        self.lock().value(value)
    }

    fn lock(&self) -> MutexGuard<'_, Mask> {
        // Each change leaves the mask right, so a panic elsewhere spoils nothing.
        self.mask.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
