//! What a cycle needs of the other actors, as narrow interfaces over their handles, so that tests can stand in for them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::token::ProvisioningClaims;
use quartermaster_proto::helper::HelperReply;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::terms::{CallFailure, HelperFailure, SealedForHost};
use crate::helper::{HelperError, HelperHandle, RunHelper};
use crate::link::{Call, CallError, ConflictFlag, LinkHandle, Retry};
use crate::text::chain;
use crate::vault::VaultHandle;

/// A future that need not be sent to another thread.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// The answer to a call: the payload of a valid reply.
pub type Answer = Result<Vec<u8>, CallFailure>;

/// One call to a host.
pub struct HostCall {
    /// The host.
    pub identity: Identity,
    /// The remote agent.
    pub agent: &'static str,
    /// Its action.
    pub action: &'static str,
    /// The JSON of the call's data.
    pub data: Zeroizing<String>,
    /// Set by the link when two different replies arrive.
    pub conflict: ConflictFlag,
}

impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostCall({} {}#{})", self.identity, self.agent, self.action)
    }
}

/// Enters in the roster that the host of this cycle may be configured from now on. False when the cycle is no longer the
/// roster's: its actor was given up, or its keeper was replaced, and another cycle may be under way.
pub type CommitPort = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// Calls to hosts.
pub trait LinkPort: Send + Sync {
    /// Calls a host; ends by the deadline of the agent.
    fn call(&self, call: HostCall) -> Boxed<Answer>;
}

/// The site's helper.
pub trait HelperPort: Send + Sync {
    /// Runs the helper for a host, when a slot is free.
    fn run(&self, identity: Identity, input: Vec<u8>) -> Boxed<Result<Box<HelperReply>, HelperFailure>>;
}

/// Keys and tokens.
pub trait VaultPort: Send + Sync {
    /// Checks a provisioning token.
    fn verify(&self, jwt: String) -> Boxed<Result<Box<ProvisioningClaims>, String>>;
    /// Issues a server token.
    fn issue(&self, order: Box<ServerTokenOrder>) -> Boxed<Result<SecretString, String>>;
    /// Encrypts a private key for a host.
    fn seal(&self, pem: SecretString, host_public: String) -> Boxed<Result<SealedForHost, String>>;
}

/// Everything a cycle works with.
#[derive(Clone)]
pub struct Tools {
    /// Calls to hosts.
    pub link: Arc<dyn LinkPort>,
    /// The helper.
    pub helper: Arc<dyn HelperPort>,
    /// Keys and tokens.
    pub vault: Arc<dyn VaultPort>,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tools(..)")
    }
}

impl LinkPort for LinkHandle {
    fn call(&self, call: HostCall) -> Boxed<Answer> {
        let handle = self.clone();
        let HostCall { identity, agent, action, data, conflict } = call;
        Box::pin(async move {
            let call = Call { identity, agent, action, data, conflict };
            let answer = LinkHandle::call(&handle, call).await;
            answer.map(|answer| answer.payload).map_err(|error| CallFailure {
                again: error.retry() == Retry::Later,
                silent: matches!(error, CallError::TimedOut { .. }),
                reason: chain(&error),
            })
        })
    }
}

impl HelperPort for HelperHandle {
    fn run(&self, identity: Identity, input: Vec<u8>) -> Boxed<Result<Box<HelperReply>, HelperFailure>> {
        let handle = self.clone();
        Box::pin(async move {
            match HelperHandle::run(&handle, RunHelper { identity, input }).await {
                Ok(run) => Ok(Box::new(run.reply)),
                Err(error) => Err(HelperFailure {
                    paused: matches!(error, HelperError::Paused { .. }),
                    reason: chain(&error),
                }),
            }
        })
    }
}

impl VaultPort for VaultHandle {
    fn verify(&self, jwt: String) -> Boxed<Result<Box<ProvisioningClaims>, String>> {
        let handle = self.clone();
        Box::pin(
            async move { handle.verify_provisioning(jwt).await.map(Box::new).map_err(|error| chain(&error)) },
        )
    }

    fn issue(&self, order: Box<ServerTokenOrder>) -> Boxed<Result<SecretString, String>> {
        let handle = self.clone();
        Box::pin(async move { handle.issue_server_token(*order).await.map_err(|error| chain(&error)) })
    }

    fn seal(&self, pem: SecretString, host_public: String) -> Boxed<Result<SealedForHost, String>> {
        let handle = self.clone();
        Box::pin(async move {
            match handle.seal_private_key(pem, host_public).await {
                Ok(sealed) => Ok(SealedForHost { pem: sealed.pem, ecdh_public: sealed.ecdh_public }),
                Err(error) => Err(chain(&error)),
            }
        })
    }
}
