//! A builtin in the place of a process: the same frames, over streams inside this process.

use std::fmt;

use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::settings::ProviderSettings;
use crate::builtin::{Builtin, BuiltinHandle, Hands, Voice, serve};
use crate::child::Orphans;
use crate::text::causes;

/// Bytes that may wait in a stream, as in a pipe.
const PIPE: usize = 64 * 1024;

/// The three streams, as a process's pipes.
#[derive(Debug)]
pub struct InsidePipes {
    pub stdin: DuplexStream,
    pub stdout: DuplexStream,
    pub stderr: DuplexStream,
}

/// A builtin that serves. Dropping it ends it, with everything it started.
pub struct Inside {
    serving: AbortHandle,
    /// How it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    _tasks: JoinSet<()>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside(..)")
    }
}

impl Inside {
    /// Starts one on this thread.
    pub fn start(builtin: Builtin, settings: &ProviderSettings, orphans: Orphans) -> (Self, InsidePipes) {
        let (stdin, input) = duplex(PIPE);
        let (stdout, output) = duplex(PIPE);
        let (stderr, errors) = duplex(PIPE);
        let (voice, words) = Voice::new();
        let hands = Hands {
            environment: settings.environment.clone(),
            directory: settings.directory.clone(),
            orphans,
            voice,
        };
        let (end, ended) = watch::channel(None);
        let mut tasks = JoinSet::new();
        let handle = BuiltinHandle::start(builtin, hands);
        let serving = tasks.spawn_local(async move {
            let how = match serve(handle, input, output).await {
                Ok(()) => "ended".to_owned(),
                Err(error) => causes(&error),
            };
            end.send_replace(Some(how));
        });
        tasks.spawn_local(say(words, errors));
        (Self { serving, ended, _tasks: tasks }, InsidePipes { stdin, stdout, stderr })
    }

    /// Ends it at once.
    pub fn end(&self) {
        self.serving.abort();
    }

    /// Waits until it has ended, and says how.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        // One that was ended says nothing more.
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
        how.unwrap_or_else(|| "was ended".to_owned())
    }
}

/// Ends when nobody says anything any more: its builtin has gone.
async fn say(mut words: mpsc::Receiver<String>, mut errors: DuplexStream) {
    while let Some(line) = words.recv().await {
        if errors.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            break;
        }
    }
}
