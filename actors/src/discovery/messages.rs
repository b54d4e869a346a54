//! What the Discoverer is told.

use bytes::Bytes;

/// A lifecycle event arrived.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct EventArrived(pub Bytes);

/// Somebody wants a look, and why.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct LookAgain(pub &'static str);

/// A look ended.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub(super) struct LookDue;
