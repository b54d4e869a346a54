//! What the JournalKeeper is told.

/// There is something to write.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct WritesDue;
