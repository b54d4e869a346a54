//! Which builtins there are.

use std::fmt;

use super::exec::Exec;
use super::file::Files;
use super::work::{Hands, Work};

/// A provider that is part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Runs programs.
    Exec,
    /// Writes files below one folder.
    File,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Exec, Self::File];

    /// The builtin of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// Its name, as in `builtin/<name>`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::File => "file",
        }
    }

    /// Its schema, as the JSON that a program would print.
    pub const fn schema_text(self) -> &'static str {
        match self {
            Self::Exec => super::exec::SCHEMA,
            Self::File => super::file::SCHEMA,
        }
    }

    /// Whether it starts programs that the configuration names: what may be started at all may forbid that.
    pub const fn starts_programs(self) -> bool {
        matches!(self, Self::Exec)
    }

    pub(super) fn work(self, hands: Hands) -> Box<dyn Work> {
        match self {
            Self::Exec => Box::new(Exec::new(hands)),
            Self::File => Box::new(Files::default()),
        }
    }
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "builtin/{}", self.name())
    }
}
