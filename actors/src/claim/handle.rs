//! What others hold of the claims.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Context;
use quartermaster_proto::choria::identity::Identity;
use rand::RngExt as _;
use tokio::time::Instant;

use super::actor::ClaimKeeper;
use super::board::{Board, Chance, Turn};
use super::lease::{SharedLease, Writer, Written};
use super::messages::{ClaimEnded, ClaimSnapshot, LeaveCluster};
use super::record::RecordState;
use super::settings::ClaimSettings;
use super::shared::Shared;
use crate::discovery::Seen;
use crate::host::{Boxed, ClaimEnd, ClaimPort, ClaimedHost};
use crate::metrics::Fact;
use crate::supervise::{Birth, SendRefused, Slot};

/// Only a stop asks.
const MAX_ASKS: usize = 16;
/// Between two attempts to claim a host while the bucket cannot be written.
const AGAIN: Duration = Duration::from_secs(1);

/// A handle to the claims; survives restarts of their keeper.
#[derive(Debug, Clone)]
pub struct ClaimHandle {
    slot: Slot<ClaimKeeper>,
    settings: ClaimSettings,
    shared: Arc<Shared>,
}

/// The right to work on one host. Given back when dropped, as after a panic.
#[derive(Debug)]
pub struct Claim {
    lease: SharedLease,
    round: u64,
    shared: Arc<Shared>,
    slot: Slot<ClaimKeeper>,
    ended: AtomicBool,
}

impl ClaimHandle {
    /// The handle of claims that nobody keeps yet: the owner starts their keeper from [`ClaimHandle::slot`] and
    /// [`ClaimHandle::factory`].
    pub fn new(settings: ClaimSettings) -> Self {
        let life = hex::encode(rand::rng().random::<[u8; 8]>());
        let board = Board::new(&settings.identity, &life, settings.most, settings.interval);
        let writer = Writer {
            link: settings.link.clone(),
            bucket: settings.bucket.name.clone(),
            by: settings.identity.clone(),
            life,
            limit: settings.limit,
        };
        let shared = Arc::new(Shared::new(writer, board));
        Self { slot: Slot::new("claim", MAX_ASKS), settings, shared }
    }

    /// The position.
    pub const fn slot(&self) -> &Slot<ClaimKeeper> {
        &self.slot
    }

    /// Makes one life of the keeper.
    pub fn factory(
        &self,
    ) -> impl Fn(Birth, &mut Context<ClaimKeeper>) -> ClaimKeeper + Send + Sync + 'static {
        let (settings, shared) = (self.settings.clone(), Arc::clone(&self.shared));
        move |birth, _| ClaimKeeper::new(settings.clone(), Arc::clone(&shared), birth.notice)
    }

    /// The claims now; never waits on the actor.
    pub fn snapshot(&self) -> ClaimSnapshot {
        self.shared.published.borrow().clone()
    }

    /// A host was noticed. Goes on to the fleet when it is this instance's turn, and is kept in mind when it is not.
    pub fn notice(&self, seen: Seen) -> Result<(), SendRefused> {
        let now = Instant::now();
        let turn = match &seen {
            Seen::Answered(host) | Seen::Started(host, ..) => {
                let may = self.shared.lives.borrow().is_some() && self.settings.run_state.borrow().admits();
                let mut board = self.shared.board();
                if may { board.notice(host, now) } else { board.keep(host, now) }
            }
            Seen::Serves(host) => {
                self.shared.board().drop_kept(host);
                Turn::Ours
            }
            Seen::Elsewhere(_) => Turn::Ours,
        };
        match turn {
            Turn::Ours => return (self.settings.fleet)(seen),
            Turn::Full => self.settings.recorder.record(Fact::SightingDropped { lane: "queue" }),
            Turn::Theirs | Turn::Done => {}
        }
        Ok(())
    }

    /// Says in the bucket that this instance is gone, so that its hosts are others' at once.
    pub async fn leave(&self, limit: Duration) -> bool {
        self.slot.ask(LeaveCluster, limit).await.is_ok()
    }

    async fn claim(self, host: Identity, resumed: bool) -> Option<Claim> {
        let mut lives = self.shared.lives.subscribe();
        loop {
            let lives = (*lives.wait_for(Option::is_some).await.ok()?)?;
            let chance = self.shared.board().chance(&host, resumed, Instant::now());
            let Chance::After(after) = chance else { return self.contended(&host) };
            let lease = self.shared.begin(&host);
            let claim = Claim {
                round: lease.next_round(),
                lease,
                shared: Arc::clone(&self.shared),
                slot: self.slot.clone(),
                ended: AtomicBool::new(false),
            };
            match claim.lease.claim(&self.shared.writer, after, resumed, lives).await {
                Written::Yes => return Some(claim),
                Written::Other(record, seq) => {
                    claim.ended.store(true, Ordering::SeqCst);
                    self.shared.end(&claim.lease, Instant::now());
                    if let Some(record) = record {
                        self.shared.board().hear(&host, &record, seq, Instant::now());
                    }
                    return self.contended(&host);
                }
                Written::Failed(why) => {
                    tracing::debug!(component = "claim", host = %host, "could not claim it: {why}");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    fn contended(&self, host: &Identity) -> Option<Claim> {
        self.settings.recorder.record(Fact::ClaimContended { host: host.to_string() });
        self.shared.board().keep(host, Instant::now());
        None
    }
}

impl ClaimPort for ClaimHandle {
    fn take(&self, host: Identity, resumed: bool) -> Boxed<Option<Arc<dyn ClaimedHost>>> {
        let handle = self.clone();
        Box::pin(async move {
            let claim = handle.claim(host, resumed).await?;
            Some(Arc::new(claim) as Arc<dyn ClaimedHost>)
        })
    }
}

impl Claim {
    fn say(&self, state: RecordState) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        self.shared.end(&self.lease, Instant::now());
        // Refused: the claim expires.
        if let Err(refused) =
            self.slot.try_send(ClaimEnded { lease: Arc::clone(&self.lease), round: self.round, state })
        {
            tracing::debug!(component = "claim", "{refused}");
        }
    }
}

impl ClaimedHost for Claim {
    fn holds(&self) -> bool {
        self.lease.holds()
    }

    fn has_expired(&self) -> bool {
        self.lease.has_expired()
    }

    fn confirm(&self) -> Boxed<bool> {
        let (lease, shared) = (Arc::clone(&self.lease), Arc::clone(&self.shared));
        Box::pin(async move {
            let Some(lives) = *shared.lives.borrow() else { return false };
            lease.commit();
            lease.renew(&shared.writer, lives).await
        })
    }

    fn end(&self, how: ClaimEnd) {
        self.say(match how {
            ClaimEnd::Done => RecordState::Done,
            ClaimEnd::Again => RecordState::Resting,
            ClaimEnd::Untouched => RecordState::Free,
        });
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.say(if self.lease.is_committed() { RecordState::Resting } else { RecordState::Free });
    }
}
