//! Who leads, as far as it can be heard: every renewal of the lead passes through the account in which all members are.
//! Pure: time arrives as an argument.

use std::time::Duration;

use tokio::time::Instant;

/// A leader that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLeader {
    /// Its identity, as it writes it.
    pub name: String,
    /// Whether that is this instance.
    pub own: bool,
    /// Since when it is known to lead; it may have led before.
    pub since: Instant,
    /// Its last sign of life.
    pub heard: Instant,
    /// How long after that it may still lead: the life of a value.
    pub lives: Duration,
}

impl KnownLeader {
    /// True while it may still lead.
    pub fn is_current(&self, now: Instant) -> bool {
        now < self.heard + self.lives
    }

    /// What is known after a sign of life from `name`.
    #[must_use]
    pub(super) fn heard(known: Option<&Self>, name: &str, own: bool, lives: Duration, now: Instant) -> Self {
        let since =
            known.filter(|known| known.name == name && known.is_current(now)).map(|known| known.since);
        Self { name: name.to_owned(), own, since: since.unwrap_or(now), heard: now, lives }
    }
}
