//! Where a templates archive lies, and what it hashes to.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

/// The SHA-256 of an archive, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digits alone.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("sha256:").ok_or("is no digest of a known kind (sha256:…)")?;
        let mut digest = [0; 32];
        let is_lower = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        match hex::decode_to_slice(digits, &mut digest) {
            Ok(()) if is_lower => Ok(Self(digest)),
            _ => Err("is not sha256: and 64 lower-case hexadecimal digits"),
        }
    }
}

/// Where an archive is fetched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// An object of a JetStream object store.
    NatsObject {
        /// The store.
        bucket: String,
        /// The object; may hold any character.
        name: String,
    },
    /// A file of this machine, by its absolute path.
    File(String),
    /// An address that begins with `https://`.
    Https(String),
}

impl FromStr for Reference {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > 2_048 || text.contains(char::is_control) {
            return Err("is no reference: too long, or with control characters");
        }
        if let Some(rest) = text.strip_prefix("nats-object:") {
            return match rest.split_once('/') {
                Some((bucket, name)) if super::super::is_bucket_name(bucket) && !name.is_empty() => {
                    Ok(Self::NatsObject { bucket: bucket.to_owned(), name: name.to_owned() })
                }
                _ => Err("is not nats-object:<bucket>/<name>"),
            };
        }
        if let Some(path) = text.strip_prefix("file:") {
            super::check::path(path)?;
            return Ok(Self::File(path.to_owned()));
        }
        match text.strip_prefix("https://") {
            Some(rest)
                if rest
                    .split(['/', '?', '#'])
                    .next()
                    .is_some_and(|host| !host.is_empty() && !host.contains('@')) =>
            {
                Ok(Self::Https(text.to_owned()))
            }
            Some(_) => Err("is an https address without a host, or with credentials"),
            None => Err("is none of nats-object:, file: and https:"),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NatsObject { bucket, name } => write!(out, "nats-object:{bucket}/{name}"),
            Self::File(path) => write!(out, "file:{path}"),
            Self::Https(address) => out.write_str(address),
        }
    }
}
