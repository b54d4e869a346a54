//! What must not be read in any log, trace or error: the secrets a provider was given (provider.md F19).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quartermaster_proto::provider::{Mask, Value, excerpt};

/// The secrets of so many calls are remembered: what a provider says of a call may come long after it.
const REMEMBERED: usize = 256;

/// The secrets of one provider. Clones share them.
#[derive(Clone, Default)]
pub struct Masks {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    config: Mask,
    calls: VecDeque<Mask>,
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masks").finish_non_exhaustive()
    }
}

impl Masks {
    /// Covers these values for good.
    pub fn cover_config<'a>(&self, values: impl IntoIterator<Item = &'a Value>) {
        self.lock().config = Mask::new(values);
    }

    /// Covers these values of one call, until many more calls have been made.
    pub fn cover_call<'a>(&self, values: impl IntoIterator<Item = &'a Value>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        let mask = Mask::new(values);
        let mut state = self.lock();
        if state.calls.len() == REMEMBERED {
            state.calls.pop_front();
        }
        state.calls.push_back(mask);
    }

    /// The text with every secret covered.
    pub fn text(&self, text: &str) -> String {
        let state = self.lock();
        state.calls.iter().fold(state.config.text(text), |text, mask| mask.text(&text))
    }

    /// The beginning of a line that is no frame, for an error's detail.
    pub fn excerpt(&self, line: &[u8]) -> String {
        let text = self.text(&String::from_utf8_lossy(line));
        excerpt(text.as_bytes(), &Mask::default())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change leaves the state right, so a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
