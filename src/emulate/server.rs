//! One emulated server as a pure state machine: a request and the time go in, what to do comes out (choria.md 4 and 14).
//!
//! It knows no socket and no clock. `start` is called once, then `receive` for each request and `wake` for each
//! [`Action::Wake`] that has come due. The life of its process is in `life.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::choria::ecdh;
use quartermaster_proto::choria::envelope::{OpenRequest, Request};
use quartermaster_proto::choria::event::EventKind;
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::{discovery, rpc};
use quartermaster_proto::time::WallClock;

use super::dice::Dice;
use super::fault::{Affliction, Fault};
use super::malformation::Malformation;
use super::profile::Profile;
use super::record::{Phase, ServerRecord};
use super::{provision, wire};

/// The agents of a server in provisioning mode, in the order in which it subscribes.
pub const AGENTS: [&str; 4] = ["discovery", "rpcutil", "choria_util", "choria_provision"];
/// The only collective of a server in provisioning mode.
pub const COLLECTIVE: &str = "provisioning";
/// A real node's agent gives up answering after this long, though its work goes on.
pub(super) const AGENT_LIMIT: Duration = Duration::from_secs(20);

/// Something the surroundings have to do for a server, in the given order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Publish `payload` on `subject` after `delay` (zero for at once).
    Publish {
        /// The NATS subject.
        subject: String,
        /// The bytes.
        payload: Vec<u8>,
        /// How long to wait first.
        delay: Duration,
    },
    /// Call [`Server::wake`] after this long.
    Wake(Duration),
    /// The process is gone: drop its connection and its subscriptions.
    Leave,
    /// The process was started anew in provisioning mode: connect and subscribe as at first.
    ComeBack,
    /// The process was started anew as an ordinary server: connect with these credentials, join these collectives.
    Serve(Serving),
    /// Something for the books.
    Note(Note),
}

/// How a provisioned server connects (choria.md 1.4).
#[derive(Clone, PartialEq, Eq)]
pub struct Serving {
    /// The identity of the new configuration.
    pub identity: String,
    /// The collectives of the new configuration.
    pub collectives: Vec<String>,
    /// server.jwt and the seed that signs the nonce; none in a network without tokens.
    pub login: Option<(String, [u8; 32])>,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving")
            .field("identity", &self.identity)
            .field("collectives", &self.collectives)
            .finish_non_exhaustive()
    }
}

/// What happened, for counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Note {
    /// The server went from one phase to another.
    Phase(Phase, Phase),
    /// A request was for this server and is being handled.
    Request,
    /// A request was dropped without a reply: schema, filter, collective, time or generation.
    Dropped,
    /// `configure` succeeded; true when this server had been configured before and not fallen back since.
    Configured(bool),
    /// The server restarts.
    Restarted,
    /// The server came back in provisioning mode.
    Relapsed,
    /// The server was upgraded.
    Updated,
    /// A caller was told that somebody else holds the lock.
    LockRefused,
    /// A caller presented a wrong token.
    TokenRefused,
    /// The server found fault with what it was given.
    Complaint,
    /// The time from the first provisioning request to the restart request.
    Cycle(Duration),
    /// The reply to work that was done was withheld, or made unreadable.
    ReplyLost,
    /// The server lost its power.
    PowerCut,
}

/// The owner of the provisioning lock and how long it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) owner: String,
    pub(super) until: WallClock,
}

/// One emulated server.
#[derive(Debug)]
pub struct Server {
    pub(super) identity: Identity,
    pub(super) profile: Arc<Profile>,
    pub(super) dice: Dice,
    pub(super) record: ServerRecord,
    /// In the memory of the process: gone after a restart.
    pub(super) lock: Option<Lock>,
    pub(super) ecdh: Option<ecdh::KeyPair>,
    /// On the disk of the server: survives a restart.
    pub(super) disk: Disk,
    afflictions: Box<[Affliction]>,
    pub(super) spent: Spent,
    /// When a server without power has it again.
    pub(super) powered_at: Option<WallClock>,
}

/// The files of a server.
#[derive(Default, Clone)]
pub(super) struct Disk {
    pub(super) seed: Option<[u8; 32]>,
    pub(super) server_jwt: Option<String>,
    pub(super) config: Option<BTreeMap<String, String>>,
    pub(super) version: Option<String>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("configured", &self.config.is_some()).finish_non_exhaustive()
    }
}

