//! Randomness that a seed repeats: keys, delays and the draw of faults come from here, so two runs with one seed meet the
//! same fleet.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// A stream of draws for one server. The same seed and identity always give the same stream.
///
/// The keys drawn here are those of emulated servers: repeatable on purpose, worth nothing outside a test network.
#[derive(Debug, Clone)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The stream of `identity` in the fleet with `seed`.
    pub fn new(seed: u64, identity: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_be_bytes());
        hash.update(identity.as_bytes());
        Self { state: first_word(&hash.finalize()) }
    }

    /// The next 64 random bits (SplitMix64).
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word().checked_rem(bound).unwrap_or(0)
    }

    /// Whole seconds between zero and `bound - 1`.
    pub fn seconds_below(&mut self, bound: u64) -> Duration {
        Duration::from_secs(self.below(bound))
    }

    /// True with probability `share` (0 never, 1 always).
    pub fn chance(&mut self, share: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "53 bits of a draw are all a share needs")]
        let draw = (self.word() >> 11) as f64 / (1_u64 << 53) as f64;
        draw < share
    }

    /// 16 random bytes: an identifier.
    pub fn bytes16(&mut self) -> [u8; 16] {
        (u128::from(self.word()) << 64 | u128::from(self.word())).to_be_bytes()
    }

    /// 32 random bytes: a key.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.bytes16());
        hash.update(self.bytes16());
        hash.finalize().into()
    }
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_repeats_the_stream_and_another_does_not() {
        assert_eq!(Dice::new(1, "web1").bytes32(), Dice::new(1, "web1").bytes32());
        assert_ne!(Dice::new(1, "web1").bytes32(), Dice::new(2, "web1").bytes32());
        assert_ne!(Dice::new(1, "web1").bytes32(), Dice::new(1, "web2").bytes32());
    }

    #[test]
    fn a_share_is_met_over_many_draws() {
        let mut dice = Dice::new(7, "web1");
        let hits = (0..10_000).filter(|_| dice.chance(0.1)).count();
        assert!((850..1150).contains(&hits), "{hits} of 10000");
        assert!(!dice.chance(0.0));
        assert!(dice.chance(1.0));
    }

    #[test]
    fn below_stays_below() {
        let mut dice = Dice::new(7, "web1");
        assert!((0..1000).all(|_| dice.below(3) < 3));
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.seconds_below(1), Duration::ZERO);
    }
}
