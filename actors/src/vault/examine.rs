//! Everything that can be wrong with the files of the vault, found at once and beforehand.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quartermaster_proto::choria::certificate;
use quartermaster_proto::choria::chain::TokenIssuer;
use quartermaster_proto::choria::sign::SigningKey;
use quartermaster_proto::choria::token::{StandardClaims, VerifyKey};
use quartermaster_proto::time::WallClock;

use super::nats::NatsCredentials;
use super::store::{Token, belongs, parse_key, parse_token, parse_verify_key};
use super::{ClientTls, Security, TlsMode, VaultError, VaultSettings, files, tls};
use crate::text::causes;

/// Permission bits of group and others.
const OPEN_TO_OTHERS: u32 = 0o077;

/// How bad a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Work goes on, somebody should look.
    Warn,
    /// The instance must not start like this.
    Refuse,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultFault {
    /// How bad it is.
    pub severity: Severity,
    /// The setting concerned, as it is called in the file it stands in.
    pub key: &'static str,
    /// The file concerned, if there is one.
    pub path: Option<PathBuf>,
    /// What is wrong, for people, without any secret.
    pub message: String,
}

/// Examines every key, token and certificate the settings name, reading each file once. Knows no actor; `now` decides what
/// is expired. The faults come in the order of the settings.
pub fn examine(settings: &VaultSettings, now: WallClock) -> Vec<VaultFault> {
    let mut faults = Faults { found: Vec::new(), now };
    match &settings.security {
        Security::Insecure => {}
        Security::File { certificate, key, .. } => faults.request_certificate(certificate, key),
        Security::Choria { token_file, seed_file, .. } => faults.member(token_file, seed_file),
    }
    if let Some(path) = &settings.nats_credentials {
        faults.private("control.credentials", path, NatsCredentials::parse);
    }
    faults.tls(settings);
    if let Some(given) = &settings.jwt_verify_cert {
        faults.verify_key(given);
    }
    faults.issuer(settings);
    faults.found
}

struct Faults {
    found: Vec<VaultFault>,
    now: WallClock,
}

impl Faults {
    fn add(&mut self, severity: Severity, key: &'static str, path: Option<&Path>, message: String) {
        self.found.push(VaultFault { severity, key, path: path.map(Path::to_owned), message });
    }

