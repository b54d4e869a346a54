//! The actor that answers the machine's tool runner, and tells it which values moved.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, Context, WrapFuture as _};
use async_nats::{Message, connection::State};
use futures::StreamExt as _;
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::{
    Kind,
    ask::{Ask, AskCode, AskError, Changed, encode_answer},
    key,
    value::Json,
};
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};

use super::world::World;
use crate::client::bus::Bus;

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// Questions that are answered at once; the next wait in the subscription.
const MAX_OPEN: usize = 64;
/// How long a question waits for what it is answered from.
const READY_LIMIT: Duration = Duration::from_secs(2);
/// How long it takes before a subscription that ended is made anew.
const AGAIN: Duration = Duration::from_secs(1);
/// What answers must go to.
const INBOX: &str = "_INBOX";

/// Answers and tells.
pub(super) struct Asker {
    world: Arc<World>,
    bus: Bus,
    /// Its drop tells the owner.
    _birth: Birth,
}

impl Asker {
    pub(super) fn new(world: Arc<World>, bus: Bus, birth: Birth) -> Self {
        Self { world, bus, _birth: birth }
    }
}

/// Hears questions and answers each.
async fn answer_all(world: Arc<World>, bus: Bus) {
    let places = Arc::new(Semaphore::new(MAX_OPEN));
    loop {
        let Ok(mut questions) = bus.client().subscribe(key::ask_subject(&world.node)).await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        while let Some(question) = questions.next().await {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let (world, bus) = (Arc::clone(&world), bus.clone());
            actix_rt::spawn(async move {
                answer(&world, &bus, question).await;
                drop(place);
            });
        }
    }
}

async fn answer(world: &World, bus: &Bus, question: Message) {
    let Some(reply) = question.reply.filter(|reply| reply.starts_with(INBOX)) else {
        tracing::warn!("a question that wants its answer outside of an inbox is dropped");
        return;
    };
    let value = found(world, &question.payload).await;
    let body = encode_answer(value.as_ref());
    if let Err(error) = bus.client().publish(reply, body.into()).await {
        tracing::debug!(%error, "a question could not be answered");
    }
}

/// The value that is asked for.
async fn found(world: &World, question: &[u8]) -> Result<Json, AskError> {
    let Ask { module, kind, key } = Ask::read(question)?;
    match Kind::parse(&kind) {
        Some(Kind::Config) => {}
        Some(Kind::Secret) => {
            let why = "the vault hands a secret only to whom the bus proves; read it from the module's files";
            return Err(AskError::new(AskCode::Secret, why));
        }
        Some(_) => {
            return Err(AskError::new(
                AskCode::Kind,
                &format!("{kind} is filled into files and not answered"),
            ));
        }
        None => return Err(AskError::new(AskCode::Kind, &format!("nobody knows the kind {kind}"))),
    }
    let ready = async {
        let is = |now: &bool| *now;
        let _ = world.is_known.subscribe().wait_for(is).await;
        let _ = world.is_resolved.subscribe().wait_for(is).await;
    };
    if timeout(READY_LIMIT, ready).await.is_err() {
        return Err(AskError::new(AskCode::NotReady, "what there is has not been read whole yet"));
    }
    if world.assigned.get(&module).is_none() {
        return Err(AskError::new(AskCode::Unassigned, &format!("{module} is not assigned to this machine")));
    }
    let view = world.config.read().unwrap_or_else(PoisonError::into_inner);
    match view.values.get(&module).and_then(|values| values.get(&key)) {
        Some(Ok(value)) => Ok(value.clone()),
        Some(Err(error)) => Err(AskError::new(AskCode::Undeclared, &format!("{module}, `{key}`: {error}"))),
        None => Err(AskError::new(AskCode::Undeclared, &format!("{module} has no config value `{key}`"))),
    }
}

impl Actor for Asker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.spawn(answer_all(Arc::clone(&self.world), self.bus.clone()).into_actor(self));
        let (world, bus) = (Arc::clone(&self.world), self.bus.clone());
        let moved = world.moved.stream();
        let telling = async move {
            let mut moved = Box::pin(moved);
            while let Some(told) = moved.next().await {
                connected(&bus).await;
                for ((module, key), ()) in told {
                    let body = Changed::config(key.as_deref()).encode();
                    let subject = key::changed_subject(&world.node, &module);
                    if let Err(error) = bus.client().publish(subject, body.into()).await {
                        tracing::debug!(%error, "the tool runner could not be told what moved");
                    }
                }
            }
        };
        ctx.spawn(telling.into_actor(self));
    }
}

/// Waits until the bus is there.
async fn connected(bus: &Bus) {
    let mut connects: watch::Receiver<u64> = bus.connects();
    while bus.client().connection_state() != State::Connected {
        if connects.changed().await.is_err() {
            return;
        }
    }
}

supervised!(Asker);
