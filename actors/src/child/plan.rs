//! The life of one run, decided: what happens at each event and when the next one is due. Pure; the doing is in
//! `execute.rs`.
//!
//! The rules, in the order in which they usually matter:
//! - A process that has exited and closed both its pipes has ended.
//! - One that has exited while something it started still holds its standard output is given a short grace for the end of
//!   the output; after that a complete reply counts, and an incomplete one is waited for up to the deadline.
//! - At the deadline, and when it writes too much, its group gets TERM, a grace, then KILL.

use std::time::{Duration, Instant};

/// After KILL the kernel may still be busy with the process (a hung file system). Then we stop waiting for it.
pub const KILL_WAIT: Duration = Duration::from_secs(2);

/// Something that happened to the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// It exited; `success` is exit status 0.
    Exited {
        /// Exit status 0.
        success: bool,
    },
    /// The last holder of its standard output closed it.
    StdoutClosed,
    /// The last holder of its standard error closed it.
    StderrClosed,
    /// It wrote more than it may; nobody reads its standard output any more.
    Overflowed,
    /// The answer to `Effect::CheckReply`.
    ReplyChecked {
        /// What was read so far is a whole reply.
        complete: bool,
    },
    /// The time `Life::due` named has come.
    Due,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing but waiting for the next event.
    Wait,
    /// Ask its whole group to stop.
    Terminate,
    /// Kill its whole group.
    Kill,
    /// See whether what was read so far is a whole reply, and report it.
    CheckReply,
    /// The run is over. What is left of the group is killed.
    Finish(Ending),
}

/// How the run ended, as far as processes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself; exit status and output decide.
    Ended,
    /// We stopped it at the deadline.
    TimedOut,
    /// We stopped it because it wrote too much.
    Overflowed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// TERM was sent.
    Terminating(Ending),
    /// KILL was sent.
    Killed(Ending),
}

/// One process from start to end.
#[derive(Debug)]
pub struct Life {
    phase: Phase,
    deadline: Instant,
    due: Instant,
    grace: Duration,
    pipe_grace: Duration,
    exited: Option<bool>,
    stdout_open: bool,
    stderr_open: bool,
}

impl Life {
    /// A process that must be done at `deadline`.
    pub const fn new(deadline: Instant, grace: Duration, pipe_grace: Duration) -> Self {
        Self {
            phase: Phase::Running,
            deadline,
            due: deadline,
            grace,
            pipe_grace,
            exited: None,
            stdout_open: true,
            stderr_open: true,
        }
    }

    /// When `Input::Due` is to be reported.
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// Takes what happened and says what to do.
    pub fn handle(&mut self, input: Input, now: Instant) -> Effect {
        match input {
            Input::Exited { success } => {
                self.exited = Some(success);
                // While TERM's grace runs, a shell that died at once must not cut short what its children still do.
                if !matches!(self.phase, Phase::Terminating(_)) {
                    self.due = self.linger(now);
                }
            }
            Input::StdoutClosed => self.stdout_open = false,
            Input::StderrClosed => self.stderr_open = false,
            Input::Overflowed => {
                // Whoever reports this has closed our end.
                self.stdout_open = false;
                return self.stop(Ending::Overflowed, now);
            }
            Input::ReplyChecked { complete: true } => return Effect::Finish(Ending::Ended),
            Input::ReplyChecked { complete: false } => {
                self.due = self.linger(now);
                return Effect::Wait;
            }
            Input::Due => return self.due_now(now),
        }
        if self.exited.is_some() && !self.stdout_open && !self.stderr_open {
            return Effect::Finish(self.ending());
        }
        Effect::Wait
    }

    fn due_now(&mut self, now: Instant) -> Effect {
        match (self.phase, self.exited) {
            (Phase::Running, None) => self.stop(Ending::TimedOut, now),
            (Phase::Running, Some(success)) => {
                let reply_may_come = success && self.stdout_open && now < self.deadline;
                if reply_may_come { Effect::CheckReply } else { Effect::Finish(Ending::Ended) }
            }
            (Phase::Terminating(ending), exited) => {
                self.phase = Phase::Killed(ending);
                self.due = now + if exited.is_some() { self.pipe_grace } else { KILL_WAIT };
                Effect::Kill
            }
            (Phase::Killed(ending), _) => Effect::Finish(ending),
        }
    }

    fn stop(&mut self, ending: Ending, now: Instant) -> Effect {
        if self.phase != Phase::Running {
            return Effect::Wait;
        }
        self.phase = Phase::Terminating(ending);
        self.due = now + self.grace;
        Effect::Terminate
    }

    fn linger(&self, now: Instant) -> Instant {
        let end = now + self.pipe_grace;
        if self.phase == Phase::Running { end.min(self.deadline) } else { end }
    }

    const fn ending(&self) -> Ending {
        match self.phase {
            Phase::Running => Ending::Ended,
            Phase::Terminating(ending) | Phase::Killed(ending) => ending,
        }
    }
}
