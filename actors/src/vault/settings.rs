//! What the vault is told: paths and secrets, plain.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

/// Client certificate, its key, and the CA servers are verified with. Each may be absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// Client certificate chain, PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// CA certificates, PEM.
    pub ca: Option<PathBuf>,
}

/// How requests are vouched for (choria.md 3.3, 11.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// Protocol 1 without signatures.
    Insecure,
    /// Protocol 1, RSA-signed with a client certificate (provider `file`).
    File {
        /// The certificate sent along with each request, PEM, verbatim.
        certificate: PathBuf,
        /// Its private key, RSA, PEM.
        key: PathBuf,
        /// CA certificates, PEM.
        ca: PathBuf,
    },
    /// Protocol 2, signed with an Ed25519 seed that a client token vouches for (provider `choria`).
    Choria {
        /// The client token.
        token_file: PathBuf,
        /// The seed, 64 hexadecimal digits.
        seed_file: PathBuf,
        /// TLS client certificate, optional.
        tls: ClientTls,
    },
}

/// How the broker connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Clear text.
    Off,
    /// TLS whose server certificate is not verified, as the peer does without a CA.
    Insecure,
    /// TLS whose server certificate must verify with the CA.
    Verify,
}

/// Everything the vault is told. Plain data; files are opened by the vault alone.
#[derive(Clone)]
pub struct VaultSettings {
    /// The name of its position among the actors.
    pub position: &'static str,
    /// How requests are vouched for.
    pub security: Security,
    /// Our name in protocol 1: the caller id is `choria=<certname>`.
    pub certname: String,
    /// How the broker connection is protected.
    pub tls: TlsMode,
    /// The user for the broker; `provisioner` when there is a password and no other name.
    pub broker_user: Option<String>,
    /// The broker's provisioning password.
    pub broker_password: Option<SecretString>,
    /// A NATS credentials file to log in with, for a connection that is no member of a Choria network.
    pub nats_credentials: Option<PathBuf>,
    /// TLS files other than those that go with the security.
    pub own_tls: Option<ClientTls>,
    /// The token that servers expect in every call.
    pub provisioning_token: SecretString,
    /// What provisioning tokens are verified with: a path, or 64 hexadecimal digits (`jwt_verify_cert`).
    pub jwt_verify_cert: Option<String>,
    /// What server tokens are signed with (`jwt_signing_key`).
    pub jwt_signing_key: Option<PathBuf>,
    /// The chain issuer's token (`jwt_signing_token`).
    pub jwt_signing_token: Option<PathBuf>,
    /// How long server tokens are valid unless the helper says otherwise (`server_jwt_validity`).
    pub server_jwt_validity: Duration,
    /// Signing threads.
    pub threads: NonZeroUsize,
    /// How many requests may wait or be worked on at once; more are refused.
    pub queue: NonZeroUsize,
}

/// The user the broker knows the provisioner by (choria.md 1.2).
pub const PROVISIONER_USER: &str = "provisioner";

/// Requests that may be in the vault at once unless configured otherwise.
pub const DEFAULT_QUEUE: usize = 4096;

impl VaultSettings {
    /// Settings of an unsigned network without tokens, to be filled in.
    pub fn new(certname: impl Into<String>) -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            position: "vault",
            security: Security::Insecure,
            certname: certname.into(),
            tls: TlsMode::Off,
            broker_user: None,
            broker_password: None,
            nats_credentials: None,
            own_tls: None,
            provisioning_token: SecretString::default(),
            jwt_verify_cert: None,
            jwt_signing_key: None,
            jwt_signing_token: None,
            server_jwt_validity: Duration::from_hours(365 * 24),
            threads,
            queue: NonZeroUsize::new(DEFAULT_QUEUE).unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// Whether requests carry no signature.
    pub(super) const fn unsigned(&self) -> bool {
        matches!(self.security, Security::Insecure)
    }

    /// The TLS files in force.
    pub fn client_tls(&self) -> ClientTls {
        if let Some(own) = &self.own_tls {
            return own.clone();
        }
        match &self.security {
            Security::Insecure => ClientTls::default(),
            Security::File { certificate, key, ca } => ClientTls {
                certificate: Some(certificate.clone()),
                key: Some(key.clone()),
                ca: Some(ca.clone()),
            },
            Security::Choria { tls, .. } => tls.clone(),
        }
    }
}

impl fmt::Debug for VaultSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultSettings")
            .field("position", &self.position)
            .field("security", &self.security)
            .field("certname", &self.certname)
            .field("tls", &self.tls)
            .field("broker_user", &self.broker_user)
            .field("broker_password", &self.broker_password.as_ref().map(|_| "[redacted]"))
            .field("nats_credentials", &self.nats_credentials)
            .field("own_tls", &self.own_tls)
            .field("provisioning_token", &"[redacted]")
            .field("jwt_verify_cert", &self.jwt_verify_cert)
            .field("jwt_signing_key", &self.jwt_signing_key)
            .field("jwt_signing_token", &self.jwt_signing_token)
            .field("server_jwt_validity", &self.server_jwt_validity)
            .field("threads", &self.threads)
            .field("queue", &self.queue)
            .finish()
    }
}
