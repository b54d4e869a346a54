//! Build, start, drain: the one place actors are wired.

mod connect;
mod ending;
mod operate;
mod positions;
pub(crate) mod settings;
mod signals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::control::{ControlHandle, Controller, LeadershipChanged, LeadingUntil, RunState};
use quartermaster_actors::discovery::{Discoverer, DiscoverySettings, EventArrived, SeenSink};
use quartermaster_actors::election::{ElectionHandle, Elector, ElectorSettings};
use quartermaster_actors::fleet::{FleetHandle, FleetKeeper, FleetSettings, FleetSnapshot, Shelf};
use quartermaster_actors::helper::{HelperHandle, HelperParts, HelperRunner, Orphans};
use quartermaster_actors::host::Tools;
use quartermaster_actors::link::{EventSubscription, LinkHandle, LinkParts, SinkFull};
use quartermaster_actors::metrics::{Fact, MetricsHandle, MetricsKeeper, Recorder};
use quartermaster_actors::supervise::{Overseer, OverseerHandle, Owned, RestartPolicy, Slot, Ward, Watchdog};
use quartermaster_actors::vault::{Outside, VaultHandle, VaultKeeper};
use quartermaster_proto::choria::event::{self, Event, EventFormat, EventKind};
use quartermaster_proto::choria::subject;
use tokio::sync::watch;

pub use self::connect::{ConnectReport, connect_check};
use self::ending::{Ended, Ending};
pub use self::positions::{Positions, Watching};
use self::signals::{PidFile, Signals};
use crate::config::{ClusterMode, Config};
use crate::exit::Exit;
use crate::operate::Operator;
use crate::web::{BoundWeb, WebError, WebServer, WebState};

/// Our own component in lifecycle events, the peer's word.
const COMPONENT: &str = "provisioner";
/// The component of an ordinary server.
const SERVER: &str = "server";
/// How long one actor may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// The same when it has to be at once.
const STOP_AT_ONCE_WITHIN: Duration = Duration::from_millis(200);
/// How long the first connection is waited for before our own startup event is given up; later ones do not matter.
const ANNOUNCE_WITHIN: Duration = Duration::from_hours(1);
/// Threads that the hosts' actors share.
const HOST_THREADS: usize = 2;
/// Questions that may wait for an actor at once.
const MAX_ASKS: usize = 1024;

/// What `run` was told on the command line beside the configuration.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// `--pid`: written once the instance is up, removed at the end.
    pub pid_file: Option<PathBuf>,
    /// How closely the actors are watched.
    pub watching: Watching,
}

