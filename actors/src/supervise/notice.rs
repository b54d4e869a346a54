//! The notice in a child that tells its owner of its end.

use std::fmt;

use actix::Recipient;

use super::{ChildExited, ExitCause};

/// One life of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChildId {
    /// The name of the position, as in logs and labels.
    pub name: &'static str,
    /// Counts the lives in this position from 1. A notice of an older life is ignored.
    pub generation: u64,
}

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.generation)
    }
}

/// A field of every owned actor: when the actor is dropped, in whatever way, the owner hears of it.
///
/// Only `std::thread::panicking` in a `Drop` tells a panic from an ordinary end, since actix runs `stopped` after both.
#[derive(Debug)]
pub struct ExitNotice {
    child: ChildId,
    owner: Recipient<ChildExited>,
    failure: Option<String>,
}

impl ExitNotice {
    /// A notice for this life of this child, to be kept in the actor's value.
    pub const fn new(child: ChildId, owner: Recipient<ChildExited>) -> Self {
        Self { child, owner, failure: None }
    }

    /// Which life this is.
    pub const fn child(&self) -> ChildId {
        self.child
    }

    /// Marks the coming end as a failure with this reason; the actor then stops itself. The first reason stands.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.failure.get_or_insert_with(|| reason.into());
    }
}

impl Drop for ExitNotice {
    fn drop(&mut self) {
        let detail = self.failure.take();
        let cause = if std::thread::panicking() {
            ExitCause::Panicked
        } else if detail.is_some() {
            ExitCause::Failed
        } else {
            ExitCause::Stopped
        };
        // An exit notice is control: it may exceed the owner's mailbox bound, and is lost only with the owner itself.
        self.owner.do_send(ChildExited { child: self.child, cause, detail });
    }
}
