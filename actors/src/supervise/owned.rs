//! An owner's record of one child.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler, Recipient};
use actix_rt::{Arbiter, ArbiterHandle};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{
    ActorEnding, ChildExited, ChildId, ChildSnapshot, ChildState, Decision, ExitCause, ExitNotice, History,
    Liveness, Ping, Pulse, RestartPolicy, Slot, Stop,
};

/// What a factory receives for one new life.
#[derive(Debug)]
pub struct Birth {
    /// To be kept as a field of the actor: its drop is the end of this life.
    pub notice: ExitNotice,
    /// For declaring long waits.
    pub pulse: Pulse,
}

/// Where a child's lives run.
#[derive(Debug, Clone)]
pub enum ArbiterChoice {
    /// Each life on a thread of its own, which ends with it.
    Own,
    /// On this thread, shared with others. The replacement of a stuck life gets a thread of its own all the same.
    Shared(ArbiterHandle),
}

/// What a ping found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingOutcome {
    /// Answered and well.
    Alive,
    /// Answered, but its own work makes no progress.
    Stalled(String),
    /// No answer within the limit.
    Silent,
    /// The mailbox is closed; normally the exit notice has already said so.
    Gone,
}

/// An ending, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// For the log and the counters.
    pub ending: ActorEnding,
    /// What to do.
    pub decision: Decision,
}

/// The owner's view of a child of any type.
pub trait Ward: Send {
    /// The name of the position.
    fn name(&self) -> &'static str;
    /// The position whose end ends this one, if it is not the owner itself.
    fn under(&self) -> Option<&'static str>;
    /// What to publish.
    fn snapshot(&self) -> ChildSnapshot;
    /// Begins a new life; the old one, if any, is abandoned.
    fn start(&mut self, owner: Recipient<ChildExited>, now: Instant);
    /// Takes note of an ending and decides; none for the notice of an older life.
    fn exited(&mut self, exited: &ChildExited, now: Instant, random: f64) -> Option<Ended>;
    /// The child's answer to a ping arrived.
    fn note_alive(&mut self, generation: u64);
    /// Asks for a sign of life; none while there is no life.
    fn ping(&self, limit: Duration) -> Option<BoxFuture<'static, PingOutcome>>;
    /// True while a wait that the child declared is within its limit.
    fn is_excused(&self) -> bool;
    /// Asks the child to stop; the exit notice follows.
    fn ask_to_stop(&self);
    /// Abandons the present life, if any, and leaves the child in this state.
    fn abandon(&mut self, state: ChildState);
}

type Factory<A> = Arc<dyn Fn(Birth, &mut Context<A>) -> A + Send + Sync>;

/// One child: factory, policy, slot, history and its present life.
pub struct Owned<A: Actor<Context = Context<A>>> {
    slot: Slot<A>,
    policy: RestartPolicy,
    factory: Factory<A>,
    arbiter: ArbiterChoice,
    under: Option<&'static str>,
    generation: u64,
    history: History,
    state: ChildState,
    last_decision: String,
    life: Option<Life<A>>,
    was_stuck: bool,
}

struct Life<A: Actor> {
    addr: Addr<A>,
    pulse: Pulse,
    arbiter: Option<Arbiter>,
}

impl<A: Actor<Context = Context<A>>> fmt::Debug for Owned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned")
            .field("name", &self.slot.name())
            .field("generation", &self.generation)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl<A: Actor<Context = Context<A>>> Owned<A> {
    /// A child that does not live yet. The factory runs on the child's thread, once per life; it keeps the birth's
    /// notice in the actor.
    pub fn new(
        slot: Slot<A>,
        policy: RestartPolicy,
        factory: impl Fn(Birth, &mut Context<A>) -> A + Send + Sync + 'static,
    ) -> Self {
        Self {
            slot,
            policy,
            factory: Arc::new(factory),
            arbiter: ArbiterChoice::Own,
            under: None,
            generation: 0,
            history: History::new(),
            state: ChildState::OwnerDown,
            last_decision: String::new(),
            life: None,
            was_stuck: false,
        }
    }

    /// Runs the lives there instead of on threads of their own.
    #[must_use]
    pub fn on(mut self, arbiter: ArbiterChoice) -> Self {
        self.arbiter = arbiter;
        self
    }

    /// Ends whenever the child of this name ends, and starts after it.
    #[must_use]
    pub const fn below(mut self, owner: &'static str) -> Self {
        self.under = Some(owner);
        self
    }

    /// The endings so far.
    pub const fn history(&self) -> &History {
        &self.history
    }

    fn end_life(&mut self) {
        self.slot.clear();
        if let Some(life) = self.life.take()
            && let Some(arbiter) = life.arbiter
        {
            // A blocked thread ends when it wakes; until then nobody listens to it.
            arbiter.stop();
        }
    }
}