/// Why an instance could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A delay of the retry policy makes no sense.
    #[error("the key `retry` is not usable")]
    Retry(#[from] quartermaster_actors::fleet::RetryError),
    /// The metrics could not be set up.
    #[error("could not set up the metrics")]
    Metrics(#[from] quartermaster_actors::metrics::MetricsError),
    /// The web listener could not be set up.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The process id could not be written.
    #[error("could not write the process id to {}", path.display())]
    Pid {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Signals could not be listened for.
    #[error("could not listen for signals")]
    Signals(#[source] std::io::Error),
    /// The watchdog's thread could not be started.
    #[error("could not start the watchdog")]
    Watchdog(#[source] std::io::Error),
}

/// Runs the fleet provisioner until a signal or until it cannot go on. The log is set up already.
pub fn run(config: Arc<Config>, options: &RunOptions) -> Exit {
    let options = options.clone();
    actix_rt::System::new().block_on(async move {
        match App::start(&config, &options) {
            Ok(app) => app.serve().await,
            Err(error) => {
                tracing::error!("could not start: {}", quartermaster_actors::text::chain(&error));
                Exit::Failure
            }
        }
    })
}

/// A running instance.
pub struct App {
    control: ControlHandle,
    fleet: FleetHandle,
    link: LinkHandle,
    overseer: OverseerHandle,
    operator: Operator,
    positions: Positions,
    web: Option<WebServer>,
    signals: Signals,
    _watchdog: Watchdog,
    _pid_file: Option<PidFile>,
}

/// The actors' handles and their owner's records, built but not started.
struct Parts {
    recorder: Recorder,
    control: ControlHandle,
    fleet: FleetHandle,
    link: LinkHandle,
    metrics: MetricsHandle,
    positions: Positions,
    wards: Vec<Box<dyn Ward>>,
}

impl App {
    /// Binds, then starts owners before owned.
    pub fn start(config: &Arc<Config>, options: &RunOptions) -> Result<Self, AppError> {
        let signals = Signals::listen().map_err(AppError::Signals)?;
        // Bound before anything works, so that a wrong address is a failed start and nothing else.
        let bound = config.listen.map(BoundWeb::bind).transpose()?;
        let watching = options.watching;
        let Parts { recorder, control, fleet, link, metrics, positions, wards } =
            build(config, watching.hosts_every)?;
        let observer = recorder.clone();
        let overseer = Overseer::launch(
            watching.overseer,
            wards,
            Arc::new(move |ending| {
                observer.record(Fact::ActorEnded {
                    actor: ending.child.name,
                    cause: ending.cause.as_str(),
                    decision: ending.decision.clone(),
                });
            }),
        );
        let watchdog =
            Watchdog::start(overseer.vital(), watching.overseer_every, watching.overseer_patience, |why| {
                tracing::error!("{why}; ending the process");
                std::process::exit(i32::from(Exit::Failure.code()));
            })
            .map_err(AppError::Watchdog)?;
        let operator = operate::operator(config, &control, &fleet, &link, &positions.discovery, &overseer);
        let web = match bound {
            Some(bound) => Some(bound.serve(WebState { metrics, operator: operator.clone() })?),
            None => None,
        };
        let pid_file = options.pid_file.as_deref().map(PidFile::write).transpose()?;
        announce(config, &link);
        tracing::info!(
            identity = %config.identity,
            site = %config.site,
            workers = config.workers,
            in_flight = config.in_flight,
            version = env!("CARGO_PKG_VERSION"),
            "Quartermaster is up"
        );
        Ok(Self {
            control,
            fleet,
            link,
            overseer,
            operator,
            positions,
            web,
            signals,
            _watchdog: watchdog,
            _pid_file: pid_file,
        })
    }

    /// Works until a signal asks it to stop or it cannot go on.
    pub async fn serve(self) -> Exit {
        let Self { control, fleet, overseer, operator, web, mut signals, _watchdog, _pid_file, .. } = self;
        let web = web.map(|WebServer { server, handle }| {
            actix_rt::spawn(server);
            handle
        });
        let ending = Ending { control: &control, fleet: &fleet, overseer: &overseer, operator: &operator };
        let exit = match ending.wait(&mut signals).await {
            Ended::Properly(exit) => exit,
            Ended::AtOnce => {
                // No longer than a moment: only so that no helper outlives us.
                let stopped = overseer.stop(STOP_AT_ONCE_WITHIN);
                drop(tokio::time::timeout(STOP_WITHIN, stopped).await);
                return Exit::Success;
            }
        };
        operator.settled(STOP_WITHIN).await;
        if let Some(web) = web {
            web.stop(true).await;
        }
        if let Some(abandoned) = overseer.stop(STOP_WITHIN).await
            && !abandoned.is_empty()
        {
            tracing::warn!(?abandoned, "some actors did not stop in time");
        }
        tracing::info!("stopped");
        exit
    }

    /// Stops every actor now, whatever is in flight.
    pub async fn stop(self) {
        self.overseer.stop(STOP_WITHIN).await;
    }

    /// The fleet, for whoever watches it.
    pub const fn fleet(&self) -> &FleetHandle {
        &self.fleet
    }

    /// The owner of the actors, for whoever watches them.
    pub const fn overseer(&self) -> &OverseerHandle {
        &self.overseer
    }

    /// What may be asked of this instance, and what it may be told.
    pub const fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Where each actor is to be found.
    pub const fn positions(&self) -> &Positions {
        &self.positions
    }

    /// The link, for whoever shares the connection.
    pub const fn link(&self) -> &LinkHandle {
        &self.link
    }
}

/// Makes every handle and every owner's record; nothing runs yet.
fn build(config: &Arc<Config>, host_ping_every: Duration) -> Result<Parts, AppError> {
    let elected = config.cluster == ClusterMode::Election;
    let recorder = if elected {
        Recorder::in_election(&config.site, config.identity.as_str())?
    } else {
        Recorder::new(&config.site)?
    };
    let leading_until = elected.then(LeadingUntil::new);
    let (state, receiver) = watch::channel(RunState {
        leading: !elected,
        leading_until: leading_until.clone(),
        ..RunState::working()
    });
    let control_slot = Slot::new("control", MAX_ASKS);
    let control = ControlHandle::new(control_slot.clone(), receiver);
    let leadership = control_slot.clone();
    let controller = owned_controller(control_slot.clone(), Arc::new(state), recorder.clone());

    let metrics = MetricsHandle::new();
    let metrics_keeper = MetricsKeeper::owned(&metrics, &recorder);

    let (vault, vault_keeper) = VaultKeeper::owned(settings::vault(config), Outside::real());

    let discovery_slot = Slot::new("discovery", MAX_ASKS);
    let link = build_link(config, &vault, &recorder, &discovery_slot);
    let broker_link = Owned::new(link.slot().clone(), RestartPolicy::standard(), link.factory());

    let orphans = Orphans::adopt().unwrap_or_else(|error| {
        tracing::warn!("processes that helpers leave behind cannot be adopted: {error}");
        Orphans::unadopted()
    });
    let helper_slot = Slot::new("helper", MAX_ASKS);
    let helper_parts =
        HelperParts::new(settings::helper(config), control.subscribe(), recorder.sink(), orphans);
    let helper = HelperHandle::new(helper_slot.clone(), Arc::clone(&helper_parts));
    let helper_runner =
        Owned::new(helper_slot.clone(), RestartPolicy::standard().at_once(), move |birth, _| {
            HelperRunner::new(Arc::clone(&helper_parts), Some(birth.notice))
        });

    let tools = Tools {
        link: Arc::new(link.clone()),
        helper: Arc::new(helper.clone()),
        vault: Arc::new(vault.clone()),
    };
    let roster = settings::roster(config)?;
    let (publish, published) = watch::channel(FleetSnapshot::default());
    let fleet_slot: Slot<FleetKeeper> = Slot::new("fleet", MAX_ASKS);
    let fleet = FleetHandle::new(fleet_slot.clone(), published);
    let fleet_settings = FleetSettings {
        roster,
        plan: Arc::new(settings::plan(config)),
        tools,
        run_state: control.subscribe(),
        recorder: recorder.clone(),
        threads: HOST_THREADS,
        host_ping_every,
        shelf: Shelf::new(roster),
        publish: Arc::new(publish),
        wall_seconds: || crate::clock::now().seconds(),
    };
    let fleet_keeper =
        Owned::new(fleet_slot.clone(), RestartPolicy::standard().at_once(), move |birth, _| {
            FleetKeeper::new(fleet_settings.clone(), birth.notice)
        });

    let noticed = fleet.clone();
    let seen: SeenSink = Arc::new(move |seen| noticed.noticed(seen));
    let discovery = DiscoverySettings {
        interval: config.interval,
        component: config.lifecycle_component.clone(),
        link: Arc::new(link.clone()),
        seen,
        run_state: control.subscribe(),
        recorder: recorder.clone(),
    };
    let discoverer =
        Owned::new(discovery_slot.clone(), RestartPolicy::standard().at_once(), move |birth, _| {
            Discoverer::new(discovery.clone(), birth.notice)
        })
        .below("fleet");

    let mut wards: Vec<Box<dyn Ward>> = vec![
        Box::new(controller),
        Box::new(metrics_keeper),
        Box::new(vault_keeper),
        Box::new(broker_link),
        Box::new(helper_runner),
        Box::new(fleet_keeper),
        Box::new(discoverer),
    ];
    if let Some(until) = leading_until {
        wards.push(Box::new(owned_elector(config, &link, &control, leadership, until, &recorder)));
    }
    let positions = Positions {
        control: control_slot,
        metrics: metrics.slot().clone(),
        vault: vault.slot().clone(),
        link: link.slot().clone(),
        helper: helper_slot,
        fleet: fleet_slot,
        discovery: discovery_slot,
    };
    Ok(Parts { recorder, control, fleet, link, metrics, positions, wards })
}

fn owned_controller(
    slot: Slot<Controller>,
    state: Arc<watch::Sender<RunState>>,
    recorder: Recorder,
) -> Owned<Controller> {
    Owned::new(slot, RestartPolicy::standard(), move |birth, _| {
        Controller::new(Arc::clone(&state), recorder.clone(), birth.notice)
    })
}

/// Takes part in the election; the Controller is told who leads.
fn owned_elector(
    config: &Config,
    link: &LinkHandle,
    control: &ControlHandle,
    leadership: Slot<Controller>,
    until: LeadingUntil,
    recorder: &Recorder,
) -> Owned<Elector> {
    let lead = Arc::new(move |leading| {
        if let Err(refused) = leadership.try_send(LeadershipChanged { leading }) {
            tracing::warn!("leadership could not be announced: {refused}");
        }
    });
    let identity = config.identity.to_string();
    let settings =
        ElectorSettings::peer(&identity, link.clone(), control.subscribe(), lead, until, recorder.clone());
    let election = ElectionHandle::new(settings);
    Owned::new(election.slot().clone(), RestartPolicy::standard(), election.factory())
}

fn build_link(
    config: &Config,
    vault: &VaultHandle,
    recorder: &Recorder,
    discovery: &Slot<Discoverer>,
) -> LinkHandle {
    let mut settings = settings::link(config);
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

/// Publishes our own startup event once there is a connection, in the encoding of the peer (choria.md 5).
fn announce(config: &Arc<Config>, link: &LinkHandle) {
    let (link, identity) = (link.clone(), config.identity.to_string());
    actix_rt::spawn(async move {
        if !link.ready(ANNOUNCE_WITHIN).await {
            return;
        }
        let event = Event {
            kind: EventKind::Startup,
            id: uuid::Uuid::new_v4().to_string(),
            identity,
            component: COMPONENT.to_owned(),
            timestamp: crate::clock::now().seconds(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            new_version: None,
        };
        let subject = subject::event(EventKind::Startup, COMPONENT);
        if let Err(error) = link.publish(subject, event::encode(&event, EventFormat::Choria)).await {
            tracing::warn!("could not publish our startup event: {error}");
        }
    });
}
