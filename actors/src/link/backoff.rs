//! How long to wait before the next round of connecting (choria.md 12.4), as plain arithmetic.

use std::time::Duration;

/// The waits between rounds of reconnecting, in milliseconds: dense at first, then growing to twenty seconds. The last
/// one repeats for ever.
pub const TWENTY_SEC_MS: [u64; 44] = [
    500, 750, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000, 5_500, 5_750, 6_000, 6_500,
    7_000, 7_500, 8_000, 8_500, 9_000, 9_500, 10_000, 10_500, 10_750, 11_000, 11_500, 12_000, 12_500, 13_000,
    13_500, 14_000, 14_500, 15_000, 15_500, 15_750, 16_000, 16_500, 17_000, 17_500, 18_000, 18_500, 19_000,
    19_500, 20_000,
];

/// The wait before round `round` (0 is the first wait), moved by up to half of itself either way.
///
/// `random` is uniform over all of `u32`: 0 gives half the table's value, `u32::MAX` one and a half times it.
pub fn twenty_sec(round: usize, random: u32) -> Duration {
    let index = round.min(TWENTY_SEC_MS.len() - 1);
    let base = TWENTY_SEC_MS.get(index).copied().unwrap_or(20_000);
    let moved = base / 2 + base.saturating_mul(u64::from(random)) / u64::from(u32::MAX);
    Duration::from_millis(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_grows_from_half_a_second_to_twenty() {
        assert_eq!(TWENTY_SEC_MS.first(), Some(&500));
        assert_eq!(TWENTY_SEC_MS.last(), Some(&20_000));
        assert!(TWENTY_SEC_MS.is_sorted());
    }

    #[test]
    fn the_middle_of_the_jitter_is_the_table() {
        assert_eq!(twenty_sec(4, u32::MAX / 2).as_millis(), 1_999);
        assert_eq!(twenty_sec(0, 0).as_millis(), 250);
        assert_eq!(twenty_sec(9_999, u32::MAX).as_millis(), 30_000);
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_half_and_one_and_a_half_times_the_table(round in 0_usize..100, random: u32) {
            let base = TWENTY_SEC_MS[round.min(43)];
            let wait = u64::try_from(twenty_sec(round, random).as_millis()).unwrap();
            prop_assert!((base / 2..=base * 3 / 2).contains(&wait), "{wait} for {base}");
        }
    }
}
