//! Fail points: any owned actor can be made to end in every way there is. Only with the feature `testing`.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use actix::{Actor, ActorContext, AsyncContext, Context, Message, System, WrapFuture};

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

/// How often the blocked threads of each actix system were released. Tests have a system each, and must not release one
/// another's threads.
static RELEASES: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());
static RELEASED: Condvar = Condvar::new();

fn releases() -> MutexGuard<'static, BTreeMap<usize, u64>> {
    RELEASES.lock().unwrap_or_else(PoisonError::into_inner)
}

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
            let system = System::current().id();
            let guard = releases();
            let seen = guard.get(&system).copied();
            drop(RELEASED.wait_while(guard, |now| now.get(&system).copied() == seen));
        }
    }
}

/// Lets every thread of the current actix system go that [`Ending::BlockThread`] has blocked so far.
pub fn release_blocked_threads() {
    *releases().entry(System::current().id()).or_default() += 1;
    RELEASED.notify_all();
}

#[expect(
    clippy::panic,
    reason = "a fail point whose purpose is to panic; absent without the feature testing"
)]
fn forced_panic() {
    panic!("forced by a fail point")
}
