//! Build, start, drain: the one place actors are wired.

pub(crate) mod beside;
mod build;
mod client;
mod cluster;
mod connect;
mod desk;
mod ending;
mod helper;
mod kept;
pub(crate) mod lone;
mod operate;
mod pace;
mod positions;
pub(crate) mod providers;
mod service;
pub(crate) mod settings;
mod signals;
mod steps;
pub(crate) mod web;
pub(crate) mod web_tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::child::Orphans;
use quartermaster_actors::control::ControlHandle;
use quartermaster_actors::fleet::FleetHandle;
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::LinkHandle;
use quartermaster_actors::metrics::Fact;
use quartermaster_actors::provider::ProviderHandle;
use quartermaster_actors::service::ServiceHandle;
use quartermaster_actors::supervise::{Overseer, OverseerHandle, Watchdog};
use quartermaster_proto::choria::event::{self, Event, EventFormat, EventKind};
use quartermaster_proto::choria::subject;

use self::build::{Parts, build};
pub use self::client::{ControlClient, Route};
use self::cluster::Cluster;
pub use self::connect::{ConnectReport, connect_check};
use self::ending::{Ended, Ending};
pub use self::pace::Pace;
pub use self::positions::{Positions, Watching};
pub(crate) use self::providers::settings_of as provider_settings;
use self::signals::PidFile;
pub(crate) use self::signals::Signals;
use crate::config::Config;
use crate::exit::Exit;
use crate::notify::{self, Pulse};
use crate::operate::Operator;
use crate::web::{BoundWeb, WebError, WebServer};

/// Our own component in lifecycle events, the peer's word.
const COMPONENT: &str = "provisioner";
/// How long one actor may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// The same when it has to be at once.
const STOP_AT_ONCE_WITHIN: Duration = Duration::from_millis(200);
/// How long the first connection is waited for before our own startup event is given up; later ones do not matter.
const ANNOUNCE_WITHIN: Duration = Duration::from_hours(1);

/// What `run` was told on the command line beside the configuration.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// `--pid`: written once the instance is up, removed at the end.
    pub pid_file: Option<PathBuf>,
    /// `--trace-wire`: where the frames of providers are written down.
    pub trace_wire: Option<PathBuf>,
    /// How closely the actors are watched.
    pub watching: Watching,
    /// How long the network is waited for.
    pub pace: Pace,
}

/// Why an instance could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A delay of the retry policy makes no sense.
    #[error("the key `retry` is not usable")]
    Retry(#[from] quartermaster_actors::fleet::RetryError),
    /// A step cannot be understood.
    #[error(transparent)]
    Steps(#[from] steps::StepError),
    /// The state folder cannot be used.
    #[error(transparent)]
    State(#[from] quartermaster_actors::journal::StateDirError),
    /// The metrics could not be set up.
    #[error("could not set up the metrics")]
    Metrics(#[from] quartermaster_actors::metrics::MetricsError),
    /// The web listener could not be set up.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The frames of providers could not be written down.
    #[error(transparent)]
    Trace(#[from] crate::provider::TraceError),
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
    journal: JournalHandle,
    link: LinkHandle,
    cluster: Cluster,
    overseer: OverseerHandle,
    operator: Operator,
    service: Option<ServiceHandle>,
    positions: Positions,
    providers: Vec<ProviderHandle>,
    orphans: Orphans,
    web: Option<WebServer>,
    signals: Signals,
    _watchdog: Watchdog,
    _pulse: Option<Pulse>,
    _pid_file: Option<PidFile>,
}

impl App {
    /// Binds, then starts owners before owned.
    pub fn start(config: &Arc<Config>, options: &RunOptions) -> Result<Self, AppError> {
        let signals = Signals::listen().map_err(AppError::Signals)?;
        // Bound before anything works, so that a wrong address is a failed start and nothing else.
        let bound =
            config.listen.map(|listen| BoundWeb::bind(listen, config.web.tls.is_some())).transpose()?;
        let watching = options.watching;
        let Parts {
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
        } = build(config, watching.hosts_every, options)?;
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
        let means = operate::Means {
            control: &control,
            fleet: &fleet,
            journal: &journal,
            link: &link,
            control_link: service.link(),
            cluster: &cluster,
            discovery: &positions.discovery,
            overseer: &overseer,
        };
        let operator = operate::operator(config, &means);
        let service = service.open(&operator);
        let web = match bound {
            Some(bound) => Some(web::serve(bound, config, metrics, &control, &operator)?),
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
        notify::ready();
        let (vital, told) = (overseer.vital(), operator.clone());
        let pulse = Pulse::start(vital, move || told.status().to_line()).map_err(AppError::Watchdog)?;
        Ok(Self {
            control,
            fleet,
            journal,
            link,
            cluster,
            overseer,
            operator,
            service,
            positions,
            providers,
            orphans,
            web,
            signals,
            _watchdog: watchdog,
            _pulse: pulse,
            _pid_file: pid_file,
        })
    }

    /// Works until a signal asks it to stop or it cannot go on.
    pub async fn serve(self) -> Exit {
        let Self {
            control,
            fleet,
            cluster,
            overseer,
            operator,
            service,
            providers,
            orphans,
            web,
            mut signals,
            _watchdog,
            _pulse,
            _pid_file,
            ..
        } = self;
        let web = web.map(|WebServer { server, handle }| {
            actix_rt::spawn(server);
            handle
        });
        let ending = Ending { control: &control, fleet: &fleet, overseer: &overseer, operator: &operator };
        let exit = match ending.wait(&mut signals).await {
            Ended::Properly(exit) => exit,
            Ended::AtOnce => {
                cluster.leave(STOP_AT_ONCE_WITHIN).await;
                // No longer than a moment: only so that no helper outlives us.
                let stopped = overseer.stop(STOP_AT_ONCE_WITHIN);
                drop(tokio::time::timeout(STOP_WITHIN, stopped).await);
                return Exit::Success;
            }
        };
        cluster.leave(STOP_WITHIN).await;
        // Asked to end, so that they can put away what they hold; their limits see to it that they do.
        futures::future::join_all(providers.iter().map(|provider| provider.close(Duration::ZERO))).await;
        // Who asked for the end shall hear that it comes.
        if let Some(service) = service {
            service.settled(STOP_WITHIN).await;
        }
        operator.settled(STOP_WITHIN).await;
        if let Some(web) = web {
            web.stop(true).await;
        }
        if let Some(abandoned) = overseer.stop(STOP_WITHIN).await
            && !abandoned.is_empty()
        {
            tracing::warn!(?abandoned, "some actors did not stop in time");
        }
        // What they started may have been handed on to us only now; it blocks, and nothing else is left to do.
        orphans.sweep();
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

    /// What happened to each host, for whoever asks.
    pub const fn journal(&self) -> &JournalHandle {
        &self.journal
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
