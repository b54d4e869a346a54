//! Names of hosts on the network, checked once so that they are safe in a subject and in a log line.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Longest identity, in bytes.
pub const MAX_IDENTITY: usize = 255;

/// A host's identity (choria.md 3.5): 1 to 255 printable ASCII characters without white space, `*` and `>`, and without an
/// empty label between dots, so that it is one safe tail of a NATS subject. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Arc<str>);

/// Why a text cannot be an identity. The text itself is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The text is empty.
    #[error("an identity may not be empty")]
    Empty,
    /// The text is too long.
    #[error("an identity of {length} bytes is longer than {MAX_IDENTITY}")]
    TooLong {
        /// Bytes of the text.
        length: usize,
    },
    /// The text holds a byte that is not allowed.
    #[error("an identity may not hold byte 0x{byte:02x} (at offset {offset})")]
    Forbidden {
        /// The byte.
        byte: u8,
        /// Its offset.
        offset: usize,
    },
    /// Two dots touch, or a dot starts or ends the text.
    #[error("an identity may not have an empty label (at offset {offset})")]
    EmptyLabel {
        /// Offset where the label should be.
        offset: usize,
    },
}

impl Identity {
    /// Checks `text` and keeps it.
    ///
    /// # Errors
    /// The first rule that `text` breaks.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        if text.is_empty() {
            return Err(IdentityError::Empty);
        }
        if text.len() > MAX_IDENTITY {
            return Err(IdentityError::TooLong { length: text.len() });
        }
        let mut after_dot = true;
        for (offset, byte) in text.bytes().enumerate() {
            if !byte.is_ascii_graphic() || matches!(byte, b'*' | b'>') {
                return Err(IdentityError::Forbidden { byte, offset });
            }
            if byte == b'.' && after_dot {
                return Err(IdentityError::EmptyLabel { offset });
            }
            after_dot = byte == b'.';
        }
        if after_dot {
            return Err(IdentityError::EmptyLabel { offset: text.len() });
        }
        Ok(Self(Arc::from(text)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, out)
    }
}

impl AsRef<str> for Identity {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Identity {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        Self::parse(text)
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(text: &str) {
        assert_eq!(Identity::parse(text).map(|identity| identity.to_string()).as_deref(), Ok(text));
    }

    fn bad(text: &str, expected: IdentityError) {
        assert_eq!(Identity::parse(text), Err(expected), "{text:?}");
    }

    #[test]
    fn host_names_are_identities() {
        good("web1.example.net");
        good("WEB1");
        good("a_b-c.d");
        good("choria=rip.mcollective");
        good(&"x".repeat(255));
    }

    #[test]
    fn length_is_bounded() {
        bad("", IdentityError::Empty);
        bad(&"x".repeat(256), IdentityError::TooLong { length: 256 });
    }

    #[test]
    fn nothing_that_changes_a_subject_or_a_log_line_passes() {
        bad("web1 x", IdentityError::Forbidden { byte: b' ', offset: 4 });
        bad("web*", IdentityError::Forbidden { byte: b'*', offset: 3 });
        bad(">", IdentityError::Forbidden { byte: b'>', offset: 0 });
        bad("a\nb", IdentityError::Forbidden { byte: b'\n', offset: 1 });
        bad("a\0", IdentityError::Forbidden { byte: 0, offset: 1 });
        bad("a\u{7f}", IdentityError::Forbidden { byte: 0x7f, offset: 1 });
        bad("wéb", IdentityError::Forbidden { byte: 0xc3, offset: 1 });
    }

    #[test]
    fn labels_are_never_empty() {
        bad(".a", IdentityError::EmptyLabel { offset: 0 });
        bad("a..b", IdentityError::EmptyLabel { offset: 2 });
        bad("a.", IdentityError::EmptyLabel { offset: 2 });
        bad(".", IdentityError::EmptyLabel { offset: 0 });
    }

    #[test]
    fn json_carries_it_as_a_checked_string() {
        let identity: Identity = serde_json::from_str("\"n1.example.net\"").unwrap();
        assert_eq!(serde_json::to_string(&identity).unwrap(), "\"n1.example.net\"");
        assert!(serde_json::from_str::<Identity>("\"n1 example\"").is_err());
    }
}