/// How often counted faults have struck.
#[derive(Debug, Default, Clone)]
pub(super) struct Spent {
    pub(super) aborted: u32,
    lost: u32,
    pub(super) relapsed: u32,
    pub(super) vanished: bool,
}

/// What an action answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Status 0 with this JSON object as outputs.
    Done(String),
    /// A refusal: status code and text.
    Refused(u8, String),
    /// Nothing is answered.
    Nothing,
}

/// The result of one action: what is published before the reply, the reply, what follows it.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) before: Vec<Action>,
    pub(super) answer: Answer,
    pub(super) after: Vec<Action>,
    /// How long the work takes before the reply.
    pub(super) takes: Duration,
}

impl Turn {
    pub(super) fn of(answer: Answer) -> Self {
        Self { before: Vec::new(), answer, after: Vec::new(), takes: Duration::ZERO }
    }

    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self::of(Answer::Refused(1, text.into()))
    }
}

impl Server {
    /// A server that has not been started yet.
    pub fn new(identity: Identity, profile: Arc<Profile>, afflictions: Vec<Affliction>) -> Self {
        let dice = Dice::new(profile.seed, identity.as_str());
        let record = ServerRecord::default();
        Self {
            identity,
            profile,
            dice,
            record,
            lock: None,
            ecdh: None,
            disk: Disk::default(),
            afflictions: afflictions.into_boxed_slice(),
            spent: Spent::default(),
            powered_at: None,
        }
    }

    /// The server's name.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What has happened to it so far.
    pub fn record(&self) -> &ServerRecord {
        &self.record
    }

    /// What is wrong with it.
    pub fn afflictions(&self) -> &[Affliction] {
        &self.afflictions
    }

    /// A request that arrived on one of the server's subjects, already opened.
    pub fn receive(&mut self, open: &OpenRequest, now: WallClock) -> Vec<Action> {
        let (true_time, now) = (now, self.own_time(now));
        if !matches!(self.record.phase, Phase::Provisioning | Phase::Restarting) {
            return Vec::new();
        }
        if !self.accepts(open, now) {
            return vec![Action::Note(Note::Dropped)];
        }
        let mut actions = vec![Action::Note(Note::Request)];
        let request = &open.request;
        if request.agent == "discovery" {
            if discovery::is_ping(&request.payload) {
                self.reply(open, "ping", discovery::PONG.to_vec(), Duration::ZERO, now, &mut actions);
            }
            return actions;
        }
        let call = match rpc::decode_request(&request.payload) {
            Ok(call) => call,
            Err(error) => {
                let text = format!("Could not process request: {error}");
                let payload = wire::payload("", &Answer::Refused(4, text)).unwrap_or_default();
                self.reply(open, "", payload, Duration::ZERO, now, &mut actions);
                return actions;
            }
        };
        self.record.last_action = Some(call.action.clone());
        if let Some(gone) = self.vanishes(&call.action, now) {
            actions.extend(gone);
            return actions;
        }
        let complaints = self.record.complaints;
        let turn = match request.agent.as_str() {
            "rpcutil" => provision::rpcutil(self, &call.action, now),
            "choria_provision" => provision::choria_provision(self, request, &call, now),
            agent => {
                Turn::of(Answer::Refused(2, format!("Unknown action {} for agent {agent}", call.action)))
            }
        };
        actions.extend(turn.before);
        let silent = self.fault(&call.action, |fault| matches!(fault, Fault::Silence)).is_some()
            || self.loses_reply(&call.action, &turn.answer);
        let done = matches!(turn.answer, Answer::Done(_));
        let lost = done && (silent || self.malformation(&call.action).is_some());
        if lost {
            self.record.lost_replies += 1;
            actions.push(Action::Note(Note::ReplyLost));
        }
        if done && call.action == "configure" {
            let complaint = self.record.complaints > complaints;
            self.record.note_configured(request, true_time, lost, complaint);
        }
        if !silent && let Some(payload) = wire::payload(&call.action, &turn.answer) {
            self.reply(open, &call.action, payload, turn.takes, now, &mut actions);
        }
        actions.extend(turn.after);
        actions
    }

    /// The lock (choria.md 4.3): taken, extended or refused for the caller of this request.
    pub(super) fn lock(&mut self, request: &Request, now: WallClock) -> bool {
        let owner = format!("{}.{}", request.sender, request.caller);
        let held = self.lock.as_ref().is_some_and(|lock| lock.owner != owner && lock.until > now);
        if !held {
            self.lock = Some(Lock { owner, until: after(now, self.profile.lock_time) });
        }
        !held
    }

