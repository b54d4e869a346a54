//! What a cycle does next: one input in, one effect out. Knows no actor, socket or clock.

mod providing;
mod sending;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::choria::agents::{
    CsrReply, Gen25519Reply, InventoryReply, JwtReply, MessageReply, decode_output,
};
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::rpc::{self, RpcError};
use quartermaster_proto::choria::token::ProvisioningClaims;
use quartermaster_proto::choria::{csr, sign, version};
use quartermaster_proto::text::escape_bounded;
use secrecy::SecretString;

use super::error::HostError;
use super::messages::{Ending, Kept};
use super::resume::{Material, Resume};
use super::steps::{Features, STEPS, Step};
use super::terms::{At, CallFailure, Effect, Input, PlanSettings, SealedForHost};

/// Delay after failed try k, in milliseconds, before it is varied by half either way (choria.md 12.4; index 0 unused).
const TRY_BACKOFF_MS: [u64; 11] = [500, 750, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000];
/// How often a key may be replaced by a request that arrived late, before the cycle is given up.
const MAX_REPLACED_KEYS: u32 = 3;
/// The longest reason kept of a try that failed, in bytes.
const MAX_REASON: usize = 300;
/// The refusal of a host that is an ordinary server already (choria.md 4.4).
const NOT_PROVISIONING: &str = "not in provisioning mode";
/// The refusal of a wrong token: trying again would only write it into the host's log once more (choria.md 13.17).
const WRONG_TOKEN: &str = "Incorrect provision token";

/// One cycle.
#[derive(Debug)]
pub struct Plan {
    settings: Arc<PlanSettings>,
    identity: Identity,
    nonce: String,
    step: Step,
    tries: u32,
    /// From the first `configure` on: the host may be configured, so it must be restarted too.
    committed: bool,
    ecdh_public: String,
    claims: Option<Box<ProvisioningClaims>>,
    pubkey: Option<Gen25519Reply>,
    proven_key: Option<[u8; 32]>,
    inventory: Option<InventoryReply>,
    csr: Option<CsrReply>,
    decision: Option<Kept>,
    server_jwt: Option<SecretString>,
    sealed: Option<SealedForHost>,
    /// A failed optional update, for the log.
    remark: Option<String>,
    /// Why the last try of the current step failed.
    last_reason: Option<String>,
    /// What `configure` sends, from its first try on.
    material: Option<Material>,
    /// Where the cycle begins, when an earlier one was cut off.
    resume: Option<Resume>,
    /// See [`Self::reply_lost`].
    reply_lost: bool,
    /// How many late replies to `gen25519` there had been when the key at hand was made.
    late_keys: usize,
    /// How often the key at hand was replaced.
    replaced_keys: u32,
    /// Providers may have done something for the host that this cycle has to take back if it fails.
    steps_open: bool,
    /// How the cycle ends once that is taken back.
    ending: Option<Ending>,
}

impl Plan {
    /// A cycle for one host. `nonce` is 32 random hex characters; `kept` is the decision of an earlier cycle that found
    /// the host busy.
    pub fn new(settings: Arc<PlanSettings>, identity: Identity, nonce: String, kept: Option<Kept>) -> Self {
        Self {
            settings,
            identity,
            nonce,
            step: Step::Jwt,
            tries: 0,
            committed: false,
            ecdh_public: String::new(),
            claims: None,
            pubkey: None,
            proven_key: None,
            inventory: None,
            csr: None,
            decision: kept,
            server_jwt: None,
            sealed: None,
            remark: None,
            last_reason: None,
            material: None,
            resume: None,
            reply_lost: false,
            late_keys: 0,
            replaced_keys: 0,
            steps_open: false,
            ending: None,
        }
    }

    /// A cycle that goes on where an earlier one of this host was cut off.
    #[must_use]
    pub fn resuming(mut self, resume: Option<Resume>) -> Self {
        self.committed = resume.as_ref().is_some_and(|resume| *resume != Resume::TakeBack);
        if let Some(Resume::Configure(material)) = &resume {
            self.material = Some(material.clone());
        }
        self.resume = resume;
        self
    }

