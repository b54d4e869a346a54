//! The plan's words: what happened, in which circumstances, and what to do.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::choria::token::ProvisioningClaims;
use quartermaster_proto::helper::HelperReply;
use quartermaster_proto::provider::Members;
use regex::Regex;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::messages::Ending;
use super::steps::{Features, Step};
use crate::steps::{Ended, StepSpec, Taken};

/// What every cycle of a site has in common.
#[derive(Debug)]
pub struct PlanSettings {
    /// The parts of the cycle in use.
    pub features: Features,
    /// The `token` of the configuration, sent with every choria_provision call.
    pub token: SecretString,
    /// Names that no certificate may carry.
    pub deny: Vec<Regex>,
    /// Where hosts fetch updates.
    pub upgrades_repository: Option<String>,
    /// Whether a failed update lets the cycle go on.
    pub upgrades_optional: bool,
    /// What providers do.
    pub steps: SiteSteps,
}

/// What providers do for every host of a site.
#[derive(Debug, Clone)]
pub struct SiteSteps {
    /// Before it is configured, in this order.
    pub before: Arc<[StepSpec]>,
    /// After that and before it is told to restart, in this order.
    pub after: Arc<[StepSpec]>,
}

impl Default for SiteSteps {
    fn default() -> Self {
        Self { before: Arc::from([]), after: Arc::from([]) }
    }
}

/// The circumstances in which an input is handled.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// Now, by tokio's clock.
    pub now: Instant,
    /// A number in 0..1 that spreads delays.
    pub luck: f64,
    /// The instance is paused or stopping: end at the next safe point.
    pub paused: bool,
    /// This instance may not even finish what it began, since another may be at work on the host by now.
    pub barred: bool,
    /// Two different replies to one request of this cycle were seen.
    pub conflict: bool,
    /// How many replies to `gen25519` came so far after their request had been given up.
    pub late_keys: usize,
}

/// A call that brought no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// Why, bounded and free of control characters.
    pub reason: String,
    /// Whether another try may help.
    pub again: bool,
    /// The request went out and nothing came back in time.
    pub silent: bool,
    /// The request may have reached the host.
    pub sent: bool,
}

/// A helper run that brought no decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperFailure {
    /// Why.
    pub reason: String,
    /// It was not even started because the instance is paused.
    pub paused: bool,
}

/// What happened.
pub enum Input {
    /// The cycle begins.
    Begin,
    /// The current call ended; the bytes are the payload of a valid reply.
    Replied(Result<Vec<u8>, CallFailure>),
    /// The time asked for with [`Effect::WakeAt`] has come.
    Due,
    /// The provisioning token was checked.
    Verified(Result<Box<ProvisioningClaims>, String>),
    /// The helper answered.
    Decided(Result<Box<HelperReply>, HelperFailure>),
    /// The server token was issued.
    Issued(Result<SecretString, String>),
    /// The private key was encrypted.
    Sealed(Result<SealedForHost, String>),
    /// The providers' steps of one place ended.
    Stepped(Ended),
    /// What providers did was taken back, or what could be of it.
    TakenBack(Taken),
}

/// A private key that only the host can read.
#[derive(Debug)]
pub struct SealedForHost {
    /// The encrypted PEM.
    pub pem: String,
    /// Our ECDH public key, hex.
    pub ecdh_public: String,
}

/// What to do.
pub enum Effect {
    /// Call the host.
    Call {
        /// Of which step.
        step: Step,
        /// The remote agent.
        agent: &'static str,
        /// Its action.
        action: &'static str,
        /// The JSON of the call's data.
        data: Zeroizing<String>,
    },
    /// Check the provisioning token.
    VerifyToken {
        /// The token as the host sent it.
        jwt: String,
    },
    /// Run the helper.
    RunHelper {
        /// The JSON for its stdin.
        input: Vec<u8>,
    },
    /// Issue a server token.
    IssueToken(Box<ServerTokenOrder>),
    /// Encrypt the private key the helper returned.
    SealKey {
        /// The PEM.
        pem: SecretString,
        /// The host's latest ECDH public key, hex.
        host_public: String,
    },
    /// Let providers do these steps.
    RunSteps {
        /// Which place they have.
        step: Step,
        /// The steps.
        specs: Arc<[StepSpec]>,
        /// What they refer to; none in a cycle that goes on, whose earlier part has kept it.
        roots: Option<Members>,
    },
    /// Take back what providers did.
    TakeBack {
        /// Why.
        why: String,
    },
    /// Come back at this time.
    WakeAt(Instant),
    /// The cycle is over.
    Finish(Ending),
}

/// Replies and decisions hold tokens and keys, so only what happened is shown.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin => f.write_str("Begin"),
            Self::Replied(Ok(payload)) => write!(f, "Replied({} bytes)", payload.len()),
            Self::Replied(Err(failure)) => f.debug_tuple("Replied").field(failure).finish(),
            Self::Due => f.write_str("Due"),
            Self::Verified(result) => shown(f, "Verified", result),
            Self::Decided(result) => shown(f, "Decided", result),
            Self::Issued(result) => shown(f, "Issued", result),
            Self::Sealed(result) => shown(f, "Sealed", result),
            Self::Stepped(ended) => f.debug_tuple("Stepped").field(ended).finish(),
            Self::TakenBack(taken) => f.debug_tuple("TakenBack").field(taken).finish(),
        }
    }
}

fn shown<T, E: fmt::Debug>(f: &mut fmt::Formatter<'_>, name: &str, result: &Result<T, E>) -> fmt::Result {
    f.debug_tuple(name).field(&result.as_ref().map(|_| format_args!(".."))).finish()
}

/// Calls hold the site's token and whole configurations, so only what is to be done is shown.
impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { agent, action, .. } => write!(f, "Call({agent}#{action})"),
            Self::VerifyToken { .. } => f.write_str("VerifyToken"),
            Self::RunHelper { input } => write!(f, "RunHelper({} bytes)", input.len()),
            Self::IssueToken(_) => f.write_str("IssueToken"),
            Self::SealKey { .. } => f.write_str("SealKey"),
            Self::RunSteps { step, specs, .. } => write!(f, "RunSteps({} {})", step.name(), specs.len()),
            Self::TakeBack { why } => f.debug_tuple("TakeBack").field(why).finish(),
            Self::WakeAt(when) => f.debug_tuple("WakeAt").field(when).finish(),
            Self::Finish(ending) => f.debug_tuple("Finish").field(ending).finish(),
        }
    }
}
