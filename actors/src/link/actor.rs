//! The actor: one life of the link, and nothing but the passing on of work to it.

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture,
};
use bytes::Bytes;

use super::handle::{LinkParts, Shared};
use super::life::Life;
use super::messages::{Answer, Call, CallError, Discovered, IdentitySink};
use super::settings::LinkSettings;
use crate::supervise::ExitNotice;

/// Messages that may wait for the link. What is in flight is bounded by the table of pending requests.
pub const MAILBOX: usize = 1024;

/// Holds the one connection to the broker.
pub struct BrokerLink {
    life: Rc<Life>,
    _notice: ExitNotice,
}

impl std::fmt::Debug for BrokerLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerLink").finish_non_exhaustive()
    }
}

impl BrokerLink {
    pub(super) fn new(
        settings: Arc<LinkSettings>,
        parts: LinkParts,
        shared: Arc<Shared>,
        notice: ExitNotice,
    ) -> Self {
        let number = shared.begin_life();
        Self { life: Rc::new(Life::new(settings, parts, shared, number)), _notice: notice }
    }
}

impl Actor for BrokerLink {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.spawn(Rc::clone(&self.life).expire().into_actor(self));
        let connecting = Rc::clone(&self.life).stay_connected().into_actor(self);
        ctx.spawn(connecting.map(|(), _, ctx| ctx.stop()));
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        self.life.end();
    }
}

crate::supervised!(BrokerLink);

/// Asks for one remote call.
#[derive(Debug, Message)]
#[rtype(result = "Result<Answer, CallError>")]
pub(super) struct MakeCall(pub(super) Call);

/// Asks for a broadcast discovery.
#[derive(Message)]
#[rtype(result = "Result<Discovered, CallError>")]
pub(super) struct DiscoverHosts(pub(super) IdentitySink);

/// Asks for bytes to be published.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), CallError>")]
pub(super) struct PublishMessage {
    pub(super) subject: String,
    pub(super) payload: Bytes,
}

impl Handler<MakeCall> for BrokerLink {
    type Result = ResponseFuture<Result<Answer, CallError>>;

    fn handle(&mut self, message: MakeCall, _: &mut Self::Context) -> Self::Result {
        Box::pin(Rc::clone(&self.life).call(message.0))
    }
}

impl Handler<DiscoverHosts> for BrokerLink {
    type Result = ResponseFuture<Result<Discovered, CallError>>;

    fn handle(&mut self, message: DiscoverHosts, _: &mut Self::Context) -> Self::Result {
        Box::pin(Rc::clone(&self.life).discover(message.0))
    }
}

impl Handler<PublishMessage> for BrokerLink {
    type Result = ResponseFuture<Result<(), CallError>>;

    fn handle(&mut self, message: PublishMessage, _: &mut Self::Context) -> Self::Result {
        Box::pin(Rc::clone(&self.life).publish(message.subject, message.payload))
    }
}
