//! Tokens whose signature was verified before: servers of one network all carry the same one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{Digest, SHA256, digest};
use quartermaster_proto::choria::token::{ProvisioningClaims, SignedProvisioning, TokenError, VerifyKey};
use quartermaster_proto::time::WallClock;

/// Tokens that are remembered. Sites have one for each kind of server; with more, the oldest is verified again.
const REMEMBERED: usize = 16;

/// What is known of one token, by the digest of its text.
struct Known {
    key: Arc<VerifyKey>,
    digest: Digest,
    token: Arc<SignedProvisioning>,
}

/// Verifies provisioning tokens; the signature of the same text by the same reading of the same key once.
#[derive(Default)]
pub(super) struct Signed(Mutex<VecDeque<Known>>);

impl Signed {
    /// The claims of a token that is signed with `key` and holds at `now`.
    pub(super) fn verify(
        &self,
        jwt: &str,
        key: &Arc<VerifyKey>,
        now: WallClock,
    ) -> Result<ProvisioningClaims, TokenError> {
        let digest = digest(&SHA256, jwt.as_bytes());
        if let Some(token) = self.known(&digest, key) {
            return token.at(now);
        }
        let token = Arc::new(SignedProvisioning::verify(jwt, key)?);
        let claims = token.at(now)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What a key that was replaced vouched for counts no more.
        known.retain(|known| Arc::ptr_eq(&known.key, key) && known.digest.as_ref() != digest.as_ref());
        known.truncate(REMEMBERED - 1);
        known.push_front(Known { key: Arc::clone(key), digest, token });
        Ok(claims)
    }

    fn known(&self, digest: &Digest, key: &Arc<VerifyKey>) -> Option<Arc<SignedProvisioning>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .find(|known| known.digest.as_ref() == digest.as_ref() && Arc::ptr_eq(&known.key, key))
            .map(|known| Arc::clone(&known.token))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ed25519_dalek::{Signer as _, SigningKey};

    use super::*;

    fn key(seed: u8) -> (SigningKey, Arc<VerifyKey>) {
        let key = SigningKey::from_bytes(&[seed; 32]);
        let public = VerifyKey::from_text(&hex::encode(key.verifying_key().to_bytes())).unwrap();
        (key, Arc::new(public))
    }

    fn token(key: &SigningKey, name: usize) -> String {
        let claims = format!(
            r#"{{"purpose":"choria_provisioning","cht":"s3cret","ou":"site{name}","exp":1000,"nbf":10}}"#
        );
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA","typ":"JWT"}"#);
        let text = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = key.sign(text.as_bytes()).to_bytes();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn at(seconds: i64) -> WallClock {
        WallClock::from_seconds(seconds)
    }

    #[test]
    fn a_token_seen_before_is_looked_at_with_the_clock_of_now() {
        let (signing, key) = key(1);
        let (signed, token) = (Signed::default(), token(&signing, 0));
        assert_eq!(signed.verify(&token, &key, at(10)).unwrap().ou, "site0");
        assert!(signed.known(&digest(&SHA256, token.as_bytes()), &key).is_some());
        assert!(matches!(signed.verify(&token, &key, at(9)), Err(TokenError::NotYetValid { .. })));
        assert!(matches!(signed.verify(&token, &key, at(1000)), Err(TokenError::Expired { .. })));
    }

    #[test]
    fn what_another_key_vouched_for_is_not_believed() {
        let ((signing, old), (_, new)) = (key(1), key(2));
        let (signed, token) = (Signed::default(), token(&signing, 0));
        signed.verify(&token, &old, at(10)).unwrap();
        assert!(matches!(signed.verify(&token, &new, at(10)), Err(TokenError::Signature)));
        let changed = token.replacen('A', "B", 1);
        assert!(signed.verify(&changed, &old, at(10)).is_err());
        assert!(signed.verify(&token, &old, at(10)).is_ok());
    }

    #[test]
    fn no_more_than_a_few_are_remembered_and_none_that_failed() {
        let (signing, key) = key(1);
        let signed = Signed::default();
        for name in 0..3 * REMEMBERED {
            signed.verify(&token(&signing, name), &key, at(10)).unwrap();
            assert!(signed.verify(&token(&signing, 1_000 + name), &key, at(9)).is_err());
        }
        let known = signed.0.lock().unwrap();
        assert_eq!(known.len(), REMEMBERED);
        assert_eq!(
            known.front().unwrap().token.at(at(10)).unwrap().ou,
            format!("site{}", 3 * REMEMBERED - 1)
        );
    }
}
