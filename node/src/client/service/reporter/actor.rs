//! The actor that keeps needs, items and reports in the buckets: the latest of each, acknowledged or repeated.

use std::{sync::Arc, time::Duration};

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, SpawnHandle, StreamHandler, WrapFuture as _,
};
use async_nats::{HeaderMap, connection::State};
use bytes::Bytes;
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::{esc, key, plan::Digest};
use serde::Deserialize;
use tokio::{sync::watch, time::timeout};

use super::plan::{Act, Book, Place, Task};
use crate::{
    backoff::{Backoff, Jitter},
    client::{
        bus::{Bus, FrameError, Policy, Target, read_all},
        service::world::{Records, World},
    },
};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// Most writes that wait for their acknowledgement.
const MAX_OPEN: usize = 64;
/// Longest wait for an acknowledgement.
const LIMIT: Duration = Duration::from_secs(5);
/// Most bytes that are read of one bucket.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Keeps records.
pub(in crate::client::service) struct Reporter {
    world: Arc<World>,
    bus: Bus,
    book: Book,
    /// Says when nothing is left to be sent.
    is_idle: watch::Sender<bool>,
    failed: u32,
    jitter: Jitter,
    retry: Option<SpawnHandle>,
    /// The time of the connection for which buckets are read.
    reading: u64,
    /// Its drop tells the owner.
    _birth: Birth,
}

/// Something that happened around it.
enum Happened {
    /// The bus is there, or there again.
    Connected,
    /// All assignments are known.
    Known,
}

impl Reporter {
    pub(in crate::client::service) fn new(
        world: Arc<World>,
        bus: Bus,
        is_idle: watch::Sender<bool>,
        birth: Birth,
    ) -> Self {
        let book = Book::new(world.node.clone(), world.run.clone());
        let jitter = Jitter::new(rand::random());
        Self { world, bus, book, is_idle, failed: 0, jitter, retry: None, reading: 0, _birth: birth }
    }

    fn pump(&mut self, ctx: &mut Context<Self>) {
        if self.bus.client().connection_state() == State::Connected {
            while self.book.open() < MAX_OPEN {
                let next = self.book.next(self.world.now().wall);
                if next.is_empty() {
                    break;
                }
                for task in next {
                    self.begin(task, ctx);
                }
            }
        }
        let is_idle = self.book.is_idle();
        self.is_idle.send_if_modified(|now| std::mem::replace(now, is_idle) != is_idle);
    }

    fn begin(&self, task: Task, ctx: &mut Context<Self>) {
        let (bus, node) = (self.bus.clone(), self.world.node.clone());
        let work = async move {
            let done = carry_out(&bus, &node, &task).await;
            (task, done)
        };
        ctx.spawn(work.into_actor(self).map(|(task, done), me, ctx| {
            if let Err(why) = &done {
                tracing::debug!(bucket = task.place.bucket(), key = task.key, why, "not recorded yet");
            } else {
                me.failed = 0;
            }
            if let Some(module) = me.book.done(&task, done.is_ok()) {
                me.world.records.forget(&module, |records| records.is_gone);
            }
            if done.is_err() {
                me.retry_later(ctx);
            }
            me.pump(ctx);
        }));
    }

    fn retry_later(&mut self, ctx: &mut Context<Self>) {
        if self.retry.is_some() {
            return;
        }
        let delay = Backoff::NO_ANSWER.delay(self.failed, &mut self.jitter);
        self.failed = self.failed.saturating_add(1);
        self.retry = Some(ctx.run_later(delay, |me, ctx| {
            me.retry = None;
            me.book.again();
            me.pump(ctx);
        }));
    }

    /// Reads what lies in a bucket, and again until it is known.
    fn read(&mut self, place: Place, failed: u32, ctx: &mut Context<Self>) {
        let (bus, reading) = (self.bus.clone(), self.reading);
        let target = Target::bucket(place.bucket(), &format!("{}.>", esc(&self.world.node)));
        let read = async move { read_all(&bus, &target, Policy::LastPerSubject, u64::MAX, MAX_BYTES).await };
        ctx.spawn(read.into_actor(self).map(move |found, me, ctx| {
            if me.reading != reading {
                return;
            }
            match found {
                Ok(entries) => {
                    let prefix = key::kv_subject(place.bucket(), "");
                    let held = entries.into_iter().filter_map(|entry| {
                        Some((entry.subject.strip_prefix(&prefix)?.to_owned(), Digest::of(&entry.body?)))
                    });
                    me.book.read(place, held);
                    me.part_with_strangers();
                    me.pump(ctx);
                }
                Err(error) => {
                    if error != FrameError::NoStream || failed == 0 {
                        tracing::debug!(bucket = place.bucket(), %error, "a bucket cannot be read yet");
                    }
                    let delay = Backoff::NO_ANSWER.delay(failed, &mut me.jitter);
                    ctx.run_later(delay, move |me, ctx| {
                        if me.reading == reading {
                            me.read(place, failed.saturating_add(1), ctx);
                        }
                    });
                }
            }
        }));
    }

