//! What others ask of the link, and what it answers.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quartermaster_proto::choria::Identity;
use tracing::Span;
use zeroize::Zeroizing;

/// What the link tells a cycle about its requests as a whole, beside the answers to each: raised once two different replies
/// to one request have arrived, and a note of every reply that came after its request was given up. It belongs to the cycle,
/// which reads it before each step; the link keeps only a weak hold of it. It knows the cycle's span, so that what the link
/// has to say about a cycle is said inside it.
#[derive(Debug, Clone, Default)]
pub struct ConflictFlag(Arc<Raised>);

#[derive(Debug)]
struct Raised {
    is_up: AtomicBool,
    /// The actions whose replies were late, in the order of their arrival.
    late: Mutex<Vec<&'static str>>,
    cycle: Span,
}

/// Late replies of one cycle that are noted; it makes few more requests than that.
const MAX_LATE: usize = 64;

impl Default for Raised {
    fn default() -> Self {
        Self { is_up: AtomicBool::default(), late: Mutex::default(), cycle: Span::none() }
    }
}

/// The link's hold on a flag: gone when the cycle is.
#[derive(Debug, Clone)]
pub struct WeakConflictFlag(std::sync::Weak<Raised>);

impl ConflictFlag {
    /// A flag that is down.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that is down, of the cycle with this span.
    pub fn of_cycle(cycle: Span) -> Self {
        Self(Arc::new(Raised { cycle, ..Raised::default() }))
    }

    /// The span of its cycle.
    pub fn cycle(&self) -> &Span {
        &self.0.cycle
    }

    /// Raises it, for good.
    pub fn raise(&self) {
        self.0.is_up.store(true, Ordering::SeqCst);
    }

    /// True once raised.
    pub fn is_raised(&self) -> bool {
        self.0.is_up.load(Ordering::SeqCst)
    }

    /// Notes a reply to `action` whose request had been given up: the host has done that work now, however much later.
    pub fn note_late(&self, action: &'static str) {
        let mut late = self.0.late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.len() < MAX_LATE {
            late.push(action);
        }
    }

    /// How many replies to `action` were late so far.
    pub fn late(&self, action: &str) -> usize {
        let late = self.0.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.iter().filter(|known| **known == action).count()
    }

    /// A hold that does not keep it alive.
    pub fn downgrade(&self) -> WeakConflictFlag {
        WeakConflictFlag(Arc::downgrade(&self.0))
    }
}

impl WeakConflictFlag {
    /// The flag, while its cycle lives.
    pub fn upgrade(&self) -> Option<ConflictFlag> {
        self.0.upgrade().map(ConflictFlag)
    }
}

/// One remote call to one host.
pub struct Call {
    /// The host.
    pub identity: Identity,
    /// The agent, for example `choria_provision`.
    pub agent: &'static str,
    /// The action, for example `jwt`.
    pub action: &'static str,
    /// The action's inputs: the text of one JSON object. Holds secrets, so it is wiped when dropped.
    pub data: Zeroizing<String>,
    /// Raised when a second, different reply arrives.
    pub conflict: ConflictFlag,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("identity", &self.identity)
            .field("agent", &self.agent)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

/// The one reply that counted: its hash held, and host, agent and request were the right ones.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The payload: an RPC reply, see `rpc::decode_reply`.
    pub payload: Vec<u8>,
    /// From publishing the request to the reply.
    pub took: Duration,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A host's token is in one of them.
        write!(f, "Answer({} bytes after {:?})", self.payload.len(), self.took)
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no connection to any broker, or it went away while the request was being sent.
    #[error("there is no connection to the broker: {detail}")]
    NotConnected {
        /// What the last attempt ended with.
        detail: String,
    },
    /// Nothing valid came back in time.
    #[error("no reply within {after:?}")]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The request is larger than the broker takes; nothing was sent.
    #[error("the request has {size} bytes and the broker takes at most {limit}")]
    TooLarge {
        /// Bytes of the whole message.
        size: usize,
        /// The broker's `max_payload`.
        limit: usize,
    },
    /// Only replies that cannot count came back.
    #[error("the reply cannot be used: {reason}")]
    Malformed {
        /// What is wrong with the last of them, bounded and escaped.
        reason: String,
    },
    /// The request could not be built or signed.
    #[error("the request could not be made: {reason}")]
    Sign {
        /// Why.
        reason: String,
    },
    /// Too many requests are under way already.
    #[error("too many requests are under way")]
    QueueFull,
    /// The link itself is down and being restarted.
    #[error("the link is being restarted")]
    Down,
}

/// Whether the same call may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// After a wait.
    Later,
    /// It would end the same way.
    Never,
}

impl CallError {
    /// Whether trying again can help.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::NotConnected { .. }
            | Self::TimedOut { .. }
            | Self::Malformed { .. }
            | Self::Sign { .. }
            | Self::QueueFull
            | Self::Down => Retry::Later,
            Self::TooLarge { .. } => Retry::Never,
        }
    }
}

/// Where the hosts found by a broadcast go, one by one, each once. Must not block.
pub type IdentitySink = Arc<dyn Fn(Identity) -> Result<(), super::SinkFull> + Send + Sync>;

/// How a broadcast discovery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discovered {
    /// Distinct hosts that answered.
    pub found: usize,
    /// Of these, how many the sink had no room for.
    pub dropped: usize,
    /// How long it took.
    pub took: Duration,
}