    /// The value, or none and a fault that refuses.
    fn need<T>(&mut self, key: &'static str, path: &Path, result: Result<T, VaultError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(Severity::Refuse, key, Some(path), causes(&error));
                None
            }
        }
    }

    /// Reads a private file and warns when others may read it too.
    fn private<T>(
        &mut self,
        key: &'static str,
        path: &Path,
        parse: impl FnOnce(&str, &Path) -> Result<T, VaultError>,
    ) -> Option<T> {
        let value = files::read(key, path).and_then(|(_, text)| parse(&text, path));
        let value = self.need(key, path, value);
        if let Ok(meta) = std::fs::metadata(path)
            && meta.mode() & OPEN_TO_OTHERS != 0
        {
            let message = format!(
                "mode {:04o} lets other users at this private file, 0600 is right",
                meta.mode() & 0o7777
            );
            self.add(Severity::Warn, key, Some(path), message);
        }
        value
    }

    fn request_certificate(&mut self, certificate: &Path, key: &Path) {
        let certificate_key = "plugin.security.file.certificate";
        let private_key = "plugin.security.file.key";
        let read = files::read(certificate_key, certificate)
            .and_then(|(_, text)| parse_verify_key(&text, certificate));
        let public = self.need(certificate_key, certificate, read);
        let Some(signing) = self.private(private_key, key, parse_key(private_key)) else { return };
        let Some(der) = signing.rsa_public_der() else {
            let message = "requests of protocol 1 are signed with RSA, this is an Ed25519 seed".to_owned();
            self.add(Severity::Refuse, private_key, Some(key), message);
            return;
        };
        if public.is_some_and(|public| !matches!(&public, VerifyKey::Rsa { der: of } if of == der)) {
            let message = format!("is not the key of the certificate `{}`", certificate.display());
            self.add(Severity::Refuse, private_key, Some(key), message);
        }
    }

    fn member(&mut self, token_file: &Path, seed_file: &Path) {
        let token_key = "plugin.security.choria.token_file";
        let seed_key = "plugin.security.choria.seed_file";
        let token = self.private(token_key, token_file, parse_token(token_key));
        let seed = self.private(seed_key, seed_file, parse_key(seed_key));
        if let Some(token) = &token {
            self.times(token_key, token_file, &token.claims.standard);
            if !token.claims.permissions.provisioner {
                let message =
                    "the token lacks the permission `provisioner`, without which the broker refuses the login".to_owned();
                self.add(Severity::Warn, token_key, Some(token_file), message);
            }
        }
        if let Some(seed) = &seed
            && seed.ed25519_public().is_none()
        {
            let message =
                "requests of protocol 2 are signed with an Ed25519 seed, this is an RSA key".to_owned();
            self.add(Severity::Refuse, seed_key, Some(seed_file), message);
        } else if let (Some(token), Some(seed)) = (&token, &seed)
            && !belongs(seed, &token.claims)
        {
            let message = format!("is not the seed of the token in `{}`", token_file.display());
            self.add(Severity::Refuse, seed_key, Some(seed_file), message);
        }
    }

    /// Warns of a token outside of its times: it may be renewed while we run.
    fn times(&mut self, key: &'static str, path: &Path, claims: &StandardClaims) {
        let now = self.now.seconds();
        if let Some(exp) = claims.exp
            && now >= exp
        {
            self.add(Severity::Warn, key, Some(path), format!("the token expired {} ago", span(now - exp)));
        }
        if let Some(nbf) = claims.nbf
            && now < nbf
        {
            let message = format!("the token becomes valid only in {}", span(nbf - now));
            self.add(Severity::Warn, key, Some(path), message);
        }
    }

    fn tls(&mut self, settings: &VaultSettings) {
        let ClientTls { certificate, key, ca } = settings.client_tls();
        let [certificate_key, private_key, ca_key] = match settings.security {
            _ if settings.own_tls.is_some() => ["control.certificate", "control.key", "control.ca"],
            Security::Choria { .. } => [
                "plugin.security.choria.certificate",
                "plugin.security.choria.key",
                "plugin.security.choria.ca",
            ],
            Security::Insecure | Security::File { .. } => {
                ["plugin.security.file.certificate", "plugin.security.file.key", "plugin.security.file.ca"]
            }
        };
        let before = self.found.iter().filter(|fault| fault.severity == Severity::Refuse).count();
        if let Some(path) = &certificate {
            let chain = tls::chain(certificate_key, path);
            if let Some(first) =
                self.need(certificate_key, path, chain).and_then(|chain| chain.into_iter().next())
            {
                self.certificate_times(certificate_key, path, &first);
            }
        }
        if let Some(path) = &key {
            if settings.own_tls.is_some() || matches!(settings.security, Security::Choria { .. }) {
                self.private(private_key, path, |_, path| tls::private_key(path));
            } else {
                let key = tls::private_key(path);
                self.need(private_key, path, key);
            }
        }
        if let Some(path) = &ca {
            let roots = tls::roots(path);
            self.need(ca_key, path, roots);
        }
        // Whatever is wrong with one file has been said; what is left is whether they go together.
        let after = self.found.iter().filter(|fault| fault.severity == Severity::Refuse).count();
        if settings.tls != TlsMode::Off && after == before {
            let verify = settings.tls == TlsMode::Verify;
            if let Err(error) = tls::client_config(&settings.client_tls(), verify) {
                let concerned = if verify && ca.is_none() { ca_key } else { certificate_key };
                self.add(Severity::Refuse, concerned, certificate.as_deref(), causes(&error));
            }
        }
    }

    fn certificate_times(&mut self, key: &'static str, path: &Path, der: &[u8]) {
        let now = self.now.seconds();
        let Some((not_before, not_after)) = certificate::validity(der) else { return };
        if now > not_after {
            let message = format!("the certificate expired {} ago", span(now - not_after));
            self.add(Severity::Warn, key, Some(path), message);
        } else if now < not_before {
            let message = format!("the certificate becomes valid only in {}", span(not_before - now));
            self.add(Severity::Warn, key, Some(path), message);
        }
    }

    fn verify_key(&mut self, given: &str) {
        let key = "jwt_verify_cert";
        if VerifyKey::from_text(given).is_ok() {
            return;
        }
        let path = Path::new(given);
        if !path.exists() {
            self.add(Severity::Refuse, key, None, causes(&VaultError::VerifyKeyUnusable));
            return;
        }
        let read = files::read(key, path).and_then(|(_, text)| parse_verify_key(&text, path));
        self.need(key, path, read);
    }

    fn issuer(&mut self, settings: &VaultSettings) {
        let key_key = "jwt_signing_key";
        let token_key = "jwt_signing_token";
        let key: Option<SigningKey> = settings
            .jwt_signing_key
            .as_deref()
            .and_then(|path| self.private(key_key, path, parse_key(key_key)));
        let Some(token_file) = settings.jwt_signing_token.as_deref() else { return };
        if settings.jwt_signing_key.is_none() {
            let message = "has no effect without jwt_signing_key".to_owned();
            self.add(Severity::Warn, token_key, Some(token_file), message);
        }
        let Some(token) = self.private(token_key, token_file, parse_token(token_key)) else { return };
        let Token { claims, .. } = &token;
        self.times(token_key, token_file, &claims.standard);
        if let Some(key) = key
            && let Err(error) = TokenIssuer::new(Arc::new(key), Some(claims))
        {
            self.add(Severity::Refuse, token_key, Some(token_file), causes(&error));
        }
    }
}

/// A time span in the largest unit that fits.
fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
