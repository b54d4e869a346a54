//! The seal on what `configure` sends: it holds private keys and secrets of the site, and must lie on the disk for as long
//! as its reply may be lost.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use zeroize::Zeroizing;

/// Bytes of the key.
pub(super) const KEY_BYTES: usize = 32;

/// The key; it never leaves this file but at its making.
pub struct Seal(RandomizedNonceKey);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(..)")
    }
}

impl Seal {
    /// A seal with this key; none when it has the wrong length.
    pub fn new(key: &[u8]) -> Option<Self> {
        RandomizedNonceKey::new(&AES_256_GCM, key).ok().map(Self)
    }

    /// A new key.
    pub fn make_key() -> Option<Zeroizing<Vec<u8>>> {
        let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
        aws_lc_rs::rand::fill(&mut key).ok()?;
        Some(key)
    }

    /// Seals `secret` for this host: the nonce, then the sealed bytes.
    pub fn close(&self, host: &str, secret: &str) -> Option<Vec<u8>> {
        let mut bytes = secret.as_bytes().to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(host.as_bytes()), &mut bytes).ok()?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut bytes);
        Some(sealed)
    }

    /// Opens what was sealed for this host; none when it was not, or not with this key.
    pub fn open(&self, host: &str, sealed: &[u8]) -> Option<Zeroizing<String>> {
        let (nonce, bytes) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = Zeroizing::new(bytes.to_vec());
        let secret = self.0.open_in_place(nonce, Aad::from(host.as_bytes()), &mut bytes).ok()?;
        std::str::from_utf8(secret).ok().map(|secret| Zeroizing::new(secret.to_owned()))
    }
}
