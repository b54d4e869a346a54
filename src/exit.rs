//! The documented exit codes. Scripts and service managers rely on them; docs/configuration.md lists them for people.

use std::process::ExitCode;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// 0: what was asked for was done.
    Success,
    /// 1: it started and then could not go on (an actor gave up, a part that must work failed for good).
    Failure,
    /// 2: the command line is wrong.
    Usage,
    /// 3: a configuration file is wrong; every fault was printed.
    Config,
    /// 4: the configuration is right but something it names is not: a key, token, helper or directory is missing,
    /// unreadable or unusable.
    Files,
    /// 5: the broker could not be reached or refused the login.
    Broker,
    /// 6: the work was done, but not all of it succeeded (a demo or load run in which a server was not provisioned, a helper whose reply
    /// is not acceptable, a question to several instances of which some did not answer).
    Incomplete,
    /// 7: no instance answered.
    NoInstance,
    /// 8: every instance that answered refused.
    Refused,
    /// 9: a signal ended it before all was done.
    Interrupted,
    /// 75: another client of the node side holds the seat of this machine.
    Taken,
    /// 78: a program of the node side cannot work as it is configured, and starting it again changes nothing.
    Unusable,
}

impl Exit {
    /// The number the process leaves with.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Files => 4,
            Self::Broker => 5,
            Self::Incomplete => 6,
            Self::NoInstance => 7,
            Self::Refused => 8,
            Self::Interrupted => 9,
            Self::Taken => 75,
            Self::Unusable => 78,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
