//! The actor that renders the numbers, on its own thread, so that a scrape costs nobody else time.

use actix::{Actor, Context, Handler};

use crate::supervise::{Birth, Owned, RestartPolicy};

use super::{MetricsError, MetricsHandle, Recorder, RenderMetrics};

/// Messages that may wait in the mailbox.
const MAILBOX: usize = 64;

/// Renders what the recorder counts. The numbers live in the recorder and survive this actor.
#[derive(Debug)]
pub struct MetricsKeeper {
    recorder: Recorder,
    _birth: Birth,
}

impl MetricsKeeper {
    /// The keeper for the position of this handle, restarted at once and then with growing delays.
    pub fn owned(handle: &MetricsHandle, recorder: &Recorder) -> Owned<Self> {
        let recorder = recorder.clone();
        Owned::new(handle.slot().clone(), RestartPolicy::standard().at_once(), move |birth, _| Self {
            recorder: recorder.clone(),
            _birth: birth,
        })
    }
}

impl Actor for MetricsKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

crate::supervised!(MetricsKeeper);

impl Handler<RenderMetrics> for MetricsKeeper {
    type Result = Result<Vec<u8>, MetricsError>;

    fn handle(&mut self, _: RenderMetrics, _: &mut Self::Context) -> Self::Result {
        self.recorder.render()
    }
}