    /// What the next cycle has to make good if this one is cut off from now on: asked when a call is about to go out.
    pub fn unfinished(&self) -> Option<Resume> {
        match self.step {
            Step::Configure => self.material.clone().map(Resume::Configure),
            Step::Restart => Some(Resume::Restart { sent: true }),
            _ => None,
        }
    }

    /// Whether the next cycle has anything to make good: a try of `configure`, shutdown or update may have reached the host and
    /// nothing came back that says otherwise, or the host is configured and has not answered to its restart, for whatever reason.
    pub const fn reply_lost(&self) -> bool {
        self.reply_lost
    }

    /// The step the cycle is in.
    pub const fn step(&self) -> Step {
        self.step
    }

    /// How often the current step was tried.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// Why the last try of the current step failed, if one did.
    pub fn last_reason(&self) -> Option<&str> {
        self.last_reason.as_deref()
    }

    /// Whether the host may be configured already, so that the cycle must run to its end.
    pub const fn is_committed(&self) -> bool {
        self.committed
    }

    /// Whether the cycle can be dropped right now, in the middle of its step, with the host as it was.
    pub fn leaves_host_as_it_was(&self) -> bool {
        !self.committed && self.step.spec().is_some_and(|spec| !spec.effect)
    }

    /// Something worth a warning that did not stop the cycle; taken once.
    pub const fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    /// What to do about `input`.
    pub fn handle(&mut self, input: Input, at: At) -> Effect {
        match self.decide(input, at) {
            Ok(effect) => effect,
            Err(Stop(ending)) => self.end(ending, at),
        }
    }

    fn decide(&mut self, input: Input, at: At) -> Result<Effect, Stop> {
        match input {
            Input::Begin => self.enter_first(at),
            Input::Due => self.attempt(at),
            Input::Replied(Ok(payload)) => self.replied(&payload, at),
            Input::Replied(Err(failure)) => self.unanswered(failure, at),
            Input::Verified(Ok(claims)) => {
                self.claims = Some(claims);
                self.enter_after(Step::Jwt, at)
            }
            Input::Verified(Err(reason)) => Err(HostError::Token(reason).into()),
            Input::Decided(Ok(reply)) => {
                self.decision = Some(Kept(Arc::from(reply)));
                self.decided(at)
            }
            Input::Decided(Err(failure)) if failure.paused => Err(Stop(Ending::Interrupted)),
            Input::Decided(Err(failure)) => Err(HostError::Helper(failure.reason).into()),
            Input::Issued(Ok(token)) => {
                self.server_jwt = Some(token);
                self.enter_after(Step::ServerToken, at)
            }
            Input::Issued(Err(reason)) => Err(HostError::ServerToken(reason).into()),
            Input::Sealed(Ok(sealed)) => {
                self.sealed = Some(sealed);
                self.enter_after(Step::SealKey, at)
            }
            Input::Sealed(Err(reason)) => Err(HostError::SealKey(reason).into()),
            Input::Stepped(ended) => self.stepped(ended, at),
            Input::TakenBack(taken) => Ok(self.taken(&taken)),
        }
    }

    fn enter_first(&mut self, at: At) -> Result<Effect, Stop> {
        let step = match self.resume {
            None => return self.enter_from(0, at),
            Some(Resume::TakeBack) => return Ok(self.take_back(at)),
            Some(Resume::Configure(_)) => Step::Configure,
            // Steps after `configure` may still be to be done; those that were are left out.
            Some(Resume::Restart { sent: false }) => Step::After,
            Some(Resume::Restart { sent: true }) => Step::Restart,
        };
        self.enter_from(STEPS.iter().position(|spec| spec.step == step).unwrap_or_default(), at)
    }

    fn enter_after(&mut self, step: Step, at: At) -> Result<Effect, Stop> {
        let next = STEPS.iter().position(|spec| spec.step == step).map_or(STEPS.len(), |index| index + 1);
        self.enter_from(next, at)
    }

