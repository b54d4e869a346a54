//! The one lane to the engine that all modules share.

use std::path::PathBuf;

use quartermaster_proto::mesh::{fill::Write, plan::Digest};
use tokio::sync::{mpsc, oneshot};

use super::session::Session;
use crate::core::EngineAnswer;

/// Most requests that wait for the connection; whoever comes then waits before the request is taken.
const LANE: usize = 64;

/// Where the engine is.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Its socket.
    pub socket: PathBuf,
    /// This machine; an engine of another is not spoken to.
    pub node: String,
}

/// The lane. Clones share it; the connection ends with the last of them.
#[derive(Debug, Clone)]
pub struct EngineLane(mpsc::Sender<Asked>);

/// A request and who waits for the answer.
pub(super) struct Asked {
    write: Write,
    reply: oneshot::Sender<EngineAnswer>,
}

impl Asked {
    /// The request, which is given away.
    pub fn take_write(&mut self) -> Write {
        let empty = Write { module: String::new(), plan: Digest::of(b""), revision: 0, files: Vec::new() };
        std::mem::replace(&mut self.write, empty)
    }

    /// Answers; who asked may be gone.
    pub fn answer(self, answer: EngineAnswer) {
        let _ = self.reply.send(answer);
    }
}

impl EngineLane {
    /// Starts the lane on the current runtime. The engine may be away.
    pub fn start(settings: EngineSettings) -> Self {
        let (sender, lane) = mpsc::channel(LANE);
        tokio::spawn(run(settings, lane));
        Self(sender)
    }

    /// Has the engine write; [`EngineAnswer::Away`] when it is not there or went away, with what it did unknown. The connection is
    /// made for the first request after it was lost, so the asker's delays are the only ones.
    pub async fn write(&self, write: Write) -> EngineAnswer {
        let (reply, answer) = oneshot::channel();
        if self.0.send(Asked { write, reply }).await.is_err() {
            return EngineAnswer::Away;
        }
        answer.await.unwrap_or(EngineAnswer::Away)
    }
}

async fn run(settings: EngineSettings, mut lane: mpsc::Receiver<Asked>) {
    let mut is_said = false;
    while let Some(asked) = lane.recv().await {
        let ended = match Session::open(&settings.socket, &settings.node).await {
            Ok(mut session) => {
                is_said = false;
                session.serve(asked, &mut lane).await
            }
            Err(error) => {
                asked.answer(EngineAnswer::Away);
                Err(error)
            }
        };
        // Said once for each time it goes away; while it is away, the modules' reports say so.
        if let Err(error) = ended
            && !std::mem::replace(&mut is_said, true)
        {
            let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::warn!(%error, why, "the engine is away");
        }
    }
}
