//! The actor that has the engine write.

use std::time::Duration;

use actix::{Actor, Context, Handler, Message, ResponseFuture};
use quartermaster_actors::{
    supervise::{Birth, Slot},
    supervised,
};
use quartermaster_proto::mesh::fill::Write;

use crate::{
    client::engine::{EngineLane, EngineSettings},
    core::EngineAnswer,
};

/// Requests that are handed over at once; whoever comes then waits.
const MAILBOX: usize = 64;
/// Modules that may wait for an answer at once: each waits for one.
pub(super) const MAX_ASKS: usize = 65_536;
/// How long one may wait, in the queue behind all others included.
const LIMIT: Duration = Duration::from_mins(15);

/// Have the engine write.
#[derive(Debug, Message)]
#[rtype(result = "EngineAnswer")]
pub(super) struct WriteFiles(Write);

/// Owns the connection to the engine.
pub(super) struct EngineClient {
    settings: EngineSettings,
    lane: Option<EngineLane>,
    /// Its drop tells the owner.
    _birth: Birth,
}

impl EngineClient {
    pub(super) fn new(settings: EngineSettings, birth: Birth) -> Self {
        Self { settings, lane: None, _birth: birth }
    }
}

impl Actor for EngineClient {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.lane = Some(EngineLane::start(self.settings.clone()));
    }
}

impl Handler<WriteFiles> for EngineClient {
    type Result = ResponseFuture<EngineAnswer>;

    fn handle(&mut self, WriteFiles(write): WriteFiles, _: &mut Self::Context) -> Self::Result {
        let lane = self.lane.clone();
        Box::pin(async move {
            match lane {
                Some(lane) => lane.write(write).await,
                None => EngineAnswer::Away,
            }
        })
    }
}

supervised!(EngineClient);

/// What a module holds of it.
#[derive(Debug, Clone)]
pub(super) struct EngineHandle(pub(super) Slot<EngineClient>);

impl EngineHandle {
    /// Has the engine write; away when nobody could be asked, or nobody answered.
    pub(super) async fn write(self, write: Write) -> EngineAnswer {
        self.0.ask(WriteFiles(write), LIMIT).await.unwrap_or(EngineAnswer::Away)
    }
}