    /// The first fault of that kind that concerns `action`.
    pub(super) fn fault(&self, action: &str, kind: impl Fn(&Fault) -> bool) -> Option<Fault> {
        self.afflictions
            .iter()
            .find(|drawn| kind(&drawn.fault) && drawn.action.as_deref().is_none_or(|only| only == action))
            .map(|drawn| drawn.fault.clone())
    }

    /// How this server answers wrongly to `action`.
    pub(super) fn malformation(&self, action: &str) -> Option<Malformation> {
        self.afflictions.iter().find_map(|drawn| match drawn.fault {
            Fault::Malformed(kind)
                if kind.action().is_none_or(|only| only == action)
                    && drawn.action.as_deref().is_none_or(|only| only == action) =>
            {
                Some(kind)
            }
            _ => None,
        })
    }

    /// A lifecycle event of this server as it is now.
    pub(super) fn event(&mut self, kind: EventKind, now: WallClock) -> Action {
        let version = self.version().to_owned();
        let id = self.dice.bytes16();
        wire::event(kind, self.identity.as_str(), "provision_mode_server", &version, None, id, now)
    }

    /// Changes the phase and notes it.
    pub(super) fn enter(&mut self, phase: Phase) -> Vec<Action> {
        let before = std::mem::replace(&mut self.record.phase, phase);
        if before == phase { Vec::new() } else { vec![Action::Note(Note::Phase(before, phase))] }
    }

    /// Writes down what this server holds against what it was given.
    pub(super) fn complain(&mut self, text: String) -> Action {
        self.record.last_error = Some(text);
        self.record.complaints += 1;
        Action::Note(Note::Complaint)
    }

    pub(super) fn version(&self) -> &str {
        self.disk.version.as_deref().unwrap_or(&self.profile.version)
    }

    pub(super) fn own_time(&self, now: WallClock) -> WallClock {
        match self.fault("", |fault| matches!(fault, Fault::ClockOff(_))) {
            Some(Fault::ClockOff(seconds)) => now.plus_seconds(seconds),
            _ => now,
        }
    }

    /// The checks of choria.md 3.3 that come after the schema: generation, filter, collective, time, agent.
    fn accepts(&self, open: &OpenRequest, now: WallClock) -> bool {
        let request = &open.request;
        open.generation == self.profile.generation
            && request.filter.matches(&AGENTS, self.identity.as_str())
            && request.collective == COLLECTIVE
            && wire::in_time(open.generation, request, now)
            && AGENTS.contains(&request.agent.as_str())
    }

    fn loses_reply(&mut self, action: &str, answer: &Answer) -> bool {
        let Some(Fault::LoseReply(times)) = self.fault(action, |fault| matches!(fault, Fault::LoseReply(_)))
        else {
            return false;
        };
        let loses = matches!(answer, Answer::Done(_)) && self.spent.lost < times;
        if loses {
            self.spent.lost += 1;
        }
        loses
    }

    /// Seals and sends a reply, with what this server does wrong in sending.
    fn reply(
        &mut self,
        open: &OpenRequest,
        action: &str,
        payload: Vec<u8>,
        takes: Duration,
        now: WallClock,
        actions: &mut Vec<Action>,
    ) {
        let mut delay = takes + self.profile.reply_delay;
        // Discovery is answered honestly by the worst of them: a server nobody finds tests nothing.
        let honest = action == "ping";
        if let Some(Fault::Late(late)) =
            self.fault(action, |fault| matches!(fault, Fault::Late(_))).filter(|_| !honest)
        {
            delay += late;
        }
        let hostile = if honest { None } else { self.malformation(action) };
        let publish = |payload| Action::Publish { subject: open.reply_to.clone(), payload, delay };
        let raced = wire::raced(&payload).filter(|_| !honest);
        let sealed = wire::seal(self, open, payload, hostile, now);
        actions.push(publish(sealed.clone()));
        self.record.replies += 1;
        if honest {
            return;
        }
        if self.fault(action, |fault| matches!(fault, Fault::Duplicate)).is_some() {
            actions.push(publish(sealed));
        }
        if self.fault(action, |fault| matches!(fault, Fault::TwoReplies)).is_some()
            && let Some(raced) = raced
        {
            actions.push(publish(wire::seal(self, open, raced, None, now)));
        }
    }
}

/// `delay` after `now`; saturates.
pub(super) fn after(now: WallClock, delay: Duration) -> WallClock {
    let nanos = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
    WallClock::from_nanos(now.nanos().saturating_add(nanos))
}
