//! What the rest of the process holds of the vault.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::choria::envelope::Proof;
use quartermaster_proto::choria::token::ProvisioningClaims;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::messages::{
    BuildTls, Do, IssueServerToken, MakeLogin, ObserveCaller, ReadProvisioningToken, SealPrivateKey,
    SignRequest, VerifyProvisioning, Work,
};
use super::{Login, SealedKey, VaultError, VaultKeeper};
use crate::supervise::Slot;

/// How long anybody waits for the vault: many times what a full queue takes.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// A handle to the vault; clones are equal and survive its restarts.
#[derive(Debug, Clone)]
pub struct VaultHandle {
    slot: Slot<VaultKeeper>,
    /// Requests carry no signature.
    unsigned: bool,
}

impl VaultHandle {
    /// A handle to whoever is in this position; `unsigned` in a network whose requests carry no signature.
    pub(super) const fn new(slot: Slot<VaultKeeper>, unsigned: bool) -> Self {
        Self { slot, unsigned }
    }

    /// The position.
    pub const fn slot(&self) -> &Slot<VaultKeeper> {
        &self.slot
    }

    async fn ask<W: Work>(&self, work: W) -> Result<W::Output, VaultError> {
        self.slot.ask(Do(work), ANSWER_DEADLINE).await.map_err(VaultError::Unanswered)?
    }

    /// The proof that goes with the request of exactly these bytes (choria.md 3.3).
    pub async fn sign_request(
        &self,
        body: impl Into<Zeroizing<Vec<u8>>> + Send,
    ) -> Result<Proof, VaultError> {
        if self.unsigned {
            // Nothing to read and nothing to compute: two threads need not be woken for each request.
            return Ok(Proof::Insecure);
        }
        self.ask(SignRequest { body: body.into() }).await
    }

    /// The login for the next connect; `nonce` is what the broker wants signed (choria.md 1.2).
    pub async fn login(&self, nonce: Option<Vec<u8>>) -> Result<Login, VaultError> {
        self.ask(MakeLogin { nonce }).await
    }

    /// The TLS configuration for the next connect, read anew from its files; none when the connection stays in clear text.
    pub async fn tls_config(&self) -> Result<Option<Arc<rustls::ClientConfig>>, VaultError> {
        self.ask(BuildTls).await
    }

    /// Our caller id: `choria=<certname>` in protocol 1, the token's `callerid` in protocol 2 (choria.md 3.5).
    pub async fn caller(&self) -> Result<String, VaultError> {
        self.ask(ObserveCaller).await
    }

    /// The token that servers expect in every call. Secret.
    pub async fn provisioning_token(&self) -> Result<SecretString, VaultError> {
        self.ask(ReadProvisioningToken).await
    }

    /// Verifies the provisioning token a host sent with the configured key.
    pub async fn verify_provisioning(
        &self,
        jwt: impl Into<String> + Send,
    ) -> Result<ProvisioningClaims, VaultError> {
        self.ask(VerifyProvisioning { jwt: jwt.into() }).await
    }

    /// Issues a server's token. A validity that had to be corrected is logged against the host.
    pub async fn issue_server_token(&self, order: ServerTokenOrder) -> Result<SecretString, VaultError> {
        self.ask(IssueServerToken { order, cycle: tracing::Span::current() }).await
    }

    /// Encrypts a private key (PEM) for the host with this public key (64 hexadecimal digits).
    pub async fn seal_private_key(
        &self,
        pem: SecretString,
        node_public: impl Into<String> + Send,
    ) -> Result<SealedKey, VaultError> {
        self.ask(SealPrivateKey { pem, node_public: node_public.into() }).await
    }
}
