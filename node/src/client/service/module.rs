//! The actor of one module: it carries events to the module's core and its effects to whom they are for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, SpawnHandle, StreamHandler,
    WrapFuture as _,
};
use quartermaster_actors::{supervise::ExitNotice, supervised};
use quartermaster_proto::mesh::report::Outcome;

use super::{
    engine::EngineHandle,
    world::{ModuleLane, Records, Topic, World},
};
use crate::core::{Effect, Event, ModuleCore, ModuleSettings, Note, Timer};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;

/// One module.
pub(super) struct Module {
    name: String,
    core: ModuleCore,
    world: Arc<World>,
    engine: EngineHandle,
    lane: ModuleLane,
    timers: BTreeMap<Timer, SpawnHandle>,
    /// Its drop tells the owner.
    _notice: ExitNotice,
}

impl Module {
    pub(super) fn new(
        settings: ModuleSettings,
        world: Arc<World>,
        engine: EngineHandle,
        lane: ModuleLane,
        notice: ExitNotice,
    ) -> Self {
        let name = settings.module.clone();
        let core = ModuleCore::new(settings);
        Self { name, core, world, engine, lane, timers: BTreeMap::new(), _notice: notice }
    }

    fn handle_event(&mut self, event: Event, ctx: &mut Context<Self>) {
        let is_gone = matches!(event, Event::Gone);
        let effects = self.core.handle(self.world.now(), event);
        // Before anybody can hear of it.
        self.world.statuses.stands(&self.name, self.core.state());
        for effect in effects {
            self.carry_out(effect, ctx);
        }
        if is_gone {
            self.world.statuses.gone(&self.name);
            ctx.stop();
        }
    }

    fn carry_out(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Fetch(plan) => self.world.archives.set(self.name.clone(), Some(plan)),
            Effect::Needs(needs) => self.record(|records| records.needs = Some(Arc::new(needs))),
            Effect::Want { revision, wants } => self.world.want(&self.name, revision, wants),
            Effect::PutItem(item) => self.record(|records| {
                let items = records.items.get_or_insert_default();
                items.keep.insert(item.collection.clone());
                items.filled.insert(item.collection.clone(), Arc::new(item));
            }),
            Effect::KeepItems(keep) => self.record(|records| {
                let items = records.items.get_or_insert_default();
                items.filled.retain(|collection, _| keep.contains(collection));
                items.keep = keep;
            }),
            Effect::Write(id, write) => {
                let began = Instant::now();
                let asked = self.engine.clone().write(write).into_actor(self);
                let answered = asked.map(move |answer, me, ctx| {
                    me.world.metrics.written(&answer, began.elapsed().as_secs_f64());
                    me.world.statuses.written(&me.name, &answer, me.world.now().wall);
                    me.handle_event(Event::Engine(id, answer), ctx);
                });
                ctx.spawn(answered);
            }
            Effect::Report(report) => {
                self.say(&report.outcome);
                let report = Arc::new(report);
                self.world.statuses.reports(&self.name, &report);
                self.record(|records| records.report = Some(report));
            }
            Effect::Changed => self.world.moved.put((self.name.clone(), None), ()),
            Effect::Remove => {
                self.world.archives.set(self.name.clone(), None);
                self.world.want(&self.name, 0, BTreeSet::new());
                self.record(|records| {
                    // What was said last is that it was taken off, if anything was.
                    let report = records.report.take();
                    *records = Records { report, is_gone: true, ..Records::default() };
                });
            }
            Effect::Wake(timer, at) => {
                let delay = self.world.until(at);
                let handle = ctx.run_later(delay, move |me, ctx| {
                    me.timers.remove(&timer);
                    me.handle_event(Event::Woke(timer), ctx);
                });
                if let Some(before) = self.timers.insert(timer, handle) {
                    ctx.cancel_future(before);
                }
            }
            Effect::Note(Note::LeftOut { credential, why }) => {
                tracing::warn!(module = self.name, credential, why, "a consumer is left out");
            }
        }
    }

    /// Changes what is recorded of the module, which is there again if it was gone.
    fn record(&self, change: impl FnOnce(&mut Records)) {
        self.world.records.update(self.name.clone(), |records| {
            records.is_gone = false;
            change(records);
        });
    }

    /// A line for people; names and reasons alone.
    fn say(&self, outcome: &Outcome) {
        let module = self.name.as_str();
        match outcome {
            Outcome::Applied { files, .. } => tracing::info!(module, files = files.len(), "applied"),
            Outcome::Waiting { waiting } => {
                let names =
                    waiting.iter().map(|one| format!("{} {} ({})", one.kind, one.name, one.why.as_str()));
                tracing::info!(module, "for" = names.collect::<Vec<_>>().join(", "), "waiting");
            }
            Outcome::Failed { reason, .. } => tracing::warn!(module, reason, "failed"),
            Outcome::Removed => tracing::info!(module, "removed"),
        }
    }
}

impl Actor for Module {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.add_stream(self.lane.stream());
    }
}

impl StreamHandler<Vec<(Topic, Event)>> for Module {
    fn handle(&mut self, told: Vec<(Topic, Event)>, ctx: &mut Self::Context) {
        for (_, event) in told {
            self.handle_event(event, ctx);
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

supervised!(Module);
