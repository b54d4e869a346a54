//! Digests of what was filled, for reports.

use std::fmt;

use aws_lc_rs::hmac;
use quartermaster_proto::mesh::plan::Digest;
use zeroize::Zeroizing;

/// The key of this machine under which contents with secrets are digested, because a plain hash of a short password can be
/// guessed.
pub struct DigestKey(Zeroizing<[u8; 32]>);

impl DigestKey {
    /// The key of these bytes.
    pub const fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// The digest of a content: `sha256:…`, or `hmac-sha256:…` when a secret went into it.
    pub fn digest(&self, content: &[u8], sensitive: bool) -> String {
        if !sensitive {
            return Digest::of(content).to_string();
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.as_slice());
        format!("hmac-sha256:{}", hex::encode(hmac::sign(&key, content)))
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("DigestKey([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_with_a_secret_is_not_found_among_plain_hashes() {
        let key = DigestKey::new(Zeroizing::new([7; 32]));
        let digest = key.digest(b"1234", true);
        assert!(digest.starts_with("hmac-sha256:") && digest.len() == 12 + 64);
        for guess in 0..10_000 {
            assert!(!digest.ends_with(&Digest::of(format!("{guess:04}").as_bytes()).hex()));
        }
        assert_ne!(digest, key.digest(b"1235", true));
        assert_ne!(digest, DigestKey::new(Zeroizing::new([8; 32])).digest(b"1234", true));
        assert_eq!(key.digest(b"1234", false), Digest::of(b"1234").to_string());
    }
}
