//! The key that seals the store.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::secrecy::is_private;

/// Length of a key, in bytes.
pub const KEY_BYTES: usize = 32;
/// Length of a key's id, in bytes.
pub(super) const ID_BYTES: usize = 8;

/// Why a key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the vault's key cannot be read from {path}")]
    Unreadable {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Others than the owner may read or write the file.
    #[error("the vault's key in {path} has mode {mode:04o}, but must have 0400 or 0600")]
    TooOpen {
        /// Where.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// It is neither 32 bytes nor 64 hexadecimal digits.
    #[error("the vault's key in {path} is neither 32 bytes nor 64 hexadecimal digits")]
    Shape {
        /// Where.
        path: String,
    },
}

/// A key of the store; wiped when dropped.
#[derive(Clone)]
pub struct StoreKey(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey([redacted])")
    }
}

impl StoreKey {
    /// A key of these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads a file of 32 bytes, or of 64 hexadecimal digits and perhaps a line feed, that nobody but its owner may read.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        use std::io::Read as _;
        let name = || path.display().to_string();
        let unreadable = |source| KeyError::Unreadable { path: name(), source };
        let mut file = std::fs::File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
        if !is_private(path, mode) {
            return Err(KeyError::TooOpen { path: name(), mode });
        }
        // One byte more than the longest form, so that something longer shows.
        let mut content = Zeroizing::new(vec![0; 2 * KEY_BYTES + 2]);
        let mut length = 0;
        while let Some(rest) = content.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match file.read(rest) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        let content = content.get(..length).unwrap_or_default();
        Self::parse(content).ok_or_else(|| KeyError::Shape { path: name() })
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if content.len() == KEY_BYTES {
            key.copy_from_slice(content);
        } else {
            hex::decode_to_slice(content.strip_suffix(b"\n").unwrap_or(content), key.as_mut_slice()).ok()?;
        }
        Some(Self(key))
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Says which key a row is sealed with, and nothing more of it.
    pub(super) fn id(&self) -> [u8; ID_BYTES] {
        let hash: [u8; 32] =
            Sha256::new().chain_update(b"qm-vault-key\0").chain_update(self.0.as_slice()).finalize().into();
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        id
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(content: &[u8], mode: u32, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let said = match StoreKey::from_file(&path) {
            Ok(key) => hex::encode(key.bytes()),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn a_key_is_bytes_or_digits() {
        check(&[0xab; 32], 0o400, &"ab".repeat(32));
        check("AB".repeat(32).as_bytes(), 0o600, &"ab".repeat(32));
        check(format!("{}\n", "ab".repeat(32)).as_bytes(), 0o600, &"ab".repeat(32));
    }

    #[test]
    fn anything_else_is_no_key() {
        for content in [&b""[..], &[1; 31], &[1; 33], "xy".repeat(32).as_bytes(), "ab".repeat(33).as_bytes()]
        {
            check(content, 0o600, "neither 32 bytes nor 64");
        }
        check(&[1; 32], 0o640, "has mode 0640");
        check(&[1; 32], 0o604, "has mode 0604");
    }

    #[test]
    fn a_key_shows_nothing_of_itself() {
        let key = StoreKey::new([7; 32]);
        assert_eq!(format!("{key:?}"), "StoreKey([redacted])");
        assert_ne!(key.id(), StoreKey::new([8; 32]).id());
    }
}
