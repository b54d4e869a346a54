//! The name of an actor's position: what everybody but its owner holds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Handler, Message};
use tokio::sync::{Semaphore, watch};

/// Why a message was not taken. It was surely not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendRefused {
    /// The mailbox is at its bound.
    #[error("the mailbox of {slot} is full")]
    Full {
        /// The name of the position.
        slot: &'static str,
    },
    /// Nobody is in the position right now.
    #[error("{slot} is down")]
    Down {
        /// The name of the position.
        slot: &'static str,
    },
}

/// Why a question was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too many questions wait already; this one was not sent.
    #[error("too many requests wait for {slot}")]
    Full {
        /// The name of the position.
        slot: &'static str,
    },
    /// Nobody is in the position right now; the question was not sent.
    #[error("{slot} is down")]
    Down {
        /// The name of the position.
        slot: &'static str,
    },
    /// No answer within the deadline; whether the work was done is unknown.
    #[error("no answer from {slot} within {after:?}")]
    TimedOut {
        /// The name of the position.
        slot: &'static str,
        /// The deadline that passed.
        after: Duration,
    },
    /// The actor ended with the question in its hands; whether the work was done is unknown.
    #[error("{slot} ended before it answered")]
    Dropped {
        /// The name of the position.
        slot: &'static str,
    },
}

/// A shared name of an actor's position. Clones name the same position; it survives restarts.
///
/// Two lanes, each with its own bound: [`Slot::try_send`] respects the mailbox capacity that the actor sets in `started`
/// (exceeded at most by the number of threads that send in the same instant), and [`Slot::ask`] admits at most `max_asks`
/// callers at a time, since mailbox capacity does not bound handlers in flight. A full data lane never holds up a
/// question.
pub struct Slot<A: Actor> {
    name: &'static str,
    asks: Arc<Semaphore>,
    addr: Arc<watch::Sender<Option<Addr<A>>>>,
}

impl<A: Actor> Clone for Slot<A> {
    fn clone(&self) -> Self {
        Self { name: self.name, asks: Arc::clone(&self.asks), addr: Arc::clone(&self.addr) }
    }
}

impl<A: Actor> fmt::Debug for Slot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("name", &self.name).field("up", &self.is_up()).finish_non_exhaustive()
    }
}

impl<A: Actor> Slot<A> {
    /// An empty position. `max_asks` bounds the callers that wait in [`Slot::ask`] at once.
    pub fn new(name: &'static str, max_asks: usize) -> Self {
        let asks = Arc::new(Semaphore::new(max_asks.min(Semaphore::MAX_PERMITS)));
        Self { name, asks, addr: Arc::new(watch::Sender::new(None)) }
    }

    /// The name of the position.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Puts an actor into the position. For its owner.
    pub fn set(&self, addr: Addr<A>) {
        self.addr.send_replace(Some(addr));
    }

    /// Empties the position. For its owner.
    pub fn clear(&self) {
        self.addr.send_replace(None);
    }

    /// The actor in the position, if one is there and its mailbox is open.
    pub fn addr(&self) -> Option<Addr<A>> {
        self.addr.borrow().as_ref().filter(|addr| addr.connected()).cloned()
    }

    /// True while somebody is in the position.
    pub fn is_up(&self) -> bool {
        self.addr().is_some()
    }

    /// Waits until somebody is in the position; false when the deadline passed first.
    pub async fn up(&self, deadline: Duration) -> bool {
        let mut changes = self.addr.subscribe();
        let up = changes.wait_for(|addr| addr.as_ref().is_some_and(Addr::connected));
        matches!(tokio::time::timeout(deadline, up).await, Ok(Ok(_)))
    }

    /// Sends without waiting, or says why not.
    pub fn try_send<M>(&self, msg: M) -> Result<(), SendRefused>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        let slot = self.name;
        // Not through a clone: actix grants every clone of an address one place beyond the capacity.
        let addr = self.addr.borrow();
        let addr = addr.as_ref().ok_or(SendRefused::Down { slot })?;
        addr.try_send(msg).map_err(|refused| match refused {
            actix::dev::SendError::Full(_) => SendRefused::Full { slot },
            actix::dev::SendError::Closed(_) => SendRefused::Down { slot },
        })
    }

    /// Asks and waits for the answer, at most for the deadline.
    pub async fn ask<M>(&self, msg: M, deadline: Duration) -> Result<M::Result, AskError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        let slot = self.name;
        let Ok(_permit) = self.asks.try_acquire() else { return Err(AskError::Full { slot }) };
        let addr = self.addr().ok_or(AskError::Down { slot })?;
        match tokio::time::timeout(deadline, addr.send(msg)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(actix::MailboxError::Closed)) => Err(AskError::Dropped { slot }),
            Ok(Err(actix::MailboxError::Timeout)) | Err(_) => {
                Err(AskError::TimedOut { slot, after: deadline })
            }
        }
    }
}
