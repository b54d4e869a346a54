//! The threads that sign.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use actix::{Actor, Handler, SyncContext};

use super::VaultError;
use super::messages::{Do, Work};
use super::store::Store;

/// One signing thread.
pub(super) struct Worker {
    pub(super) store: Arc<Store>,
}

impl Actor for Worker {
    type Context = SyncContext<Self>;
}

impl<W: Work> Handler<Do<W>> for Worker {
    type Result = Result<W::Output, VaultError>;

    fn handle(&mut self, work: Do<W>, _: &mut SyncContext<Self>) -> Self::Result {
        // A panic would silently take this thread out of the pool, so it ends the one piece of work instead.
        catch_unwind(AssertUnwindSafe(|| work.0.run(&self.store))).unwrap_or(Err(VaultError::Panicked))
    }
}
