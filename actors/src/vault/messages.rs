//! What the vault does, one type per kind of work, and what comes back.

use std::fmt;
use std::sync::Arc;

use actix::Message;
use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::choria::envelope::Proof;
use quartermaster_proto::choria::token::ProvisioningClaims;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::VaultError;
use super::store::Store;

/// What goes into one CONNECT (choria.md 1.2). Absent parts are not sent.
#[derive(Clone, Default)]
pub struct Login {
    /// User name.
    pub user: Option<String>,
    /// Password of that user.
    pub password: Option<SecretString>,
    /// The `auth_token`: in an issuer network the client token.
    pub token: Option<SecretString>,
    /// The `jwt` field: in an issuer network the same token again.
    pub jwt: Option<SecretString>,
    /// The raw signature over the broker's nonce, 64 bytes.
    pub signature: Option<Vec<u8>>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("password", &self.password.is_some())
            .field("token", &self.token.is_some())
            .field("signature", &self.signature.is_some())
            .finish_non_exhaustive()
    }
}

/// A private key encrypted for one host.
#[derive(Clone)]
pub struct SealedKey {
    /// The encrypted PEM block: `key` of configure.
    pub pem: String,
    /// Our public half of the exchange, 64 hexadecimal digits: `ecdh_public` of configure.
    pub ecdh_public: String,
}

impl fmt::Debug for SealedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedKey").field("ecdh_public", &self.ecdh_public).finish_non_exhaustive()
    }
}

/// One kind of work.
pub(super) trait Work: Send + 'static {
    /// What comes of it.
    type Output: Send + 'static;

    /// Does it; may read files and takes as long as a signature takes.
    fn run(self, store: &Store) -> Result<Self::Output, VaultError>;
}

/// The message around work.
pub(super) struct Do<W>(pub(super) W);

impl<W: Work> Message for Do<W> {
    type Result = Result<W::Output, VaultError>;
}

/// Signs a request's body.
pub(super) struct SignRequest {
    pub(super) body: Zeroizing<Vec<u8>>,
}

impl Work for SignRequest {
    type Output = Proof;

    fn run(self, store: &Store) -> Result<Proof, VaultError> {
        store.sign_request(&self.body)
    }
}

/// Makes the login for a connect.
pub(super) struct MakeLogin {
    pub(super) nonce: Option<Vec<u8>>,
}

impl Work for MakeLogin {
    type Output = Login;

    fn run(self, store: &Store) -> Result<Login, VaultError> {
        store.login(self.nonce.as_deref())
    }
}

/// Builds the TLS configuration for a connect.
pub(super) struct BuildTls;

impl Work for BuildTls {
    type Output = Option<Arc<rustls::ClientConfig>>;

    fn run(self, store: &Store) -> Result<Self::Output, VaultError> {
        store.tls_config()
    }
}

/// Asks for our caller id.
pub(super) struct ObserveCaller;

impl Work for ObserveCaller {
    type Output = String;

    fn run(self, store: &Store) -> Result<String, VaultError> {
        store.caller()
    }
}

/// Asks for the token that servers expect.
pub(super) struct ReadProvisioningToken;

impl Work for ReadProvisioningToken {
    type Output = SecretString;

    fn run(self, store: &Store) -> Result<SecretString, VaultError> {
        Ok(store.provisioning_token())
    }
}

/// Verifies a host's provisioning token.
pub(super) struct VerifyProvisioning {
    pub(super) jwt: String,
}

impl Work for VerifyProvisioning {
    type Output = ProvisioningClaims;

    fn run(self, store: &Store) -> Result<ProvisioningClaims, VaultError> {
        store.verify_provisioning(&self.jwt)
    }
}

/// Issues a server token.
pub(super) struct IssueServerToken {
    pub(super) order: ServerTokenOrder,
    /// The span of the cycle it is for.
    pub(super) cycle: tracing::Span,
}

impl Work for IssueServerToken {
    type Output = SecretString;

    fn run(self, store: &Store) -> Result<SecretString, VaultError> {
        self.cycle.in_scope(|| store.issue_server_token(&self.order))
    }
}

/// Encrypts a private key for a host.
pub(super) struct SealPrivateKey {
    pub(super) pem: SecretString,
    pub(super) node_public: String,
}

impl Work for SealPrivateKey {
    type Output = SealedKey;

    fn run(self, store: &Store) -> Result<SealedKey, VaultError> {
        store.seal_private_key(&self.pem, &self.node_public)
    }
}
