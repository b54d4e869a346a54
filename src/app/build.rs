//! Every handle and every owner's record, made but not started.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::child::Orphans;
use quartermaster_actors::control::{ControlHandle, Controller, LeadingUntil, RunState};
use quartermaster_actors::discovery::{Discoverer, DiscoverySettings, EventArrived, SeenSink};
use quartermaster_actors::fleet::{FleetHandle, FleetKeeper, FleetSettings, FleetSnapshot, Shelf};
use quartermaster_actors::host::Tools;
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::{EventSubscription, LinkHandle, LinkParts, SinkFull};
use quartermaster_actors::metrics::{MetricsHandle, MetricsKeeper, Recorder};
use quartermaster_actors::provider::ProviderHandle;
use quartermaster_actors::supervise::{Owned, RestartPolicy, Slot, Ward};
use quartermaster_actors::vault::{Outside, VaultHandle, VaultKeeper};
use quartermaster_proto::choria::event::EventKind;
use quartermaster_proto::choria::subject;
use tokio::sync::watch;

use super::cluster::{self, Cluster};
use super::helper::{self, Helping};
use super::kept::{Kept, kept, paused, wall_ms};
use super::positions::Positions;
use super::service::Service;
use super::{AppError, Pace, RunOptions, settings, steps};
use crate::config::{ClusterMode, Config};

/// The component of an ordinary server.
const SERVER: &str = "server";
/// Threads that the hosts' actors share.
const HOST_THREADS: usize = 2;
/// Questions that may wait for an actor at once.
const MAX_ASKS: usize = 1024;

/// The actors' handles and their owner's records, built but not started.
pub(super) struct Parts {
    pub(super) recorder: Recorder,
    pub(super) control: ControlHandle,
    pub(super) fleet: FleetHandle,
    pub(super) journal: JournalHandle,
    pub(super) link: LinkHandle,
    pub(super) metrics: MetricsHandle,
    pub(super) cluster: Cluster,
    pub(super) service: Service,
    pub(super) providers: Vec<ProviderHandle>,
    pub(super) orphans: Orphans,
    pub(super) positions: Positions,
    pub(super) wards: Vec<Box<dyn Ward>>,
}

/// Makes every handle and every owner's record; nothing runs yet.
pub(super) fn build(
    config: &Arc<Config>,
    host_ping_every: Duration,
    options: &RunOptions,
) -> Result<Parts, AppError> {
    let elected = config.cluster == ClusterMode::Election;
    let recorder = recorder(config, elected)?;
    let Kept { journal, found } = kept(config)?;
    let leading_until = elected.then(LeadingUntil::new);
    let (state, receiver) = watch::channel(RunState {
        paused: paused(found.paused.clone()),
        leading: !elected,
        leading_until: leading_until.clone(),
        ..RunState::working()
    });
    let control_slot = Slot::new("control", MAX_ASKS);
    let control = ControlHandle::new(control_slot.clone(), receiver);
    let leadership = control_slot.clone();
    let controller =
        owned_controller(control_slot.clone(), Arc::new(state), recorder.clone(), journal.clone());

    let metrics = MetricsHandle::new();
    let metrics_keeper = MetricsKeeper::owned(&metrics, &recorder);

    let (vault, vault_keeper) = VaultKeeper::owned(settings::vault(config), Outside::real());

    let discovery_slot = Slot::new("discovery", MAX_ASKS);
    let link = build_link(config, options.pace, &vault, &recorder, &discovery_slot);
    let broker_link = Owned::new(link.slot().clone(), RestartPolicy::standard(), link.factory());

    let Helping { helper, slot: helper_slot, wards: helper_wards, mut providers, orphans, trace } =
        helper::build(config, &control, &recorder, options.trace_wire.as_deref())?;
    let step_providers = steps::build(config, &found, &recorder, &orphans, trace.as_ref())?;
    providers.extend(step_providers.handles);

    let (publish, published) = watch::channel(FleetSnapshot::default());
    let fleet_slot: Slot<FleetKeeper> = Slot::new("fleet", MAX_ASKS);
    let fleet = FleetHandle::new(fleet_slot.clone(), published);
    let mut service = Service::build(config, &link);
    let claims_link = if config.claims.over_control { service.link() } else { &link };
    let elect = |until| cluster::election(config, &link, &control, leadership, until, recorder.clone());
    let cluster = Cluster {
        election: leading_until.map(elect),
        claims: cluster::claims(config, claims_link, &control, &fleet, recorder.clone()),
    };

    let tools = Tools {
        link: Arc::new(link.clone()),
        helper: Arc::new(helper.clone()),
        vault: Arc::new(vault.clone()),
        journal: Arc::new(journal.clone()),
        claims: cluster.claim_port(),
        steps: Some(step_providers.port),
    };
    let roster = settings::roster(config)?;
    let fleet_settings = FleetSettings {
        roster,
        plan: Arc::new(settings::plan(config, steps::site(config)?)),
        tools,
        run_state: control.subscribe(),
        recorder: recorder.clone(),
        threads: HOST_THREADS,
        host_ping_every,
        shelf: Shelf::restored(roster, found, wall_ms()),
        publish: Arc::new(publish),
        wall_ms,
        journal: journal.clone(),
    };
    let fleet_keeper =
        Owned::new(fleet_slot.clone(), RestartPolicy::standard().at_once(), move |birth, _| {
            FleetKeeper::new(fleet_settings.clone(), birth.notice)
        });

    let discovery = discovery_settings(config, &link, cluster.seen_sink(&fleet), &control, &recorder);
    let discoverer = owned_discoverer(discovery_slot.clone(), discovery);

    let mut wards: Vec<Box<dyn Ward>> = vec![
        Box::new(journal.owned(&recorder, wall_ms)),
        Box::new(controller),
        Box::new(metrics_keeper),
        Box::new(vault_keeper),
        Box::new(broker_link),
        Box::new(fleet_keeper),
        Box::new(discoverer),
    ];
    wards.extend(helper_wards);
    wards.extend(step_providers.wards);
    wards.extend(cluster.wards());
    wards.extend(service.wards());
    let positions = Positions {
        control: control_slot,
        metrics: metrics.slot().clone(),
        vault: vault.slot().clone(),
        link: link.slot().clone(),
        helper: helper_slot,
        fleet: fleet_slot,
        discovery: discovery_slot,
    };
    Ok(Parts {
        recorder,
        control,
        fleet,
        journal,
        link,
        metrics,
        cluster,
        service,
        providers,
        orphans,
        positions,
        wards,
    })
}

