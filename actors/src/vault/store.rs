//! The keys and tokens themselves, and what is done with them. Blocking; knows no actor.

use std::path::Path;
use std::sync::Arc;

use quartermaster_proto::choria::chain::{ServerTokenOrder, TokenIssuer, issue_server_token};
use quartermaster_proto::choria::ecdh::KeyPair;
use quartermaster_proto::choria::envelope::Proof;
use quartermaster_proto::choria::pem::encrypt_private_key;
use quartermaster_proto::choria::sign::SigningKey;
use quartermaster_proto::choria::token::{ClientClaims, ProvisioningClaims, VerifyKey, parse_client};
use secrecy::{ExposeSecret as _, SecretString};

use super::files::Watched;
use super::messages::{Login, SealedKey};
use super::nats::NatsCredentials;
use super::settings::PROVISIONER_USER;
use super::signed::Signed;
use super::{Outside, Security, TlsMode, VaultError, VaultSettings, tls};

/// A client token as text and as what it says.
pub(super) struct Token {
    pub(super) jwt: SecretString,
    pub(super) claims: ClientClaims,
}

/// What vouches for requests.
enum Voucher {
    Insecure,
    File { certificate: Watched<String>, key: Watched<SigningKey> },
    Choria { token: Watched<Token>, seed: Watched<SigningKey> },
}

/// All keys and tokens, each read when it is first needed and again when its file changes.
pub(super) struct Store {
    settings: VaultSettings,
    outside: Outside,
    voucher: Voucher,
    nats: Option<Watched<NatsCredentials>>,
    verify: Option<Verify>,
    signed: Signed,
    signing_key: Option<Watched<SigningKey>>,
    signing_token: Option<Watched<Token>>,
}

enum Verify {
    File(Watched<VerifyKey>),
    Given(Arc<VerifyKey>),
}

impl Store {
    pub(super) fn new(settings: VaultSettings, outside: Outside) -> Self {
        let voucher = match &settings.security {
            Security::Insecure => Voucher::Insecure,
            Security::File { certificate, key, .. } => Voucher::File {
                certificate: Watched::new("client certificate", certificate),
                key: Watched::new("private key", key),
            },
            Security::Choria { token_file, seed_file, .. } => Voucher::Choria {
                token: Watched::new("client token", token_file),
                seed: Watched::new("seed", seed_file),
            },
        };
        let verify = settings.jwt_verify_cert.as_ref().map(|given| match VerifyKey::from_text(given) {
            Ok(key) => Verify::Given(Arc::new(key)),
            Err(_) => Verify::File(Watched::new("jwt_verify_cert", Path::new(given))),
        });
        let signing_key =
            settings.jwt_signing_key.as_deref().map(|path| Watched::new("jwt_signing_key", path));
        let signing_token =
            settings.jwt_signing_token.as_deref().map(|path| Watched::new("jwt_signing_token", path));
        let nats = settings.nats_credentials.as_deref().map(|path| Watched::new("NATS credentials", path));
        let signed = Signed::default();
        Self { settings, outside, voucher, nats, verify, signed, signing_key, signing_token }
    }

    pub(super) fn sign_request(&self, body: &[u8]) -> Result<Proof, VaultError> {
        let now = self.outside.now();
        match &self.voucher {
            Voucher::Insecure => Ok(Proof::Insecure),
            Voucher::File { certificate, key } => {
                let key = key.get(now, parse_key("private key"))?;
                let certificate = certificate.get(now, |text, _| Ok(text.to_owned()))?;
                Ok(Proof::V1 {
                    signature: key.sign(body).map_err(VaultError::Sign)?,
                    certificate_pem: String::clone(&certificate),
                })
            }
            Voucher::Choria { .. } => {
                let (token, seed) = self.member()?;
                Ok(Proof::V2 {
                    signature: seed.sign(body).map_err(VaultError::Sign)?,
                    caller_jwt: token.jwt.expose_secret().to_owned(),
                })
            }
        }
    }

    pub(super) fn login(&self, nonce: Option<&[u8]>) -> Result<Login, VaultError> {
        let password = self.settings.broker_password.clone();
        let named = self.settings.broker_user.clone();
        let mut login = Login {
            user: password.as_ref().map(|_| named.unwrap_or_else(|| PROVISIONER_USER.to_owned())),
            password,
            ..Login::default()
        };
        if let Voucher::Choria { .. } = &self.voucher {
            let (token, seed) = self.member()?;
            login.token = Some(token.jwt.clone());
            login.jwt = Some(token.jwt.clone());
            login.signature = nonce.map(|nonce| seed.sign(nonce)).transpose().map_err(VaultError::Sign)?;
        }
        if let Some(file) = &self.nats {
            let credentials = file.get(self.outside.now(), NatsCredentials::parse)?;
            login.jwt = Some(credentials.jwt.clone());
            login.signature = nonce.map(|nonce| credentials.sign(nonce)).transpose()?;
        }
        Ok(login)
    }

