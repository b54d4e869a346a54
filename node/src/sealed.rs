//! Boxes in which the vault's values cross the bus: libsodium's `crypto_box_seal` (X25519, XSalsa20-Poly1305).

use std::fmt;

use crypto_box::{PublicKey, SecretKey, aead::OsRng};
use zeroize::Zeroizing;

/// A private key that opens boxes. It lives in memory alone, is wiped when dropped, and never shown.
pub struct BoxKey(SecretKey);

/// A box that does not open with this key. Nothing more is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the box does not open with this key")]
pub struct SealedError;

impl BoxKey {
    /// A new key from the system's randomness.
    pub fn generate() -> Self {
        Self(SecretKey::generate(&mut OsRng))
    }

    /// The key of these bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(SecretKey::from(*bytes))
    }

    /// The bytes, for who keeps the key sealed.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public half, which goes into requests.
    pub fn public(&self) -> [u8; 32] {
        *self.0.public_key().as_bytes()
    }

    /// Opens a box.
    ///
    /// # Errors
    /// [`SealedError`].
    pub fn open(&self, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealedError> {
        self.0.unseal(sealed).map(Zeroizing::new).map_err(|_| SealedError)
    }
}

impl fmt::Debug for BoxKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("BoxKey([redacted])")
    }
}

/// Seals a value to the holder of this public key; two boxes of one value are different.
///
/// # Errors
/// [`SealedError`] when the library refuses the key.
pub fn seal(public: &[u8; 32], value: &[u8]) -> Result<Vec<u8>, SealedError> {
    PublicKey::from(*public).seal(&mut OsRng, value).map_err(|_| SealedError)
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    /// Made by libsodium.
    const BOX: &str =
        "vQv5oSC9M+1Ev4semI3dpo5aXqlbmkynoT8ezJaXrkAlyQWpN4QRZ8u5e3HR5yRF+9A0O92pCGzqa3NE2h8YPw==";

    fn key() -> BoxKey {
        BoxKey::from_bytes(&std::array::from_fn(|at| u8::try_from(at + 1).unwrap()))
    }

    #[test]
    fn a_box_of_libsodium_opens() {
        assert_eq!(STANDARD.encode(key().public()), "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=");
        let value = key().open(&STANDARD.decode(BOX).unwrap()).unwrap();
        assert_eq!(value.as_slice(), b"pa$1${config:x}\n");
    }

    #[test]
    fn a_box_opens_with_its_own_key_alone_and_only_whole() {
        let sealed = seal(&key().public(), b"value").unwrap();
        assert_eq!(sealed.len(), 5 + quartermaster_proto::mesh::vault::BOX_OVERHEAD);
        assert_eq!(key().open(&sealed).unwrap().as_slice(), b"value");
        assert_ne!(seal(&key().public(), b"value").unwrap(), sealed);
        assert_eq!(BoxKey::generate().open(&sealed), Err(SealedError));
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(key().open(&other), Err(SealedError), "byte {at}");
            assert_eq!(key().open(&sealed[..at]), Err(SealedError), "cut at {at}");
        }
    }

    #[test]
    fn an_empty_value_is_a_value() {
        let sealed = seal(&key().public(), b"").unwrap();
        assert_eq!(key().open(&sealed).unwrap().as_slice(), b"");
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", key()), "BoxKey([redacted])");
    }
}