fn discovery_settings(
    config: &Config,
    link: &LinkHandle,
    seen: SeenSink,
    control: &ControlHandle,
    recorder: &Recorder,
) -> DiscoverySettings {
    DiscoverySettings {
        interval: config.interval,
        component: config.lifecycle_component.clone(),
        link: Arc::new(link.clone()),
        seen,
        run_state: control.subscribe(),
        recorder: recorder.clone(),
    }
}

fn recorder(config: &Config, elected: bool) -> Result<Recorder, AppError> {
    Ok(if elected {
        Recorder::in_election(&config.site, config.identity.as_str())?
    } else {
        Recorder::new(&config.site)?
    })
}

fn owned_discoverer(slot: Slot<Discoverer>, settings: DiscoverySettings) -> Owned<Discoverer> {
    Owned::new(slot, RestartPolicy::standard().at_once(), move |birth, _| {
        Discoverer::new(settings.clone(), birth.notice)
    })
    .below("fleet")
}

fn owned_controller(
    slot: Slot<Controller>,
    state: Arc<watch::Sender<RunState>>,
    recorder: Recorder,
    journal: JournalHandle,
) -> Owned<Controller> {
    Owned::new(slot, RestartPolicy::standard(), move |birth, _| {
        Controller::new(Arc::clone(&state), recorder.clone(), birth.notice).keeping(journal.clone())
    })
}

pub(super) fn build_link(
    config: &Config,
    pace: Pace,
    vault: &VaultHandle,
    recorder: &Recorder,
    discovery: &Slot<Discoverer>,
) -> LinkHandle {
    let mut settings = settings::link(config);
    pace.set(&mut settings);
    let mut components = vec![config.lifecycle_component.as_str(), SERVER];
    components.dedup();
    for component in components {
        let slot = discovery.clone();
        settings.events.push(EventSubscription {
            subject: subject::event(EventKind::Startup, component),
            lane: "events",
            sink: Arc::new(move |event| slot.try_send(EventArrived(event.payload)).map_err(|_| SinkFull)),
        });
    }
    let credentials = Arc::new(vault.clone());
    LinkHandle::new(settings, LinkParts::real(credentials, Arc::new(crate::clock::now), recorder.sink()))
}
