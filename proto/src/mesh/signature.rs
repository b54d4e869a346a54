//! Which entries of a bucket are believed: the controller's signature, and the marks of a broker's misdirected answer.

use std::{collections::BTreeMap, fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::json::{self, Limits};

/// The header that carries a signature.
pub const HEADER: &str = "Mesh-Sig";
/// Headers that only a broker's own answer carries.
pub const BROKER_HEADERS: [&str; 2] = ["Nats-Stream", "Nats-Subject"];

/// What is signed begins with this line.
const CONTEXT: &str = "mesh-sig/1";
const VERSION: &str = "v1";

/// Why an entry is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is no signature.
    #[error("it is not signed")]
    Missing,
    /// The header is not `v1.<public nkey>.<base64>`.
    #[error("its signature is not of the form v1.<public nkey>.<base64>")]
    Malformed,
    /// It is signed with a key that is not pinned.
    #[error("it is signed with a key that is not pinned")]
    OtherKey,
    /// The signature does not hold for this subject and body.
    #[error("its signature does not hold")]
    Mismatch,
}

/// A public key as NATS writes it: 56 characters of base32, the first of which says what it is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicNkey {
    prefix: u8,
    key: [u8; 32],
}

impl PublicNkey {
    /// A user's key (`U…`), which is what our own are.
    pub const fn user(key: [u8; 32]) -> Self {
        Self { prefix: 20 << 3, key }
    }

    /// The 32 bytes of Ed25519.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.key
    }
}

impl fmt::Display for PublicNkey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut raw = vec![self.prefix];
        raw.extend(self.key);
        raw.extend(crc16(&raw).to_le_bytes());
        out.write_str(&base32(&raw))
    }
}

impl fmt::Debug for PublicNkey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PublicNkey({self})")
    }
}

/// A text is no public key of NATS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a public key of NATS is wanted: 56 letters and digits, as `quartermaster mesh init` prints it")]
pub struct NkeyError;

impl From<NkeyError> for SignatureError {
    fn from(NkeyError: NkeyError) -> Self {
        Self::Malformed
    }
}

impl FromStr for PublicNkey {
    type Err = NkeyError;

    fn from_str(text: &str) -> Result<Self, NkeyError> {
        let raw = from_base32(text).ok_or(NkeyError)?;
        let Some((&[prefix, ref body @ ..], &[low, high])) = raw.split_last_chunk::<2>() else {
            return Err(NkeyError);
        };
        let key = <[u8; 32]>::try_from(body).map_err(|_| NkeyError)?;
        let found = Self { prefix, key };
        // Operator, server, cluster, account, user; the prefix of seeds is another.
        let is_public = [14 << 3, 13 << 3, 2 << 3, 0, 20 << 3].contains(&prefix);
        let is_whole = crc16(raw.get(..33).unwrap_or_default()) == u16::from_le_bytes([low, high]);
        if is_public && is_whole && found.to_string() == text { Ok(found) } else { Err(NkeyError) }
    }
}

/// What is signed for an entry: a line that says what this is, the subject, the body's hash.
pub fn signed_text(subject: &str, body: &[u8]) -> String {
    format!("{CONTEXT}\n{subject}\n{}", hex::encode(Sha256::digest(body)))
}

/// The header of a signature that was made elsewhere.
pub fn header(key: &PublicNkey, signature: &[u8; 64]) -> String {
    format!("{VERSION}.{key}.{}", STANDARD.encode(signature))
}

/// Signs an entry with the key of this seed; the header's value.
pub fn sign(seed: &[u8; 32], subject: &str, body: &[u8]) -> String {
    let signing = SigningKey::from_bytes(seed);
    let key = PublicNkey::user(signing.verifying_key().to_bytes());
    header(&key, &signing.sign(signed_text(subject, body).as_bytes()).to_bytes())
}

/// Tests an entry against the keys that are pinned.
///
/// # Errors
/// Why it is not believed.
pub fn verify(
    header: Option<&str>,
    pinned: &[PublicNkey],
    subject: &str,
    body: &[u8],
) -> Result<(), SignatureError> {
    let header = header.ok_or(SignatureError::Missing)?;
    let rest = header.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix('.'));
    let (key, signature) = rest.and_then(|rest| rest.split_once('.')).ok_or(SignatureError::Malformed)?;
    let key: PublicNkey = key.parse()?;
    let signature = STANDARD.decode(signature).ok().and_then(|bytes| Signature::from_slice(&bytes).ok());
    let signature = signature.ok_or(SignatureError::Malformed)?;
    if !pinned.contains(&key) {
        return Err(SignatureError::OtherKey);
    }
    VerifyingKey::from_bytes(key.bytes())
        .and_then(|key| key.verify_strict(signed_text(subject, body).as_bytes(), &signature))
        .map_err(|_| SignatureError::Mismatch)
}

