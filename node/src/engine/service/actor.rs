//! The actor that writes.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, ResponseFuture, WrapFuture as _};
use quartermaster_actors::supervise::{Birth, ExitNotice, Liveness, Ping, Stop};
use quartermaster_proto::mesh::fill::Body;

use super::handle::MAX_WRITES;
use super::messages::{DeclarationsChanged, OwedDue, WriteFiles};
use super::writer::{Declared, Writer};

/// How often programs that could not be told are told again, where no request does so.
const OWED_EVERY: Duration = Duration::from_mins(1);

/// Carries requests, changes of the declarations and the minute to the [`Writer`], which outlives it.
pub(super) struct EngineKeeper {
    writer: Arc<Writer>,
    declared: Declared,
    /// Its drop tells the owner.
    _notice: ExitNotice,
}

impl EngineKeeper {
    pub(super) fn new(writer: Arc<Writer>, declared: Declared, birth: Birth) -> Self {
        Self { writer, declared, _notice: birth.notice }
    }
}

impl Actor for EngineKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAX_WRITES);
        ctx.notify(OwedDue);
        ctx.run_interval(OWED_EVERY, |_, ctx| ctx.notify(OwedDue));
        let mut declared = self.declared.clone();
        declared.mark_changed();
        let address = ctx.address();
        let hear = async move {
            while declared.changed().await.is_ok() {
                let known = declared.borrow_and_update().clone();
                if let Some(known) = known
                    && address.send(DeclarationsChanged(known)).await.is_err()
                {
                    return;
                }
            }
        };
        ctx.spawn(hear.into_actor(self));
    }
}

impl Handler<WriteFiles> for EngineKeeper {
    type Result = ResponseFuture<Body>;

    fn handle(&mut self, WriteFiles(write): WriteFiles, _: &mut Self::Context) -> Self::Result {
        Box::pin(Arc::clone(&self.writer).write(write))
    }
}

impl Handler<DeclarationsChanged> for EngineKeeper {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, changed: DeclarationsChanged, _: &mut Self::Context) -> Self::Result {
        Box::pin(Arc::clone(&self.writer).take_away(changed.0))
    }
}

impl Handler<OwedDue> for EngineKeeper {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, OwedDue: OwedDue, _: &mut Self::Context) -> Self::Result {
        Box::pin(Arc::clone(&self.writer).settle_all())
    }
}

impl Handler<Ping> for EngineKeeper {
    type Result = Liveness;

    fn handle(&mut self, Ping: Ping, _: &mut Self::Context) -> Liveness {
        Liveness::Alive
    }
}

impl Handler<Stop> for EngineKeeper {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
