//! What the link needs from whoever holds the keys: asked again at every connect, so that a renewed certificate, token or
//! password is taken up without a restart.

use std::sync::Arc;

use futures::future::BoxFuture;
use quartermaster_proto::choria::envelope::Proof;
use secrecy::SecretString;
use zeroize::Zeroizing;

/// What goes into one CONNECT (choria.md 1.2). Absent parts are not sent.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// User name.
    pub user: Option<String>,
    /// Password of that user.
    pub password: Option<SecretString>,
    /// The `auth_token`: in an issuer network the client token.
    pub token: Option<SecretString>,
    /// The `jwt` field: in an issuer network the same token again.
    pub jwt: Option<SecretString>,
    /// The raw signature over the broker's nonce; sent as URL-safe base64 without padding.
    pub signature: Option<Vec<u8>>,
}

/// Why credentials could not be had: a file that cannot be read, a key that does not fit, a vault that is down.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{doing}: {reason}")]
pub struct CredentialsError {
    /// What was being done, for example `read the client token`.
    pub doing: &'static str,
    /// Why it failed, without any secret.
    pub reason: String,
}

/// The keeper of the keys, as the link sees it.
pub trait Credentials: Send + Sync + 'static {
    /// The caller id that replies are addressed to: `choria=<certname>` in protocol 1, the token's `callerid` in 2.
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>>;

    /// The TLS configuration for the next connect, read anew from its files; `None` when the connection stays in clear
    /// text.
    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>>;

    /// The login for the next connect. `nonce` is what the broker asked to have signed, when it did.
    fn login(&self, nonce: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>>;

    /// The proof that goes with a request whose exact bytes are `body`.
    fn sign_request(&self, body: Zeroizing<Vec<u8>>) -> BoxFuture<'static, Result<Proof, CredentialsError>>;
}
