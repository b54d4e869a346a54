//! What the Controller is told.

/// Pause: nothing new starts, and cycles end at their next safe point.
#[derive(Debug, Clone, actix::Message)]
#[rtype(result = "()")]
pub struct PauseFleet {
    /// Who asks.
    pub who: String,
    /// Why.
    pub why: String,
    /// Now, Unix seconds.
    pub now: i64,
}

/// Resume after a pause.
#[derive(Debug, Clone, actix::Message)]
#[rtype(result = "()")]
pub struct ResumeFleet;

/// Leadership was won or lost.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct LeadershipChanged {
    /// Whether this instance leads now.
    pub leading: bool,
}

/// Take nothing new; what is in flight is finished.
#[derive(Debug, Clone, actix::Message)]
#[rtype(result = "()")]
pub struct DrainFleet;

/// Start no more helpers either: the time for what is in flight is over.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct EndFleet;