/// True for a body that is a broker's own answer: somebody had it sent into a bucket. Whoever stores such JSON on purpose writes
/// one more member.
pub fn is_broker_answer(body: &[u8]) -> bool {
    let Ok(members) = json::object::<BTreeMap<String, &RawValue>>(body, &Limits::FRAME) else {
        return false;
    };
    let has_type = members.get("type").is_some_and(|value| {
        serde_json::from_str::<String>(value.get())
            .is_ok_and(|text| text.starts_with("io.nats.jetstream.api."))
    });
    let is_acknowledgement = members.contains_key("stream")
        && members.contains_key("seq")
        && members.keys().all(|member| {
            matches!(
                member.as_str(),
                "stream" | "seq" | "domain" | "duplicate" | "val" | "batch" | "count" | "error"
            )
        });
    has_type || is_acknowledgement
}

/// CRC-16/XMODEM, as NATS has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// RFC 4648 without padding.
fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    let (mut held, mut bits) = (0_u32, 0);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.extend(ALPHABET.get((held >> bits) as usize & 31).map(|digit| char::from(*digit)));
        }
    }
    if bits > 0 {
        out.extend(ALPHABET.get((held << (5 - bits)) as usize & 31).map(|digit| char::from(*digit)));
    }
    out
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut held, mut bits) = (0_u32, 0);
    for digit in text.bytes().take(64) {
        let value = ALPHABET.iter().position(|one| *one == digit)?;
        held = (held << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from((held >> bits) & 255).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: [u8; 32] = [7; 32];
    const SUBJECT: &str = "$KV.mesh-controller_assignments.web1.forge";

    fn pinned() -> PublicNkey {
        PublicNkey::user(SigningKey::from_bytes(&SEED).verifying_key().to_bytes())
    }

    #[test]
    fn a_signature_holds_for_its_subject_and_body_alone() {
        let header = sign(&SEED, SUBJECT, b"{}");
        assert!(header.starts_with("v1.U"));
        let check = |header: Option<&str>, subject: &str, body: &[u8], expected| {
            assert_eq!(verify(header, &[pinned()], subject, body), expected);
        };
        check(Some(&header), SUBJECT, b"{}", Ok(()));
        check(Some(&header), SUBJECT, b"{ }", Err(SignatureError::Mismatch));
        check(
            Some(&header),
            "$KV.mesh-controller_assignments.web2.forge",
            b"{}",
            Err(SignatureError::Mismatch),
        );
        check(None, SUBJECT, b"{}", Err(SignatureError::Missing));
        check(Some(&sign(&[8; 32], SUBJECT, b"{}")), SUBJECT, b"{}", Err(SignatureError::OtherKey));
        for malformed in
            ["", "v1", "v1.", "v2.a.b", &header.replace("v1.U", "v1.A"), &header[..header.len() - 4]]
        {
            check(Some(malformed), SUBJECT, b"{}", Err(SignatureError::Malformed));
        }
    }

    #[test]
    fn public_keys_are_written_as_nats_writes_them() {
        let key = pinned();
        let text = key.to_string();
        assert_eq!(text.len(), 56);
        assert_eq!(text.parse(), Ok(key));
        assert!(text.to_lowercase().parse::<PublicNkey>().is_err());
        assert!(text[..55].parse::<PublicNkey>().is_err());
        // CRC of the digits 1 to 9, the check value of its definition.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(base32(b"foobar"), "MZXW6YTBOI");
        assert_eq!(from_base32("MZXW6YTBOI").as_deref(), Some(b"foobar".as_slice()));
    }

    #[test]
    fn a_brokers_answer_is_recognised() {
        for body in [
            r#"{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":{}}"#,
            r#"{"stream":"KV_mesh-config_resolved","seq":3}"#,
            r#"{"stream":"S","domain":"hub","seq":3,"duplicate":true}"#,
            r#"{"error":{"code":503},"stream":"S","seq":0}"#,
        ] {
            assert!(is_broker_answer(body.as_bytes()), "{body}");
        }
        for body in
            ["", "3000", "{}", r#"{"stream":"S"}"#, r#"{"stream":"S","seq":3,"x":1}"#, r#"{"type":"http"}"#]
        {
            assert!(!is_broker_answer(body.as_bytes()), "{body}");
        }
    }
}