    fn enter_from(&mut self, index: usize, at: At) -> Result<Effect, Stop> {
        let features = self.settings.features;
        let next = STEPS.iter().skip(index).find(|spec| (spec.wanted)(features) && self.applies(spec.step));
        let Some(spec) = next else { return Err(Stop(Ending::Provisioned)) };
        self.step = spec.step;
        self.tries = 0;
        self.last_reason = None;
        self.reply_lost = spec.step == Step::Restart;
        self.attempt(at)
    }

    /// Whether the helper's decision asks for this step.
    fn applies(&self, step: Step) -> bool {
        let decision = self.decision.as_ref().map(|kept| kept.0.as_ref());
        match step {
            // A decision kept from an earlier cycle stands.
            Step::Helper => decision.is_none(),
            Step::Shutdown => decision.is_some_and(|d| d.shutdown),
            Step::SealKey => decision.is_some_and(|d| d.key.is_some()),
            Step::Update => decision.is_some_and(|d| !d.upgrade.is_empty()) && self.wants_update(),
            _ => true,
        }
    }

    /// Starts the current step, or tries it again: the one place where a cycle can be interrupted.
    fn attempt(&mut self, at: At) -> Result<Effect, Stop> {
        if at.barred {
            return Err(if self.committed { HostError::Barred.into() } else { Stop(Ending::Interrupted) });
        }
        if !self.committed {
            if at.conflict {
                return Err(HostError::Conflict.into());
            }
            if at.paused {
                return Err(Stop(Ending::Interrupted));
            }
        }
        if self.proven_key.is_some() && at.late_keys > self.late_keys {
            return self.key_replaced(at);
        }
        if self.step == Step::Update
            && let Err(reason) = self.update_possible()
        {
            return self.update_failed(reason, at);
        }
        self.tries += 1;
        match self.step {
            Step::Helper => Ok(Effect::RunHelper { input: self.helper_input()? }),
            Step::ServerToken => Ok(Effect::IssueToken(Box::new(self.token_order()?))),
            Step::SealKey => self.seal(),
            Step::Before | Step::After => Ok(self.run_steps()),
            step => {
                let Some((agent, action)) = step.spec().and_then(|spec| spec.call) else {
                    return Err(Stop(Ending::Provisioned));
                };
                let data = self.call_data(step)?;
                if step == Step::Configure {
                    self.committed = true;
                }
                Ok(Effect::Call { step, agent, action, data })
            }
        }
    }

    fn replied(&mut self, payload: &[u8], at: At) -> Result<Effect, Stop> {
        self.reply_lost = false;
        let reply = match rpc::decode_reply(payload) {
            Ok(reply) => reply,
            Err(error) => return self.unusable(&error, at),
        };
        let result = match self.step {
            Step::Jwt => decode_output(&reply).map(|output| self.got_jwt(output)),
            Step::Gen25519 => decode_output(&reply).map(|output| self.got_pubkey(output, at)),
            Step::Inventory => decode_output(&reply).map(|output| self.got_inventory(output, at)),
            Step::Gencsr => decode_output(&reply).map(|output| self.got_csr(output, at)),
            Step::Shutdown => {
                message(&reply).map(|()| Err(Stop(Ending::ShutDown { msg: self.helper_msg() })))
            }
            Step::Update => message(&reply).map(|()| Err(Stop(Ending::Updating))),
            Step::Configure => message(&reply).map(|()| self.enter_after(Step::Configure, at)),
            Step::Restart => message(&reply).map(|()| Err(Stop(Ending::Provisioned))),
            Step::Helper
            | Step::ServerToken
            | Step::SealKey
            | Step::Before
            | Step::After
            | Step::TakeBack => return Err(Stop(Ending::Interrupted)),
        };
        match result {
            Ok(next) => next,
            Err(error) if error.is_lock_refusal() => {
                Err(Stop(Ending::Busy { kept: self.decision_to_keep() }))
            }
            // It was told to restart before, and has.
            Err(RpcError::Refused { message, .. })
                if self.may_have_restarted() && message.contains(NOT_PROVISIONING) =>
            {
                Err(Stop(Ending::Provisioned))
            }
            Err(RpcError::Refused { message, .. })
                if !self.committed && message.contains(NOT_PROVISIONING) =>
            {
                Err(Stop(Ending::AlreadyServing))
            }
            Err(RpcError::Refused { message, .. }) => {
                let again = !message.contains(WRONG_TOKEN);
                self.call_failed(format!("it refused: {message}"), again, at)
            }
            Err(error) => self.unusable(&error, at),
        }
    }

