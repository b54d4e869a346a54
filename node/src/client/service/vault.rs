//! The actor that asks the vault: once a run for each value, and again when the vault says that one changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
};

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, SpawnHandle, StreamHandler, WrapFuture as _,
};
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::{
    Kind,
    accounts::Account,
    registry::{Source, VaultSource},
    vault::SecretName,
};
use tokio::sync::mpsc;

use super::{
    lane::heard,
    world::{World, take_over},
};
use crate::{
    check::Want,
    client::{
        asking::{Asking, AskingEffect, AskingEvent},
        bus::{Bus, FromBus, watch},
        vault::VaultClient,
    },
    core::{Found, RegistryView},
};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// What the vault says of changes, under way.
const LANE: usize = 64;

/// Asks the vault. Its key is made with it, and lives in its memory alone.
pub(super) struct VaultAsker {
    world: Arc<World>,
    bus: Bus,
    client: Arc<VaultClient>,
    asking: Asking,
    source: Option<VaultSource>,
    /// What each module wants, as of which revision.
    wants: BTreeMap<String, (u64, BTreeSet<SecretName>)>,
    changes: Option<SpawnHandle>,
    wake: Option<SpawnHandle>,
    /// Its drop tells the owner.
    _birth: Birth,
}

/// The bus is back.
struct Back;

impl VaultAsker {
    pub(super) fn new(world: Arc<World>, bus: Bus, birth: Birth) -> Self {
        let account = Account::Provisioner { node: world.node.clone() };
        Self {
            client: Arc::new(VaultClient::new(bus.clone(), account)),
            world,
            bus,
            asking: Asking::new(rand::random()),
            source: None,
            wants: BTreeMap::new(),
            changes: None,
            wake: None,
            _birth: birth,
        }
    }

    fn handle_event(&mut self, event: AskingEvent, ctx: &mut Context<Self>) {
        for effect in self.asking.handle(self.world.now(), event) {
            match effect {
                AskingEffect::Ask(name, revision) => self.ask(name, revision, ctx),
                AskingEffect::Tell(name, found) => self.tell(&name, &found),
                AskingEffect::WakeAt(at) => {
                    let delay = self.world.until(at);
                    let handle = ctx.run_later(delay, |me, ctx| {
                        me.wake = None;
                        me.handle_event(AskingEvent::Woke, ctx);
                    });
                    if let Some(before) = self.wake.replace(handle) {
                        ctx.cancel_future(before);
                    }
                }
                AskingEffect::Older { name, version, held } => tracing::warn!(
                    %name,
                    version,
                    held,
                    "the vault's answer is older than what is held, and not used: its store was set back"
                ),
            }
        }
    }

    fn ask(&self, name: SecretName, revision: u64, ctx: &mut Context<Self>) {
        // A provider's half is named by the plan of its consumer, which may be newer than the provider's own.
        let revision = match &name {
            SecretName::Pair(_) => revision.max(self.world.mirrored.load(Ordering::Relaxed)),
            _ => revision,
        };
        let (client, source) = (Arc::clone(&self.client), self.source.clone());
        let asked = async move {
            let answer = match &source {
                Some(source) => client.ask(source, &name, revision).await,
                None => crate::client::asking::Answer::Nothing,
            };
            (name, answer)
        };
        ctx.spawn(asked.into_actor(self).map(|(name, answer), me, ctx| {
            me.world.metrics.asked(&answer);
            me.handle_event(AskingEvent::Answered(name, answer), ctx);
        }));
    }

    fn tell(&self, name: &SecretName, found: &Found) {
        for (module, (_, names)) in &self.wants {
            if names.contains(name) {
                self.world.post.found(module, Want::Vault(name.clone()), found.clone());
            }
        }
    }

    /// Says to the asking what is wanted, once it is known where to ask.
    fn want(&mut self, ctx: &mut Context<Self>) {
        if self.source.is_none() {
            return;
        }
        let mut wants: BTreeMap<SecretName, u64> = BTreeMap::new();
        for (revision, names) in self.wants.values() {
            for name in names {
                let highest = wants.entry(name.clone()).or_default();
                *highest = (*highest).max(*revision);
            }
        }
        self.handle_event(AskingEvent::Want(wants), ctx);
    }

    fn registry(&mut self, view: &RegistryView, ctx: &mut Context<Self>) {
        if view.unknown.is_some() {
            return;
        }
        let source = view.entries.get(&Kind::Secret).and_then(|entry| match &entry.source {
            Source::Vault(source) => Some(source.clone()),
            Source::Bucket(_) | Source::Plan => None,
        });
        if source == self.source {
            return;
        }
        self.source = source;
        if let Some(before) = self.changes.take() {
            ctx.cancel_future(before);
        }
        if let Some(source) = &self.source {
            let (out, said) = mpsc::channel(LANE);
            actix_rt::spawn(watch(self.bus.clone(), self.client.changes(source), out, rand::random()));
            self.changes = Some(ctx.add_stream(heard(said)));
            self.want(ctx);
        }
    }
}

impl Actor for VaultAsker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.add_stream(self.world.secrets.read());
        ctx.add_stream(self.world.registry_views());
        ctx.add_stream(futures::stream::unfold(self.bus.connects(), |mut connects| async move {
            connects.changed().await.ok()?;
            Some((Back, connects))
        }));
    }
}

impl StreamHandler<RegistryView> for VaultAsker {
    fn handle(&mut self, view: RegistryView, ctx: &mut Self::Context) {
        self.registry(&view, ctx);
    }
}

impl StreamHandler<Back> for VaultAsker {
    fn handle(&mut self, Back: Back, ctx: &mut Self::Context) {
        self.handle_event(AskingEvent::BusBack, ctx);
    }
}

impl StreamHandler<FromBus> for VaultAsker {
    fn handle(&mut self, said: FromBus, ctx: &mut Self::Context) {
        if let FromBus::Entry(entry) = said {
            match VaultClient::read_change(&entry) {
                Some((name, version)) => self.handle_event(AskingEvent::Changed(name, version), ctx),
                None if entry.body.is_some() => {
                    tracing::warn!("what the vault says of a change cannot be understood");
                }
                None => {}
            }
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

impl StreamHandler<Vec<(String, Option<(u64, BTreeSet<SecretName>)>)>> for VaultAsker {
    fn handle(
        &mut self,
        changed: Vec<(String, Option<(u64, BTreeSet<SecretName>)>)>,
        ctx: &mut Self::Context,
    ) {
        let told = take_over(&mut self.wants, changed);
        self.want(ctx);
        for module in told {
            for name in self.wants.get(&module).iter().flat_map(|(_, names)| names) {
                if let Some(found) = self.asking.known(name) {
                    self.world.post.found(&module, Want::Vault(name.clone()), found.clone());
                }
            }
        }
    }
}

supervised!(VaultAsker);