    /// Modules of an earlier run that are assigned no more: nothing of them stays.
    fn part_with_strangers(&mut self) {
        if !*self.world.is_known.borrow() {
            return;
        }
        for module in self.book.strangers() {
            if self.world.assigned.get(&module).is_none() {
                self.book.record(module, Some(Records { is_gone: true, ..Records::default() }));
            }
        }
    }

    fn happened(&mut self, what: &Happened, ctx: &mut Context<Self>) {
        match what {
            Happened::Connected => {
                self.reading += 1;
                self.book.unsure();
                self.book.again();
                for place in Place::ALL {
                    self.read(place, 0, ctx);
                }
            }
            Happened::Known => self.part_with_strangers(),
        }
        self.pump(ctx);
    }
}

/// Does what a task says; done when the broker has acknowledged it.
async fn carry_out(bus: &Bus, node: &str, task: &Task) -> Result<(), String> {
    let subject = key::kv_subject(task.place.bucket(), &task.key);
    match &task.act {
        Act::Put(value) => write(bus, subject, HeaderMap::new(), value.clone().into()).await,
        Act::Delete => delete(bus, subject).await,
        Act::Report(value) => {
            say(bus, node, task, value).await?;
            write(bus, subject, HeaderMap::new(), value.clone().into()).await
        }
        Act::Farewell(value) => {
            say(bus, node, task, value).await?;
            write(bus, subject.clone(), HeaderMap::new(), value.clone().into()).await?;
            delete(bus, subject).await
        }
    }
}

async fn say(bus: &Bus, node: &str, task: &Task, value: &[u8]) -> Result<(), String> {
    let subject = key::applied_subject(node, &task.module);
    let said = bus.client().publish(subject, Bytes::copy_from_slice(value));
    match timeout(LIMIT, said).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the broker takes nothing".to_owned()),
    }
}

async fn delete(bus: &Bus, subject: String) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    headers.insert("KV-Operation", "DEL");
    write(bus, subject, headers, Bytes::new()).await
}

#[derive(Deserialize)]
struct AckIn {
    seq: Option<u64>,
    error: Option<ErrorIn>,
}

#[derive(Deserialize)]
struct ErrorIn {
    #[serde(default)]
    description: String,
}

async fn write(bus: &Bus, subject: String, headers: HeaderMap, body: Bytes) -> Result<(), String> {
    let asked = bus.client().request_with_headers(subject, headers, body);
    let answer = timeout(LIMIT, asked).await.map_err(|_| "no acknowledgement".to_owned())?;
    let answer = answer.map_err(|error| error.to_string())?;
    match serde_json::from_slice(&answer.payload) {
        Ok(AckIn { error: Some(error), .. }) => Err(error.description),
        Ok(AckIn { seq: Some(_), .. }) => Ok(()),
        _ => Err("the acknowledgement cannot be understood".to_owned()),
    }
}

impl Actor for Reporter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.add_stream(self.world.records.read());
        let mut connects = self.bus.connects();
        connects.mark_changed();
        ctx.add_stream(futures::stream::unfold(connects, |mut connects| async move {
            connects.changed().await.ok()?;
            // At the start, before the first connect, there is nothing to read yet.
            while *connects.borrow_and_update() == 0 {
                connects.changed().await.ok()?;
            }
            Some((Happened::Connected, connects))
        }));
        let known = self.world.is_known.subscribe();
        ctx.add_stream(futures::stream::once(async move {
            let mut known = known;
            let _ = known.wait_for(|known| *known).await;
            Happened::Known
        }));
    }
}

impl StreamHandler<Happened> for Reporter {
    fn handle(&mut self, what: Happened, ctx: &mut Self::Context) {
        self.happened(&what, ctx);
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

impl StreamHandler<Vec<(String, Option<Records>)>> for Reporter {
    fn handle(&mut self, changed: Vec<(String, Option<Records>)>, ctx: &mut Self::Context) {
        for (module, records) in changed {
            self.book.record(module, records);
        }
        self.pump(ctx);
    }
}

supervised!(Reporter);