impl<A: Actor<Context = Context<A>>> Drop for Owned<A> {
    fn drop(&mut self) {
        self.end_life();
    }
}

impl<A> Ward for Owned<A>
where
    A: Actor<Context = Context<A>> + Handler<Ping> + Handler<Stop>,
{
    fn name(&self) -> &'static str {
        self.slot.name()
    }

    fn under(&self) -> Option<&'static str> {
        self.under
    }

    fn snapshot(&self) -> ChildSnapshot {
        ChildSnapshot {
            child: ChildId { name: self.name(), generation: self.generation },
            state: self.state,
            endings: ExitCause::ALL.map(|cause| self.history.count(cause)),
            last_decision: self.last_decision.clone(),
        }
    }

    fn start(&mut self, owner: Recipient<ChildExited>, now: Instant) {
        self.end_life();
        self.generation += 1;
        self.history.note_start(now);
        let child = ChildId { name: self.name(), generation: self.generation };
        let birth = Birth { notice: ExitNotice::new(child, owner), pulse: Pulse::new() };
        let pulse = birth.pulse.clone();
        let (arbiter, handle) = match &self.arbiter {
            ArbiterChoice::Shared(handle) if !self.was_stuck => (None, handle.clone()),
            ArbiterChoice::Shared(_) | ArbiterChoice::Own => {
                let arbiter = Arbiter::new();
                let handle = arbiter.handle();
                (Some(arbiter), handle)
            }
        };
        let factory = Arc::clone(&self.factory);
        // Should the factory panic, the birth it holds drops and the notice tells.
        let addr = A::start_in_arbiter(&handle, move |ctx| factory(birth, ctx));
        self.slot.set(addr.clone());
        self.life = Some(Life { addr, pulse, arbiter });
        self.state = ChildState::Starting;
    }

    fn exited(&mut self, exited: &ChildExited, now: Instant, random: f64) -> Option<Ended> {
        if exited.child.generation != self.generation || self.life.is_none() {
            return None;
        }
        self.was_stuck = exited.cause == ExitCause::Stuck;
        self.end_life();
        let decision = self.policy.decide(exited.cause, &self.history, now, random);
        self.history.note_end(exited.cause, &self.policy, now);
        self.state = match &decision {
            Decision::RestartAfter(delay, _) => ChildState::Waiting { delay: *delay },
            Decision::Retire(_) => ChildState::Retired,
            Decision::GiveUp(_) => ChildState::GaveUp,
        };
        let why = decision.why();
        self.last_decision = match &exited.detail {
            Some(detail) => format!("{why} ({detail})"),
            None => why.to_owned(),
        };
        let ending =
            ActorEnding { child: exited.child, cause: exited.cause, decision: self.last_decision.clone() };
        Some(Ended { ending, decision })
    }

    fn note_alive(&mut self, generation: u64) {
        if generation == self.generation && self.life.is_some() {
            self.state = ChildState::Running;
        }
    }

    fn ping(&self, limit: Duration) -> Option<BoxFuture<'static, PingOutcome>> {
        let addr = self.life.as_ref()?.addr.clone();
        let ping = async move {
            match tokio::time::timeout(limit, addr.send(Ping)).await {
                Ok(Ok(Liveness::Alive)) => PingOutcome::Alive,
                Ok(Ok(Liveness::Stalled(why))) => PingOutcome::Stalled(why),
                Ok(Err(actix::MailboxError::Closed)) => PingOutcome::Gone,
                Ok(Err(actix::MailboxError::Timeout)) | Err(_) => PingOutcome::Silent,
            }
        };
        Some(ping.boxed())
    }

    fn is_excused(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.pulse.is_excused())
    }

    fn ask_to_stop(&self) {
        if let Some(life) = &self.life {
            life.addr.do_send(Stop);
        }
    }

    fn abandon(&mut self, state: ChildState) {
        self.end_life();
        self.state = state;
    }
}