    /// The decision, for the next cycle. A decision about a key or a CSR dies with it: the next cycle makes new ones.
    fn decision_to_keep(&mut self) -> Option<Kept> {
        let Features { pki, ed25519, .. } = self.settings.features;
        if pki || ed25519 { None } else { self.decision.take() }
    }

    fn got_jwt(&mut self, output: JwtReply) -> Result<Effect, Stop> {
        if output.jwt.is_empty() {
            return Err(HostError::Token("it sent none".to_owned()).into());
        }
        // Every call makes the host forget its earlier ECDH key, so the newest reply is the one that counts.
        self.ecdh_public = output.ecdh_public;
        Ok(Effect::VerifyToken { jwt: output.jwt })
    }

    fn got_pubkey(&mut self, output: Gen25519Reply, at: At) -> Result<Effect, Stop> {
        let proven = sign::verify_nonce(&output.public_key, &self.nonce, &output.signature)
            .map_err(|error| HostError::KeyProof(error.to_string()))?;
        self.proven_key = Some(proven);
        self.late_keys = at.late_keys;
        self.pubkey = Some(output);
        self.enter_after(Step::Gen25519, at)
    }

    /// A request of ours for a key had been given up and reached the host all the same, after the one that was answered: a
    /// broker that froze delivers what it held. The host has another key now than the one at hand, so everything that was made
    /// of that is made again, also when the host was configured with it already.
    fn key_replaced(&mut self, at: At) -> Result<Effect, Stop> {
        // What providers did may rest on the earlier one.
        if self.steps_open {
            return Err(HostError::KeyProof("a late request replaced it".to_owned()).into());
        }
        self.replaced_keys += 1;
        if self.replaced_keys > MAX_REPLACED_KEYS {
            return Err(HostError::KeyProof("late requests replace it again and again".to_owned()).into());
        }
        (self.proven_key, self.pubkey) = (None, None);
        (self.decision, self.server_jwt, self.sealed, self.material) = (None, None, None, None);
        self.enter_from(STEPS.iter().position(|spec| spec.step == Step::Gen25519).unwrap_or_default(), at)
    }

    fn got_inventory(&mut self, output: InventoryReply, at: At) -> Result<Effect, Stop> {
        self.inventory = Some(output);
        self.enter_after(Step::Inventory, at)
    }

    fn got_csr(&mut self, output: CsrReply, at: At) -> Result<Effect, Stop> {
        csr::examine(&output.csr)
            .and_then(|facts| csr::judge(&facts, &self.identity, &self.settings.deny))
            .map_err(|error| HostError::Csr(error.to_string()))?;
        self.csr = Some(output);
        self.enter_after(Step::Gencsr, at)
    }

    fn decided(&mut self, at: At) -> Result<Effect, Stop> {
        let Some(decision) = self.decision.as_ref().map(|kept| Arc::clone(&kept.0)) else {
            return Err(HostError::Helper("it gave no decision".to_owned()).into());
        };
        if decision.defer {
            return Err(Stop(Ending::Deferred { msg: self.helper_msg() }));
        }
        if !decision.shutdown && decision.configuration.is_empty() {
            return Err(HostError::EmptyConfiguration.into());
        }
        self.enter_after(Step::Helper, at)
    }

    fn helper_msg(&self) -> String {
        self.decision.as_ref().map(|kept| escape_bounded(&kept.0.msg, 300)).unwrap_or_default()
    }

