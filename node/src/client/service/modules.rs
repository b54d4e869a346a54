//! The owner of the modules: one actor for each assignment of this machine, built anew when one panics.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, StreamHandler};
use actix::{ActorFutureExt as _, WrapFuture as _};
use quartermaster_actors::{
    supervise::{Birth, ChildExited, ChildId, Decision, ExitCause, ExitNotice, History, RestartPolicy},
    supervised,
};
use rand::RngExt as _;

use super::{
    engine::EngineHandle,
    module::Module,
    world::{Records, Topic, World},
};
use crate::core::{Assigned, DigestKey, Event, ModuleSettings};

/// Its mailbox: ends of modules, which may exceed it, and signs of life.
const MAILBOX: usize = 16;

/// Owns the modules. They live on its thread and end with it.
pub(super) struct ModuleKeeper {
    world: Arc<World>,
    engine: EngineHandle,
    digest_key: Arc<DigestKey>,
    policy: RestartPolicy,
    children: BTreeMap<String, Child>,
    /// Names of living modules by the number of their life.
    lives: BTreeMap<u64, String>,
    next: u64,
    /// Its drop tells the owner.
    _birth: Birth,
}

/// A module's place.
struct Child {
    history: History,
    /// Its life; none while it waits to be built anew.
    life: Option<(u64, Addr<Module>)>,
}

impl ModuleKeeper {
    pub(super) fn new(
        world: Arc<World>,
        engine: EngineHandle,
        digest_key: Arc<DigestKey>,
        birth: Birth,
    ) -> Self {
        let policy = RestartPolicy::standard().at_once();
        let (children, lives) = (BTreeMap::new(), BTreeMap::new());
        Self { world, engine, digest_key, policy, children, lives, next: 0, _birth: birth }
    }

    /// A module's assignment was put.
    fn put(&mut self, name: &str, assigned: Assigned, ctx: &mut Context<Self>) {
        match self.children.get(name) {
            Some(Child { life: Some(_), .. }) => {
                self.world.post.tell(name, Topic::Assignment, Event::Assigned(assigned));
            }
            // It is built from what the board says when its time comes.
            Some(Child { life: None, .. }) => {}
            None => self.build(name, ctx),
        }
    }

    /// Builds a module from its assignment; what it wants it is told when it says so.
    fn build(&mut self, name: &str, ctx: &mut Context<Self>) {
        let Some(assigned) = self.world.assigned.get(&name.to_owned()) else {
            self.children.remove(name);
            return;
        };
        let settings = ModuleSettings {
            node: self.world.node.clone(),
            module: name.to_owned(),
            run: self.world.run.clone(),
            digest_key: Arc::clone(&self.digest_key),
            jitter: rand::rng().random(),
            phase: Duration::from_millis(rand::rng().random_range(0..60_000)),
        };
        let lane = self.world.post.open(name);
        lane.put(Topic::Registry, Event::Registry(self.world.registry.borrow().clone()));
        lane.put(Topic::Assignment, Event::Assigned(assigned));
        self.next += 1;
        let number = self.next;
        let notice =
            ExitNotice::new(ChildId { name: "module", generation: number }, ctx.address().recipient());
        let module = Module::new(settings, Arc::clone(&self.world), self.engine.clone(), lane, notice);
        let child = self
            .children
            .entry(name.to_owned())
            .or_insert_with(|| Child { history: History::new(), life: None });
        child.history.note_start(Instant::now());
        child.life = Some((number, module.start()));
        self.lives.insert(number, name.to_owned());
    }

    /// A module's assignment is gone.
    fn gone(&mut self, name: &str) {
        match self.children.get(name) {
            Some(Child { life: Some(_), .. }) => self.world.post.tell(name, Topic::Assignment, Event::Gone),
            _ => self.forget(name),
        }
    }

    /// Nothing of a module stays that does not live to say so itself.
    fn forget(&mut self, name: &str) {
        self.children.remove(name);
        self.world.post.close(name);
        self.world.statuses.gone(name);
        self.world.archives.set(name.to_owned(), None);
        self.world.want(name, 0, BTreeSet::new());
        self.world.records.update(name.to_owned(), |records| {
            let report = records.report.take();
            *records = Records { report, is_gone: true, ..Records::default() };
        });
    }

    fn ended(&mut self, exited: &ChildExited, ctx: &mut Context<Self>) {
        let Some(name) = self.lives.remove(&exited.child.generation) else { return };
        self.world.post.close(&name);
        let Some(child) = self.children.get_mut(&name) else { return };
        child.life = None;
        let is_assigned = self.world.assigned.get(&name).is_some();
        if exited.cause == ExitCause::Stopped {
            // It left; if it was assigned again meanwhile, it begins anew.
            self.children.remove(&name);
            if is_assigned {
                self.build(&name, ctx);
            }
            return;
        }
        if !is_assigned {
            return self.forget(&name);
        }
        let now = Instant::now();
        let decision = self.policy.decide(exited.cause, &child.history, now, rand::rng().random());
        child.history.note_end(exited.cause, &self.policy, now);
        tracing::warn!(module = name, cause = %exited.cause, decision = decision.why(), "a module ended");
        if let Decision::RestartAfter(delay, _) = decision {
            let sleep = tokio::time::sleep(delay).into_actor(self);
            ctx.spawn(sleep.map(move |(), me, ctx| {
                if me.children.get(&name).is_some_and(|child| child.life.is_none()) {
                    me.build(&name, ctx);
                }
            }));
        }
    }
}

impl Actor for ModuleKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        // What an earlier life of this keeper looked after and is assigned no more.
        for name in self.world.records.keys() {
            let is_left = self.world.records.get(&name).is_some_and(|records| !records.is_gone);
            if is_left && self.world.assigned.get(&name).is_none() {
                self.forget(&name);
            }
        }
        ctx.add_stream(self.world.assigned.read());
        let mut registry = self.world.registry.subscribe();
        let world = Arc::clone(&self.world);
        let telling = async move {
            while registry.changed().await.is_ok() {
                let view = registry.borrow_and_update().clone();
                world.post.tell_all(&Topic::Registry, &Event::Registry(view));
            }
        };
        ctx.spawn(telling.into_actor(self));
    }
}

impl StreamHandler<Vec<(String, Option<Assigned>)>> for ModuleKeeper {
    fn handle(&mut self, changed: Vec<(String, Option<Assigned>)>, ctx: &mut Self::Context) {
        for (name, assigned) in changed {
            match assigned {
                Some(assigned) => self.put(&name, assigned, ctx),
                None => self.gone(&name),
            }
        }
    }
}

impl Handler<ChildExited> for ModuleKeeper {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, ctx: &mut Self::Context) {
        self.ended(&exited, ctx);
    }
}

supervised!(ModuleKeeper);
