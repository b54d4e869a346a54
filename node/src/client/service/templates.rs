//! The actor that has archives of templates here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, SpawnHandle, StreamHandler, WrapFuture as _,
};
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::plan::{Digest, Templates as TemplatesPlan};

use super::world::World;
use crate::{
    backoff::Jitter,
    client::{
        bus::Bus,
        templates::{Cache, TemplatesKeeper},
    },
    core::ArchiveState,
};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// How often the cache is looked through for what nobody names.
const SWEEP_EVERY: Duration = Duration::from_hours(1);

/// What a module's archive is, and how often in a row it was not to be had.
struct Wanted {
    plan: TemplatesPlan,
    failed: u32,
    /// The attempt under way, or the wait for the next.
    work: SpawnHandle,
    /// It is a wait, which the bus's return ends.
    waits: bool,
}

/// Has archives here.
pub(super) struct Templates {
    world: Arc<World>,
    bus: Bus,
    keeper: TemplatesKeeper,
    cache: Option<Cache>,
    wanted: BTreeMap<String, Wanted>,
    jitter: Jitter,
    /// Its drop tells the owner.
    _birth: Birth,
}

/// The bus is back.
struct Back;

impl Templates {
    pub(super) fn new(
        world: Arc<World>,
        bus: Bus,
        keeper: TemplatesKeeper,
        cache: Option<Cache>,
        birth: Birth,
    ) -> Self {
        let jitter = Jitter::new(rand::random());
        Self { world, bus, keeper, cache, wanted: BTreeMap::new(), jitter, _birth: birth }
    }

    /// Tries to have a module's archive here, in place of what is tried for it now.
    fn attempt(&mut self, module: String, plan: TemplatesPlan, failed: u32, ctx: &mut Context<Self>) {
        let (keeper, wanted) = (self.keeper.clone(), plan.clone());
        let attempt = async move { keeper.get(&wanted).await };
        let name = module.clone();
        let work = ctx.spawn(attempt.into_actor(self).map(move |(state, backoff), me, ctx| {
            let Some(wanted) = me.wanted.get_mut(&name) else { return };
            let plan = wanted.plan.clone();
            let state = match backoff {
                None => state,
                Some(backoff) => {
                    let delay = backoff.delay(wanted.failed, &mut me.jitter);
                    wanted.failed = wanted.failed.saturating_add(1);
                    let retry = name.clone();
                    wanted.waits = true;
                    wanted.work = ctx.run_later(delay / me.world.pace, move |me, ctx| me.again(retry, ctx));
                    match state {
                        ArchiveState::Failed { reason, .. } => {
                            let now = me.world.now();
                            ArchiveState::Failed { reason, retry_at: Some(now.wall_at(now.mono + delay)) }
                        }
                        state => state,
                    }
                }
            };
            me.world.archive(&name, &plan, state);
        }));
        let wanted = Wanted { plan, failed, work, waits: false };
        if let Some(before) = self.wanted.insert(module, wanted) {
            ctx.cancel_future(before.work);
        }
    }

    fn again(&mut self, module: String, ctx: &mut Context<Self>) {
        if let Some(Wanted { plan, failed, .. }) = self.wanted.get(&module) {
            let (plan, failed) = (plan.clone(), *failed);
            self.attempt(module, plan, failed, ctx);
        }
    }

    fn sweep(&self) {
        let named: BTreeSet<Digest> = self.wanted.values().map(|wanted| wanted.plan.digest).collect();
        if let Some(cache) = self.cache.clone() {
            // What becomes of it matters to nobody.
            drop(tokio::task::spawn_blocking(move || cache.sweep(&named)));
        }
    }
}

impl Actor for Templates {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.add_stream(self.world.archives.read());
        ctx.add_stream(futures::stream::unfold(self.bus.connects(), |mut connects| async move {
            connects.changed().await.ok()?;
            Some((Back, connects))
        }));
        ctx.run_interval(SWEEP_EVERY, |me, _| me.sweep());
    }
}

impl StreamHandler<Vec<(String, Option<TemplatesPlan>)>> for Templates {
    fn handle(&mut self, changed: Vec<(String, Option<TemplatesPlan>)>, ctx: &mut Self::Context) {
        for (module, plan) in changed {
            match plan {
                Some(plan) => self.attempt(module, plan, 0, ctx),
                None => {
                    if let Some(before) = self.wanted.remove(&module) {
                        ctx.cancel_future(before.work);
                    }
                }
            }
        }
    }
}

impl StreamHandler<Back> for Templates {
    fn handle(&mut self, Back: Back, ctx: &mut Self::Context) {
        let silent = self.wanted.iter().filter(|(_, wanted)| wanted.waits).map(|(module, _)| module.clone());
        for module in silent.collect::<Vec<_>>() {
            self.again(module, ctx);
        }
    }
}

supervised!(Templates);
