//! NATS credentials files: a user token and the seed that signs the broker's challenge.

use std::path::Path;

use nkeys::KeyPair;
use secrecy::SecretString;

use super::VaultError;

/// What a credentials file holds.
pub(super) struct NatsCredentials {
    pub(super) jwt: SecretString,
    pair: KeyPair,
}

impl NatsCredentials {
    /// Reads the two blocks of the file.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, VaultError> {
        let unusable = |why| VaultError::NatsCredentials { path: path.to_owned(), why };
        let jwt = block(text, "USER JWT").ok_or_else(|| unusable("it holds no user JWT"))?;
        let seed = block(text, "NKEY SEED").ok_or_else(|| unusable("it holds no seed"))?;
        // The library's error may repeat what it was given.
        let pair = KeyPair::from_seed(seed).map_err(|_| unusable("its seed is none"))?;
        Ok(Self { jwt: SecretString::from(jwt), pair })
    }

    /// The signature over a challenge.
    pub(super) fn sign(&self, nonce: &[u8]) -> Result<Vec<u8>, VaultError> {
        self.pair.sign(nonce).map_err(|_| VaultError::NatsSign)
    }
}

/// The line after `-----BEGIN … <name>-----`.
fn block<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| !(line.starts_with("-----BEGIN") && line.trim_end_matches('-').ends_with(name)));
    lines.next()?;
    lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn file(jwt: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\
             -----BEGIN USER NKEY SEED-----\r\n{seed}\r\n------END USER NKEY SEED------\n"
        )
    }

    #[test]
    fn a_credentials_file_gives_its_token_and_signs_with_its_seed() {
        let pair = KeyPair::new_user();
        let read = NatsCredentials::parse(&file("a.b.c", &pair.seed().unwrap()), Path::new("x")).unwrap();
        assert_eq!(read.jwt.expose_secret(), "a.b.c");
        pair.verify(b"nonce", &read.sign(b"nonce").unwrap()).unwrap();
    }

    #[test]
    fn what_is_missing_or_broken_is_said_without_showing_it() {
        let seed = KeyPair::new_user().seed().unwrap();
        for (text, words) in [
            (String::new(), "no user JWT"),
            (file("", &seed), "no user JWT"),
            (file("a.b.c", ""), "no seed"),
            (file("a.b.c", "SUSECRET"), "its seed is none"),
        ] {
            let error = NatsCredentials::parse(&text, Path::new("x.creds")).err().unwrap().to_string();
            assert!(
                error.contains(words) && error.contains("x.creds") && !error.contains("SUSECRET"),
                "{error}"
            );
        }
    }
}
