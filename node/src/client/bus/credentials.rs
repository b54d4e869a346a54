//! The account's credential: a seed, alone or with its JWT as NATS writes credentials files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use async_nats::{Auth, AuthError};
use nkeys::KeyPair;
use zeroize::Zeroizing;

/// Longest credentials file, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// Why the credential cannot be used. Nothing of the file is repeated.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("failed to read the credentials file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It holds no seed of a user.
    #[error("the credentials file {} holds no seed of a user", path.display())]
    NoSeed {
        /// The file.
        path: PathBuf,
    },
}

/// A credential, wiped when dropped and never shown.
pub struct Credentials {
    jwt: Option<String>,
    seed: Zeroizing<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Credentials([redacted])")
    }
}

impl Credentials {
    /// Reads a credentials file.
    ///
    /// # Errors
    /// It cannot be read, or holds no seed of a user.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let text = std::fs::read(path)
            .map(Zeroizing::new)
            .map_err(|source| CredentialsError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).ok_or_else(|| CredentialsError::NoSeed { path: path.to_owned() })
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_FILE)?;
        let mut lines = text.lines().map(str::trim);
        let seed = lines.find(|line| line.starts_with("SU"))?;
        KeyPair::from_seed(seed).ok()?;
        let jwt = text
            .lines()
            .skip_while(|line| !line.contains("BEGIN NATS USER JWT"))
            .map(str::trim)
            .find(|line| line.starts_with("ey"))
            .map(str::to_owned);
        Some(Self { jwt, seed: Zeroizing::new(seed.to_owned()) })
    }

    /// What goes into a connect, the broker's nonce signed.
    pub(super) fn login(&self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let pair = KeyPair::from_seed(&self.seed).map_err(|_| AuthError::new("the seed is no seed"))?;
        let signature = pair.sign(nonce).map_err(|_| AuthError::new("the nonce cannot be signed"))?;
        let mut auth = Auth::new();
        auth.signature = Some(signature);
        match &self.jwt {
            Some(jwt) => auth.jwt = Some(jwt.clone()),
            None => auth.nkey = Some(pair.public_key()),
        }
        Ok(auth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_read_alone_or_with_its_jwt() {
        let seed = KeyPair::new_user().seed().unwrap();
        let alone = Credentials::parse(format!("{seed}\n").as_bytes()).unwrap();
        assert!(alone.jwt.is_none() && alone.login(b"nonce").unwrap().nkey.is_some());
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\neyJ0.x.y\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let both = Credentials::parse(creds.as_bytes()).unwrap();
        let login = both.login(b"nonce").unwrap();
        assert_eq!((login.jwt.as_deref(), login.nkey), (Some("eyJ0.x.y"), None));
        assert!(!format!("{both:?}").contains(&seed));
    }

    #[test]
    fn what_holds_no_seed_of_a_user_is_refused() {
        let account = KeyPair::new_account().seed().unwrap();
        for text in ["", "SUxxx", "ey", &account] {
            assert!(Credentials::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(matches!(
            Credentials::read(Path::new("/does/not/exist")),
            Err(CredentialsError::Read { .. })
        ));
    }

    #[test]
    fn a_public_key_is_written_as_the_wire_reads_it() {
        use quartermaster_proto::mesh::signature::{PublicNkey, header, signed_text, verify};
        let pair = KeyPair::new_user();
        let key: PublicNkey = pair.public_key().parse().unwrap();
        assert_eq!(key.to_string(), pair.public_key());
        let signature = pair.sign(signed_text("a.b", b"body").as_bytes()).unwrap();
        let header = header(&key, &signature.try_into().unwrap());
        assert_eq!(verify(Some(&header), &[key], "a.b", b"body"), Ok(()));
        for other in
            [KeyPair::new_account(), KeyPair::new_operator(), KeyPair::new_server(), KeyPair::new_cluster()]
        {
            assert_eq!(
                other.public_key().parse::<PublicNkey>().map(|key| key.to_string()),
                Ok(other.public_key())
            );
        }
        assert!(pair.seed().unwrap().parse::<PublicNkey>().is_err());
    }
}