    pub(super) fn caller(&self) -> Result<String, VaultError> {
        match &self.voucher {
            Voucher::Insecure | Voucher::File { .. } => Ok(format!("choria={}", self.settings.certname)),
            Voucher::Choria { token, .. } => {
                let token = token.get(self.outside.now(), parse_token("client token"))?;
                Ok(token.claims.callerid.clone())
            }
        }
    }

    pub(super) fn provisioning_token(&self) -> SecretString {
        self.settings.provisioning_token.clone()
    }

    pub(super) fn tls_config(&self) -> Result<Option<Arc<rustls::ClientConfig>>, VaultError> {
        match self.settings.tls {
            TlsMode::Off => Ok(None),
            TlsMode::Insecure => tls::client_config(&self.settings.client_tls(), false).map(Some),
            TlsMode::Verify => tls::client_config(&self.settings.client_tls(), true).map(Some),
        }
    }

    pub(super) fn verify_provisioning(&self, jwt: &str) -> Result<ProvisioningClaims, VaultError> {
        let now = self.outside.now();
        let key = match &self.verify {
            None => return Err(VaultError::NotConfigured { what: "jwt_verify_cert" }),
            Some(Verify::Given(key)) => Arc::clone(key),
            Some(Verify::File(file)) if !file.path().exists() => return Err(VaultError::VerifyKeyUnusable),
            Some(Verify::File(file)) => file.get(now, parse_verify_key)?,
        };
        self.signed.verify(jwt, &key, now).map_err(VaultError::Verify)
    }

    pub(super) fn issue_server_token(&self, order: &ServerTokenOrder) -> Result<SecretString, VaultError> {
        let now = self.outside.now();
        let key_file =
            self.signing_key.as_ref().ok_or(VaultError::NotConfigured { what: "jwt_signing_key" })?;
        let key = key_file.get(now, parse_key("jwt_signing_key"))?;
        let token = match &self.signing_token {
            Some(file) => Some(file.get(now, parse_token("jwt_signing_token"))?),
            None => None,
        };
        let issuer =
            TokenIssuer::new(key, token.as_ref().map(|token| &token.claims)).map_err(VaultError::Chain)?;
        let validity = i64::try_from(self.settings.server_jwt_validity.as_secs()).unwrap_or(i64::MAX);
        let random = self.outside.random()?;
        let token = issue_server_token(order, &issuer, validity, now, *random).map_err(VaultError::Issue)?;
        if let Some(warning) = token.warning {
            tracing::warn!(target: "quartermaster::vault", host = %order.identity, "{warning}");
        }
        Ok(token.jwt)
    }

    pub(super) fn seal_private_key(
        &self,
        pem: &SecretString,
        node_public: &str,
    ) -> Result<SealedKey, VaultError> {
        let ours = KeyPair::generate(*self.outside.random()?);
        let shared = ours.shared_secret(node_public).map_err(VaultError::Exchange)?;
        let iv = self.outside.random()?;
        let pem = encrypt_private_key(pem.expose_secret(), &shared, *iv).map_err(VaultError::Encrypt)?;
        Ok(SealedKey { pem, ecdh_public: ours.public_hex() })
    }

    /// Our token and the seed that goes with it: a pair, also while somebody is renewing both files.
    fn member(&self) -> Result<(Arc<Token>, Arc<SigningKey>), VaultError> {
        let Voucher::Choria { token, seed } = &self.voucher else {
            return Err(VaultError::NotConfigured { what: "plugin.security.choria.token_file" });
        };
        let now = self.outside.now();
        let seed_value = seed.get(now, parse_key("seed"))?;
        let token_value = token.get(now, parse_token("client token"))?;
        if !belongs(&seed_value, &token_value.claims) {
            return Err(VaultError::SeedMismatch {
                seed: seed.path().to_owned(),
                token: token.path().to_owned(),
            });
        }
        Ok((token_value, seed_value))
    }
}

/// True when the token speaks of this key, or of none.
pub(super) fn belongs(seed: &SigningKey, token: &ClientClaims) -> bool {
    match (&token.standard.public_key, seed.ed25519_public()) {
        (None, _) => true,
        (Some(claimed), Some(public)) => *claimed == hex::encode(public),
        (Some(_), None) => false,
    }
}

pub(super) fn parse_key(what: &'static str) -> impl Fn(&str, &Path) -> Result<SigningKey, VaultError> {
    move |text, path| {
        SigningKey::from_text(text).map_err(|source| VaultError::Key { what, path: path.to_owned(), source })
    }
}

pub(super) fn parse_token(what: &'static str) -> impl Fn(&str, &Path) -> Result<Token, VaultError> {
    move |text, path| {
        let claims =
            parse_client(text).map_err(|source| VaultError::Token { what, path: path.to_owned(), source })?;
        Ok(Token { jwt: SecretString::from(text.trim()), claims })
    }
}

pub(super) fn parse_verify_key(text: &str, path: &Path) -> Result<VerifyKey, VaultError> {
    VerifyKey::from_text(text).map_err(|source| VaultError::Token {
        what: "jwt_verify_cert",
        path: path.to_owned(),
        source,
    })
}
