//! Fail points: any owned actor can be made to end in every way there is. Only with the feature `testing`.

use std::sync::{Condvar, Mutex, PoisonError};

use actix::{Actor, ActorContext, AsyncContext, Context, Message, WrapFuture};

/// A way to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Stop as if done.
    Stop,
    /// Panic in a message handler.
    Panic,
    /// Panic in a future the actor spawned.
    PanicInFuture,
    /// Close the mailbox lane for ever without ending; the thread goes on.
    Hang,
    /// Block the whole thread until [`release_blocked_threads`].
    BlockThread,
}

impl Ending {
    /// Every ending.
    pub const ALL: [Self; 5] = [Self::Stop, Self::Panic, Self::PanicInFuture, Self::Hang, Self::BlockThread];
}

/// To any owned actor: end like this.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct Force(pub Ending);

/// How often blocked threads were released; a thread waits for a number above the one it saw.
static RELEASES: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

/// Carries a forced ending out. Called by the handler that [`crate::supervised!`] writes.
pub fn force<A: Actor<Context = Context<A>>>(me: &A, ending: Ending, ctx: &mut Context<A>) {
    match ending {
        Ending::Stop => ctx.stop(),
        Ending::Panic => forced_panic(),
        Ending::PanicInFuture => {
            ctx.spawn(async { forced_panic() }.into_actor(me));
        }
        Ending::Hang => {
            ctx.wait(std::future::pending::<()>().into_actor(me));
        }
        Ending::BlockThread => {
            let (releases, changed) = &RELEASES;
            let guard = releases.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = *guard;
            drop(changed.wait_while(guard, |now| *now == seen));
        }
    }
}

/// Lets every thread go that [`Ending::BlockThread`] blocked so far.
pub fn release_blocked_threads() {
    let (releases, changed) = &RELEASES;
    *releases.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    changed.notify_all();
}

#[expect(
    clippy::panic,
    reason = "a fail point whose purpose is to panic; absent without the feature testing"
)]
fn forced_panic() {
    panic!("forced by a fail point")
}
