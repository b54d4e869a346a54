//! Signing keys and signatures: what a request, a login and a server's key proof are signed with (choria.md 1.2, 3.3, 6.6).

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};
use ed25519_dalek::{Signer as _, VerifyingKey};
use zeroize::Zeroizing;

use super::pem::{self, PemError};

/// The longest key file that is read, in bytes.
pub const MAX_KEY_TEXT: usize = 64 * 1024;

/// Why a key could not be used or a signature does not hold. No message carries key material.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SignError {
    /// The text is neither a hexadecimal seed nor a PEM private key.
    #[error("failed to read a signing key: neither a seed of 64 hexadecimal digits nor a PEM private key")]
    UnknownKey,
    /// The text is too long to be a key.
    #[error("failed to read a signing key: {bytes} bytes are more than a key can have")]
    TooLong {
        /// Length of the text, bytes.
        bytes: usize,
    },
    /// The PEM around an RSA key is broken.
    #[error("failed to read a signing key")]
    Pem(#[source] PemError),
    /// The PEM holds no RSA key of at least 2048 bits.
    #[error("failed to read a signing key: the PEM block holds no RSA private key of 2048 to 8192 bits")]
    NotRsa,
    /// The library refused to sign.
    #[error("failed to sign")]
    Refused,
    /// A hexadecimal value has the wrong length or other characters.
    #[error("{what} is not {digits} hexadecimal digits ({found} characters)")]
    Hex {
        /// Which value.
        what: &'static str,
        /// How many digits it takes.
        digits: usize,
        /// How many characters were found.
        found: usize,
    },
    /// The public key is no point of the curve, or a weak one under which anything verifies.
    #[error("public key is no usable Ed25519 key")]
    WeakKey,
    /// The signature does not verify.
    #[error("signature does not verify")]
    Mismatch,
}

/// A private key that signs: an Ed25519 seed or an RSA key (choria.md 6.6). Wiped when dropped, redacted in `Debug`.
pub struct SigningKey(Kind);

enum Kind {
    Ed25519(ed25519_dalek::SigningKey),
    Rsa(RsaKeyPair),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, [redacted])", self.algorithm())
    }
}

impl SigningKey {
    /// The key of a 32-byte seed (RFC 8032).
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(Kind::Ed25519(ed25519_dalek::SigningKey::from_bytes(seed)))
    }

    /// Reads the text of a key file: 64 hexadecimal digits are an Ed25519 seed, a PEM block `RSA PRIVATE KEY` (PKCS#1) or
    /// `PRIVATE KEY` (PKCS#8) is an RSA key. White space around the text is ignored.
    pub fn from_text(text: &str) -> Result<Self, SignError> {
        if text.len() > MAX_KEY_TEXT {
            return Err(SignError::TooLong { bytes: text.len() });
        }
        let trimmed = text.trim();
        if trimmed.starts_with("-----BEGIN RSA PRIVATE KEY") || trimmed.starts_with("-----BEGIN PRIVATE KEY")
        {
            return Self::from_rsa_pem(trimmed);
        }
        let mut seed = Zeroizing::new([0_u8; 32]);
        hex::decode_to_slice(trimmed, seed.as_mut_slice()).map_err(|_| SignError::UnknownKey)?;
        Ok(Self::from_seed(&seed))
    }

    fn from_rsa_pem(text: &str) -> Result<Self, SignError> {
        let block = pem::first_block(text).map_err(SignError::Pem)?;
        let pair = if block.label() == "PRIVATE KEY" {
            RsaKeyPair::from_pkcs8(block.der())
        } else {
            RsaKeyPair::from_der(block.der())
        };
        Ok(Self(Kind::Rsa(pair.map_err(|_| SignError::NotRsa)?)))
    }

    /// The JWT algorithm this key signs with: `EdDSA` or `RS256`.
    pub const fn algorithm(&self) -> &'static str {
        match self.0 {
            Kind::Ed25519(_) => "EdDSA",
            Kind::Rsa(_) => "RS256",
        }
    }

    /// The public half of an Ed25519 key; none for RSA.
    pub fn ed25519_public(&self) -> Option<[u8; 32]> {
        match &self.0 {
            Kind::Ed25519(key) => Some(key.verifying_key().to_bytes()),
            Kind::Rsa(_) => None,
        }
    }

    /// The public half of an RSA key as PKCS#1 DER; none for Ed25519.
    pub fn rsa_public_der(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Ed25519(_) => None,
            Kind::Rsa(pair) => Some(pair.public_key().as_ref()),
        }
    }

    /// Signs `message`: 64 bytes of Ed25519, or RSA PKCS#1 v1.5 with SHA-256 (choria.md 3.3).
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        match &self.0 {
            Kind::Ed25519(key) => Ok(key.sign(message).to_bytes().to_vec()),
            Kind::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
                    .map_err(|_| SignError::Refused)?;
                Ok(signature)
            }
        }
    }
}

/// Reads exactly 64 hexadecimal digits as the 32 bytes of a key; `what` names the value in the error.
pub fn key_from_hex(what: &'static str, text: &str) -> Result<[u8; 32], SignError> {
    let mut key = [0_u8; 32];
    hex::decode_to_slice(text, &mut key).map_err(|_| SignError::Hex {
        what,
        digits: 64,
        found: text.chars().count(),
    })?;
    Ok(key)
}

/// True when `signature` (64 bytes) is the Ed25519 signature of `message` under `public`. Keys of small order never verify.
pub fn ed25519_verifies(public: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(public) else { return false };
    let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else { return false };
    key.verify_strict(message, &signature).is_ok()
}

/// True when `signature` is RSA PKCS#1 v1.5 with SHA-256 of `message` under the PKCS#1 public key `public_der`.
pub fn rsa_verifies(public_der: &[u8], message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public_der).verify(message, signature).is_ok()
}

/// Checks the proof that came with a server's new key (action gen25519, choria.md 4.4): `signature_hex` must be the
/// signature of the text `nonce` under `public_hex`. Lengths are checked before anything is decoded.
///
/// # Errors
/// [`SignError::Hex`], [`SignError::WeakKey`] or [`SignError::Mismatch`].
pub fn verify_nonce(public_hex: &str, nonce: &str, signature_hex: &str) -> Result<[u8; 32], SignError> {
    let public = key_from_hex("public key", public_hex)?;
    let mut signature = [0_u8; 64];
    hex::decode_to_slice(signature_hex, &mut signature).map_err(|_| SignError::Hex {
        what: "signature",
        digits: 128,
        found: signature_hex.chars().count(),
    })?;
    match VerifyingKey::from_bytes(&public) {
        Ok(key) if !key.is_weak() => {}
        _ => return Err(SignError::WeakKey),
    }
    if ed25519_verifies(&public, nonce.as_bytes(), &signature) {
        Ok(public)
    } else {
        Err(SignError::Mismatch)
    }
}
