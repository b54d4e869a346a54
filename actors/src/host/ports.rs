//! What a cycle needs of the other actors, as narrow interfaces over their handles, so that tests can stand in for them.

use quartermaster_proto::time::whole_ms;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::token::ProvisioningClaims;
use quartermaster_proto::helper::HelperReply;
use secrecy::SecretString;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::resume::{Material, Resume};
use super::steps::Step;
use super::terms::{CallFailure, HelperFailure, SealedForHost};
use crate::helper::{HelperError, HelperHandle, RunHelper};
use crate::journal::{HelperRecord, Intent, JournalHandle, StepRecord};
use crate::link::{Call, CallError, ConflictFlag, LinkHandle, Retry};
use crate::provider::Outcome;
use crate::steps::{Record, StepPort};
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

/// Enters in the roster that the host of this cycle may be configured from now on, or be told to restart, and what the next
/// cycle has to make good if this one is cut off. False when the cycle is no longer the roster's: its actor was given up, or
/// its keeper was replaced, and another cycle may be under way.
pub type CommitPort = Arc<dyn Fn(u64, Resume) -> bool + Send + Sync>;

/// A step that is about to change a host, for the journal.
#[derive(Debug)]
pub struct StepIntent {
    /// The host.
    pub identity: Identity,
    /// The cycle.
    pub cycle: u64,
    /// The step.
    pub step: Step,
    /// When, Unix milliseconds.
    pub at_ms: i64,
    /// The steps so far, this one last.
    pub steps: Vec<StepRecord>,
    /// The helper run of this cycle.
    pub helper: Option<HelperRecord>,
    /// What `configure` sends.
    pub material: Option<Material>,
}

/// The journal.
pub trait JournalPort: Send + Sync {
    /// Writes down what is about to be done; ends when that is on the disk, or when there is none.
    fn intend(&self, intent: StepIntent) -> Boxed<()>;
    /// The host agreed to a step that changes it.
    fn done(&self, cycle: u64, step: Step, at_ms: i64);
    /// Writes down what a provider is about to do or has done for a host; ends when that is on the disk, or when there is none.
    fn step(&self, identity: &Identity, record: Record, at_ms: i64) -> Boxed<()>;
}

/// Calls to hosts.
pub trait LinkPort: Send + Sync {
    /// Calls a host; ends by the deadline of the agent.
    fn call(&self, call: HostCall) -> Boxed<Answer>;
}

/// What came of asking the helper.
#[derive(Debug)]
pub struct HelperAnswer {
    /// Its decision.
    pub decision: Result<Box<HelperReply>, HelperFailure>,
    /// Its process, if one was started.
    pub run: Option<HelperRecord>,
}

/// The site's helper.
pub trait HelperPort: Send + Sync {
    /// Runs the helper for a host, when a slot is free.
    fn run(&self, identity: Identity, input: Vec<u8>) -> Boxed<HelperAnswer>;
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

/// How a cycle with a claim ended, as far as other instances are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimEnd {
    /// The host is provisioned, or needs nothing.
    Done,
    /// This instance tries it again before long.
    Again,
    /// The host is as it was, and anybody's.
    Untouched,
}

/// The right to work on one host, among several instances.
pub trait ClaimedHost: Send + Sync {
    /// True while no other instance can have the host.
    fn holds(&self) -> bool;
    /// True once the claim may have run out, so that not even what was begun may be finished.
    fn has_expired(&self) -> bool;
    /// Makes sure of it before the host is changed; false when it is gone.
    fn confirm(&self) -> Boxed<bool>;
    /// Gives it back.
    fn end(&self, how: ClaimEnd);
}

