//! What is started.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// A program with everything it starts with. Plain data; no secret goes into `arguments`, which everybody on the machine can read.
#[derive(Clone)]
pub struct Launch {
    /// A path, or a name looked up in the child's `PATH`.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// The whole environment: nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts; none is this process's own directory.
    pub directory: Option<PathBuf>,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("environment", &names)
            .field("directory", &self.directory)
            .finish()
    }
}