    /// Versions that are equal by RPM's rules need no update (choria.md 10.4).
    fn wants_update(&self) -> bool {
        let wanted = self.decision.as_ref().map_or("", |kept| kept.0.upgrade.as_str());
        let current = self.inventory.as_ref().map_or("", |inventory| inventory.version.as_str());
        current.is_empty() || version::compare(wanted, current) != std::cmp::Ordering::Equal
    }

    fn update_possible(&self) -> Result<(), String> {
        let inventory = self.inventory.as_ref();
        if self.settings.upgrades_repository.is_none() {
            return Err("upgrades_repository is not configured".to_owned());
        }
        if inventory.is_none_or(|inventory| inventory.version.is_empty()) {
            return Err("its inventory names no version".to_owned());
        }
        if !inventory.is_some_and(|inventory| inventory.upgradable) {
            return Err("it does not support upgrades".to_owned());
        }
        Ok(())
    }

    fn update_failed(&mut self, reason: String, at: At) -> Result<Effect, Stop> {
        let version = self.decision.as_ref().map_or_else(String::new, |kept| kept.0.upgrade.clone());
        let error = HostError::Update { version, reason };
        if self.settings.upgrades_optional {
            self.remark = Some(format!("{error}; upgrades are optional, going on"));
            return self.enter_after(Step::Update, at);
        }
        Err(error.into())
    }

    fn unusable(&mut self, error: &RpcError, at: At) -> Result<Effect, Stop> {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        self.call_failed(format!("unusable answer: {error}{cause}"), true, at)
    }

    /// A server may end before its agreement to shut down is on the wire, and nobody answers the later tries: silence on
    /// all of them is what was asked for. One that lives on after all is found again.
    fn unanswered(&mut self, failure: CallFailure, at: At) -> Result<Effect, Stop> {
        let spec = self.step.spec();
        let last = spec.is_none_or(|spec| self.tries >= spec.tries);
        // A later try that never left takes nothing back of an earlier one that may have arrived.
        self.reply_lost |= failure.sent && spec.is_some_and(|spec| spec.effect);
        // It was told to restart by a cycle that was cut off, and has most likely gone. If not, it is found again.
        if failure.silent && self.may_have_restarted() {
            return Err(Stop(Ending::Provisioned));
        }
        if self.step == Step::Shutdown && failure.silent && last {
            return Err(Stop(Ending::ShutDown { msg: self.helper_msg() }));
        }
        self.call_failed(failure.reason, failure.again, at)
    }

    fn may_have_restarted(&self) -> bool {
        self.step == Step::Restart && self.resume == Some(Resume::Restart { sent: true })
    }

    fn call_failed(&mut self, reason: String, again: bool, at: At) -> Result<Effect, Stop> {
        let most = self.step.spec().map_or(1, |spec| spec.tries);
        if again && self.tries < most {
            self.last_reason = Some(escape_bounded(&reason, MAX_REASON));
            return Ok(Effect::WakeAt(at.now + try_backoff(self.tries, at.luck)));
        }
        if self.step == Step::Update {
            return self.update_failed(reason, at);
        }
        Err(HostError::Call { step: self.step, tries: self.tries, reason }.into())
    }
}

/// The end of a cycle, as the error side of a decision, so that `?` ends it.
struct Stop(Ending);

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        Self(Ending::Failed { cause: error.cause(), error: escape_bounded(&error.to_string(), 500) })
    }
}

/// An action whose only output is its message.
fn message(reply: &rpc::RpcReply) -> Result<(), RpcError> {
    decode_output::<MessageReply>(reply).map(|_| ())
}

/// The delay after failed try `tries`, varied by half either way.
fn try_backoff(tries: u32, luck: f64) -> Duration {
    let index = usize::try_from(tries).unwrap_or(usize::MAX).min(TRY_BACKOFF_MS.len() - 1);
    let base = TRY_BACKOFF_MS.get(index).copied().unwrap_or(5000);
    Duration::from_millis(base).mul_f64(0.5 + luck.clamp(0.0, 1.0))
}