/// Claims of hosts.
pub trait ClaimPort: Send + Sync {
    /// Claims a host; none when another instance has it. Waits while nothing can be claimed. `resumed`: this instance's
    /// journal knows how far an earlier life of it came, so that a claim which that life left is taken up at once.
    fn take(&self, identity: Identity, resumed: bool) -> Boxed<Option<Arc<dyn ClaimedHost>>>;
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
    /// What is about to be done, and what was.
    pub journal: Arc<dyn JournalPort>,
    /// Claims of hosts, when several instances work at once.
    pub claims: Option<Arc<dyn ClaimPort>>,
    /// Providers, when cycles have steps of theirs.
    pub steps: Option<Arc<dyn StepPort>>,
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
                sent: matches!(
                    error,
                    CallError::TimedOut { .. } | CallError::Down | CallError::Malformed { .. }
                ),
                reason: chain(&error),
            })
        })
    }
}

impl HelperPort for HelperHandle {
    fn run(&self, identity: Identity, input: Vec<u8>) -> Boxed<HelperAnswer> {
        let handle = self.clone();
        Box::pin(async move {
            let asked = Instant::now();
            match HelperHandle::run(&handle, RunHelper { identity, input }).await {
                Ok(run) => {
                    let record = HelperRecord {
                        exit: run.exited.then_some(0),
                        ending: if run.exited { "exited with status 0" } else { "answered" }.to_owned(),
                        took_ms: whole_ms(run.took),
                        stderr: run.stderr_tail,
                    };
                    HelperAnswer { decision: Ok(Box::new(run.reply)), run: Some(record) }
                }
                Err(error) => HelperAnswer {
                    run: failed_run(&error, asked.elapsed()),
                    decision: Err(HelperFailure {
                        paused: matches!(error, HelperError::Paused { .. }),
                        reason: chain(&error),
                    }),
                },
            }
        })
    }
}

/// What is told of a run that brought no decision; none when no process was started.
fn failed_run(error: &HelperError, took: Duration) -> Option<HelperRecord> {
    let (exit, ending) = match error {
        HelperError::Paused { .. } | HelperError::QueueFull { .. } | HelperError::Down => return None,
        HelperError::Provider { source, .. } => match source.outcome {
            Outcome::NotSent => return None,
            Outcome::Failed => (None, format!("answered with the error {}", source.code())),
            Outcome::Unknown => (None, format!("gave no answer: {}", source.code())),
        },
        HelperError::Exited { code, .. } => (Some(*code), format!("exited with status {code}")),
        HelperError::Killed { signal, .. } => (None, format!("killed by signal {signal}")),
        HelperError::TimedOut { after, .. } => (None, format!("stopped after {after:?}")),
        HelperError::TooMuchOutput { .. } => (None, "stopped: too much output".to_owned()),
        HelperError::Silent { .. } => (Some(0), "exited with status 0 and wrote nothing".to_owned()),
        HelperError::Reply { .. } => (Some(0), "exited with status 0 and an unusable reply".to_owned()),
        HelperError::Start { .. } => (None, "could not be started".to_owned()),
        HelperError::Follow { .. } | HelperError::Lost => (None, "was lost".to_owned()),
    };
    Some(HelperRecord { exit, ending, took_ms: whole_ms(took), stderr: error.stderr().to_vec() })
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

impl JournalPort for JournalHandle {
    fn intend(&self, intent: StepIntent) -> Boxed<()> {
        let handle = self.clone();
        let StepIntent { identity, cycle, step, at_ms, steps, helper, material } = intent;
        Box::pin(async move {
            let intent = Intent { step: step.name().to_owned(), at_ms, steps, helper };
            let secret = material.as_ref().map(Material::expose);
            JournalHandle::intend(&handle, &identity, cycle, intent, secret).await;
        })
    }

    fn done(&self, cycle: u64, step: Step, at_ms: i64) {
        JournalHandle::done(self, cycle, step.name(), at_ms);
    }

    fn step(&self, identity: &Identity, record: Record, at_ms: i64) -> Boxed<()> {
        let (handle, identity) = (self.clone(), identity.clone());
        Box::pin(async move { JournalHandle::step(&handle, &identity, &record, at_ms).await })
    }
}
