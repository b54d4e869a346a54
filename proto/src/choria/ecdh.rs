//! X25519 key exchange for private keys sent to servers (choria.md 9.1).

use std::fmt;

use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::{Zeroize as _, Zeroizing};

/// Why no shared secret came about.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EcdhError {
    /// The peer's public key is not 64 hexadecimal digits.
    #[error("ecdh_public is not 64 hexadecimal digits ({found} characters)")]
    PublicKey {
        /// Characters found.
        found: usize,
    },
    /// The peer's public key is of small order: the secret would be all zero.
    #[error("ecdh_public yields an all-zero shared secret")]
    Weak,
}

/// One X25519 key pair; the private half is wiped when dropped and never shown.
pub struct KeyPair {
    secret: StaticSecret,
    public: PublicKey,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({}, [redacted])", self.public_hex())
    }
}

impl KeyPair {
    /// The pair of 32 random bytes (clamped inside the function); the argument is wiped.
    pub fn generate(mut random: [u8; 32]) -> Self {
        let secret = StaticSecret::from(random);
        random.zeroize();
        let public = PublicKey::from(&secret);
        Self { secret, public }
    }

    /// The public half as 64 lower-case hexadecimal digits, the form that travels.
    pub fn public_hex(&self) -> String {
        hex::encode(self.public.as_bytes())
    }

    /// The 32 bytes both sides share; they are the password of the PEM encryption as they are.
    pub fn shared_secret(&self, peer_public_hex: &str) -> Result<Zeroizing<[u8; 32]>, EcdhError> {
        let mut peer = [0_u8; 32];
        hex::decode_to_slice(peer_public_hex, &mut peer)
            .map_err(|_| EcdhError::PublicKey { found: peer_public_hex.chars().count() })?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer));
        if !shared.was_contributory() {
            return Err(EcdhError::Weak);
        }
        Ok(Zeroizing::new(shared.to_bytes()))
    }
}
