//! One run of the helper. Dropping the future kills the helper and everything in its group.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use quartermaster_proto::helper::{HelperReply, decode_reply};

use super::error::HelperError;
use super::settings::HelperSettings;
use crate::child::{self, Ending, Execution, KILL_WAIT, Launch, Orphans, RunError, RunLimits};

/// Runs the helper once with `input` on its standard input. Every line of its standard error goes to `say`, bounded in length
/// and number. The deadline runs from this call on.
pub async fn execute(
    settings: &HelperSettings,
    orphans: &Orphans,
    input: &[u8],
    say: impl FnMut(String),
) -> Result<Execution, HelperError> {
    let launch = Launch {
        program: settings.program.clone().into(),
        arguments: settings.arguments.iter().map(Into::into).collect(),
        environment: settings.environment.clone(),
        directory: None,
    };
    let limits = RunLimits {
        timeout: settings.timeout,
        grace: settings.grace,
        pipe_grace: settings.pipe_grace,
        max_stdout: settings.max_stdout,
    };
    let complete = |output: &[u8]| decode_reply(output).is_ok();
    child::execute(&launch, &limits, orphans, input, complete, say).await.map_err(|error| {
        let program = settings.program.clone();
        match error {
            RunError::Start(source) => HelperError::Start { program, source },
            RunError::Follow(source) => HelperError::Follow { program, source },
        }
    })
}

impl Execution {
    /// The reply, if this was a good run: ended by itself, exit status 0, one JSON object and nothing else.
    pub fn reply(&self, settings: &HelperSettings) -> Result<HelperReply, HelperError> {
        let program = settings.program.clone();
        let stderr = self.stderr.clone();
        match self.ending {
            Ending::TimedOut => {
                return Err(HelperError::TimedOut { program, after: settings.timeout, stderr });
            }
            Ending::Overflowed => {
                return Err(HelperError::TooMuchOutput { program, limit: settings.max_stdout, stderr });
            }
            Ending::Ended => {}
        }
        match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(0), _)) => {}
            Some((Some(code), _)) => return Err(HelperError::Exited { program, code, stderr }),
            Some((None, signal)) => {
                return Err(HelperError::Killed { program, signal: signal.unwrap_or_default(), stderr });
            }
            None => {
                let source = io::Error::other("its exit status could not be read");
                return Err(HelperError::Follow { program, source });
            }
        }
        if self.stdout.is_empty() {
            return Err(HelperError::Silent { program, stderr });
        }
        decode_reply(&self.stdout).map_err(|source| HelperError::Reply { program, source, stderr })
    }
}

/// How long `settings` let a run take at the very most: the deadline, the grace after TERM and the wait after KILL.
pub fn longest(settings: &HelperSettings) -> Duration {
    settings.timeout + settings.grace + settings.pipe_grace + KILL_WAIT
}
