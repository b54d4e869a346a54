//! When a call that did nothing is made again, and after what delay (provider.md D17).

use std::time::Duration;

use quartermaster_proto::provider::ErrorCode;

/// How the tries of a call follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The longest delay after the first try; it doubles with each.
    pub base: Duration,
    /// The longest delay at all.
    pub max: Duration,
    /// The codes after which a call is made again; none is those that say that nothing was done and that it may work later. Whoever
    /// names others vouches for it that nothing was done, unless the error says otherwise.
    pub codes: Option<Vec<ErrorCode>>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_secs(30), codes: None }
    }
}

impl Retry {
    /// The delay after so many tries, unless the provider names one: any part of the longest, so that many do not come back at once.
    pub fn delay(&self, made: u32, luck: f64) -> Duration {
        let doubled = self.base.saturating_mul(2u32.saturating_pow(made.saturating_sub(1)));
        doubled.min(self.max).mul_f64(luck.clamp(0.0, 1.0))
    }

    /// Whether an error with this code lets the call be made again.
    pub fn covers(&self, code: &ErrorCode) -> bool {
        self.codes.as_ref().map_or_else(|| code.may_retry(), |codes| codes.contains(code))
    }

    /// Whether this code was named, so that it alone says that nothing was done.
    pub fn vouches_for(&self, code: &ErrorCode) -> bool {
        self.codes.as_ref().is_some_and(|codes| codes.contains(code))
    }
}
