//! What the live pages show, made once for all who look: sampled at regular times, and at once when the run state changes.

use crate::web::locked::lock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quartermaster_actors::fleet::FleetOverview;
use tokio::sync::watch;

use super::clients::Clients;
use super::pages::{Glance, parts, title};
use super::rate::{Rates, SAMPLE_EVERY};
use super::state::WebState;

/// How long the keeper of the fleet may take to tell what deserves a look, before its last answer is shown instead.
const OVERVIEW_WITHIN: Duration = Duration::from_millis(800);
/// A last answer younger than this is shown without asking again.
const OVERVIEW_LASTS: Duration = Duration::from_millis(900);

/// One part as it is sent: the id of its place, and what stands there for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LivePart {
    /// The id.
    pub id: &'static str,
    /// For somebody who looks.
    pub reader: Arc<str>,
    /// For an admin.
    pub admin: Arc<str>,
}

/// All parts of one moment.
pub(super) type Frame = Arc<[LivePart]>;

#[derive(Debug, Default)]
struct Overview {
    view: FleetOverview,
    told: Option<Instant>,
}

/// The board that everybody reads.
#[derive(Debug)]
pub(super) struct Board {
    state: WebState,
    rates: Mutex<Rates>,
    overview: Mutex<Overview>,
    frames: watch::Sender<Frame>,
    /// Who looks.
    pub clients: Clients,
}

impl Board {
    /// A board with nothing on it yet.
    pub fn new(state: WebState) -> Self {
        Self {
            state,
            rates: Mutex::default(),
            overview: Mutex::default(),
            frames: watch::Sender::new(Arc::new([])),
            clients: Clients::default(),
        }
    }

    /// Frames as they are made. The first is made for whoever asks first.
    pub fn subscribe(&self) -> watch::Receiver<Frame> {
        self.frames.subscribe()
    }

    /// Everything there is to show now. Waits a bounded time for the keeper of the fleet, and not at all for others.
    pub async fn glance(&self) -> Glance {
        let fresh = self.look().await;
        Glance {
            status: self.state.desk.status(),
            rates: lock(&self.rates).line(),
            overview: lock(&self.overview).view.clone(),
            overview_is_fresh: fresh,
            now: crate::clock::now(),
        }
    }

    /// Asks what deserves a look; false when it had to do with an older answer.
    async fn look(&self) -> bool {
        if lock(&self.overview).told.is_some_and(|told| told.elapsed() < OVERVIEW_LASTS) {
            return true;
        }
        match tokio::time::timeout(OVERVIEW_WITHIN, self.state.desk.overview()).await {
            Ok(Ok(view)) => {
                *lock(&self.overview) = Overview { view, told: Some(Instant::now()) };
                true
            }
            Ok(Err(error)) => {
                tracing::debug!(component = "web", "no overview of the fleet: {error}");
                false
            }
            Err(_) => false,
        }
    }

    fn sample(&self) {
        let fleet = self.state.desk.status().fleet;
        lock(&self.rates).sample(fleet.provisioned_total, fleet.failed_total, Instant::now());
    }

    /// Makes a frame now: at a sample, a change of the run state, or for somebody who has just come.
    pub async fn publish(&self) {
        let glance = self.glance().await;
        let mut frame: Vec<LivePart> = parts(&glance, false)
            .into_iter()
            .zip(parts(&glance, true))
            .map(|((id, reader), (_, admin))| LivePart {
                id,
                reader: reader.as_str().into(),
                admin: admin.as_str().into(),
            })
            .collect();
        let title: Arc<str> = title(&glance).as_str().into();
        frame.push(LivePart { id: "title", reader: Arc::clone(&title), admin: title });
        self.frames.send_replace(frame.into());
    }

    /// Keeps the board for as long as somebody else holds it.
    pub async fn keep(board: Arc<Self>) {
        let mut run_state = board.state.run_state.clone();
        let watched = Arc::downgrade(&board);
        drop(board);
        let mut tick = tokio::time::interval(SAMPLE_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut writer_lives = true;
        loop {
            let sampled = tokio::select! {
                _ = tick.tick() => true,
                changed = run_state.changed(), if writer_lives => {
                    writer_lives = changed.is_ok();
                    false
                }
            };
            let Some(board) = watched.upgrade() else { return };
            if sampled {
                board.sample();
                board.clients.reap(Instant::now());
            }
            if board.clients.any() {
                board.publish().await;
            }
        }
    }
}
