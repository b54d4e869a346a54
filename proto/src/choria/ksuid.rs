//! Identifiers that sort by time: request ids of protocol 2 and `jti` of tokens (choria.md 6.6).

use std::{fmt, str::FromStr};

use svix_ksuid::{KSUID_EPOCH, KsuidLike as _};

/// 20 bytes: seconds since 2014-05-13 and 16 random bytes, written as 27 base62 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ksuid(svix_ksuid::Ksuid);

/// The text is not a KSUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a KSUID of 27 base62 characters")]
pub struct KsuidError;

impl Ksuid {
    /// The identifier of this Unix second and this randomness. Seconds outside the years 2014 to 2150 are moved to the
    /// nearest that fits.
    pub fn new(seconds: i64, random: [u8; 16]) -> Self {
        let since = seconds.saturating_sub(KSUID_EPOCH).clamp(0, i64::from(u32::MAX));
        Self(svix_ksuid::Ksuid::new_raw(u32::try_from(since).unwrap_or(u32::MAX), Some(&random)))
    }

    /// The Unix second it was made in.
    pub fn seconds(&self) -> i64 {
        i64::from(self.0.timestamp_raw()) + KSUID_EPOCH
    }
}

impl fmt::Display for Ksuid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.to_base62())
    }
}

impl FromStr for Ksuid {
    type Err = KsuidError;

    fn from_str(text: &str) -> Result<Self, KsuidError> {
        if text.len() != 27 || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(KsuidError);
        }
        let read = svix_ksuid::Ksuid::from_base62(text).map_err(|_| KsuidError)?;
        // The library drops what exceeds 20 bytes, which would give one identifier two spellings.
        if read.to_base62() == text { Ok(Self(read)) } else { Err(KsuidError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_identifier_comes_apart_and_together() {
        let random = <[u8; 16]>::try_from(hex::decode("46ab47802b6586f0956d1f06e9cec763").unwrap()).unwrap();
        assert_eq!(Ksuid::new(1_795_976_612, random).to_string(), "3MnBmmqHGsaE9nEMAk7bYC1BGSZ");
        let read: Ksuid = "3MnBmmqHGsaE9nEMAk7bYC1BGSZ".parse().unwrap();
        assert_eq!(read.seconds(), 1_795_976_612);
        assert_eq!(read, Ksuid::new(1_795_976_612, random));
    }

    #[test]
    fn the_ends_of_the_range_are_written_with_27_characters() {
        let first = Ksuid::new(i64::MIN, [0; 16]);
        assert_eq!(first.to_string(), "0".repeat(27));
        assert_eq!(first.seconds(), 1_400_000_000);
        let last = Ksuid::new(i64::MAX, [255; 16]);
        assert_eq!(last.to_string(), "aWgEPTl1tmebfsQzFP4bxwgy80V");
        assert_eq!(last.to_string().parse(), Ok(last));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "3MnBmmqHGsaE9nEMAk7bYC1BGS",
            "3MnBmmqHGsaE9nEMAk7bYC1BGSZ0",
            "3MnBmmqHGsaE9nEMAk7bYC1BGS-",
            "aWgEPTl1tmebfsQzFP4bxwgy80W",
            "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
            "3MnBmmqHGsaE9nEMAk7bYC1BGé",
        ] {
            assert_eq!(text.parse::<Ksuid>(), Err(KsuidError), "{text}");
        }
    }
}
