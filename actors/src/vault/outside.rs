//! The wall clock and the system's randomness, as fields that tests replace.

use std::fmt;
use std::sync::Arc;

use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

type Clock = Arc<dyn Fn() -> WallClock + Send + Sync>;
type Random = Arc<dyn Fn(&mut [u8]) -> Result<(), NoRandomness> + Send + Sync>;

/// The system gave no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no randomness")]
pub struct NoRandomness;

/// What the vault takes from outside besides files.
#[derive(Clone)]
pub struct Outside {
    clock: Clock,
    random: Random,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside(..)")
    }
}

impl Outside {
    /// The system's clock and randomness.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(now),
            random: Arc::new(|bytes| aws_lc_rs::rand::fill(bytes).map_err(|_| NoRandomness)),
        }
    }

    /// Another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> WallClock + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Another source of randomness.
    #[must_use]
    pub fn with_random(
        mut self,
        random: impl Fn(&mut [u8]) -> Result<(), NoRandomness> + Send + Sync + 'static,
    ) -> Self {
        self.random = Arc::new(random);
        self
    }

    pub(super) fn now(&self) -> WallClock {
        (self.clock)()
    }

    pub(super) fn random<const N: usize>(&self) -> Result<Zeroizing<[u8; N]>, NoRandomness> {
        let mut bytes = Zeroizing::new([0; N]);
        (self.random)(bytes.as_mut_slice())?;
        Ok(bytes)
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "the vault is where tokens are dated, so the wall clock is read here"
)]
fn now() -> WallClock {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    WallClock::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
