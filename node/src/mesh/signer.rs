//! The controller's key, which signs assignments and the registry.

use std::fmt;
use std::path::Path;

use nkeys::{KeyPair, decode_seed};
use quartermaster_proto::mesh::signature::{PublicNkey, sign};
use zeroize::Zeroizing;

use super::error::MeshError;

/// Signs what only the controller may say. Wiped when dropped, never shown.
pub struct Signer {
    seed: Zeroizing<[u8; 32]>,
    public: PublicNkey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signer({}, [redacted])", self.public)
    }
}

impl Signer {
    /// The key of these 32 bytes.
    ///
    /// ```
    /// use quartermaster_node::mesh::Signer;
    /// let signer = Signer::from_bytes([7; 32]).unwrap();
    /// assert!(signer.public().to_string().starts_with('U'));
    /// ```
    pub fn from_bytes(seed: [u8; 32]) -> Option<Self> {
        let seed = Zeroizing::new(seed);
        let pair = KeyPair::new_from_raw(nkeys::KeyPairType::User, *seed).ok()?;
        Some(Self { public: pair.public_key().parse().ok()?, seed })
    }

    /// Reads the file of a seed (`SU…`).
    ///
    /// # Errors
    /// It cannot be read, or holds no seed of a user.
    pub fn read(path: &Path) -> Result<Self, MeshError> {
        let text = std::fs::read_to_string(path).map(Zeroizing::new).map_err(MeshError::read(path))?;
        let seed = text.lines().map(str::trim).find(|line| line.starts_with("SU"));
        let decoded = seed.and_then(|seed| decode_seed(seed).ok());
        decoded.and_then(|(_, seed)| Self::from_bytes(seed)).ok_or_else(|| MeshError::NoSeed(path.to_owned()))
    }

    /// What machines, the vault and engines pin.
    pub const fn public(&self) -> PublicNkey {
        self.public
    }

    /// The header's value for a body under this subject.
    pub fn sign(&self, subject: &str, body: &[u8]) -> String {
        sign(&self.seed, subject, body)
    }
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::mesh::signature::verify;

    use super::*;

    #[test]
    fn what_is_signed_is_believed_by_who_pins_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let pair = KeyPair::new_user();
        let path = dir.path().join("key");
        std::fs::write(&path, format!("{}\n", pair.seed().unwrap())).unwrap();
        let signer = Signer::read(&path).unwrap();
        assert_eq!(signer.public().to_string(), pair.public_key());
        let header = signer.sign("a.b", b"{}");
        assert_eq!(verify(Some(&header), &[signer.public()], "a.b", b"{}"), Ok(()));
        assert!(!format!("{signer:?}").contains(&pair.seed().unwrap()));
    }

    #[test]
    fn a_file_without_a_seed_is_named_and_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "SUxyz").unwrap();
        let error = Signer::read(&path).unwrap_err().to_string();
        assert!(error.contains("holds no seed") && !error.contains("SUxyz"), "{error}");
        assert!(matches!(Signer::read(&dir.path().join("none")), Err(MeshError::Read { .. })));
    }
}
