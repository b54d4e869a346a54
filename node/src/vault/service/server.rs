//! The actor on the bus: it follows the assignments, answers accounts, and says what changed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use async_nats::{Message, Subscriber, jetstream};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use quartermaster_actors::supervise::{Birth, ExitNotice, Liveness, Ping, Stop};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::key::{VAULT_GET, VAULT_PUT};
use quartermaster_proto::mesh::signature::PublicNkey;
use quartermaster_proto::mesh::vault::{GetReply, GetRequest, PutReply, PutRequest};
use quartermaster_proto::time::WallClock;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::VaultMetrics;
use super::elsewhere::{Elsewhere, NoAnswer, poll};
use crate::assigned::{Assigned, Follow, follow};
use crate::client::bus::Bus;
use crate::client::seen::SeenMark;
use crate::vault::kv::KvClient;
use crate::vault::{Operation, Vault};

/// Its mailbox: pings, and nothing else.
const MAILBOX: usize = 4;
/// Requests that are under way at once; more wait in the connection.
const MAX_REQUESTS: usize = 64;
/// Assignments that were told and not yet taken in.
const LANE: usize = 64;
/// How long a request waits for our mirror to come as far as its asker's.
const BEHIND_WAIT: Duration = Duration::from_secs(2);
/// Changes that are said in one go.
const UNSENT_AT_ONCE: usize = 64;
/// How long the broker may take to keep one of them.
const KEEP_LIMIT: Duration = Duration::from_secs(5);
/// The wait after one could not be said.
const UNSENT_WAIT: Duration = Duration::from_secs(1);
/// Where answers may go: into somebody's inbox.
const INBOX: &str = "_INBOX";

/// The clock.
pub(super) type Clock = Arc<dyn Fn() -> WallClock + Send + Sync>;

/// What a vault may have beside its store.
pub(super) struct Part {
    pub(super) kv: Option<KvClient>,
    pub(super) metrics: Option<VaultMetrics>,
}

/// Shared by every life of the actors: the store can be open only once.
pub(super) struct Shared {
    vault: Mutex<Vault>,
    clock: Clock,
    changed: Notify,
    /// How far the mirror has come; none until all of it is known.
    mirrored: watch::Sender<Option<u64>>,
    /// Where the values are, if not in the store.
    pub(super) kv: Option<KvClient>,
    /// They gave no answer when they were looked at last.
    pub(super) is_silent: AtomicBool,
    /// What is counted.
    pub(super) metrics: Option<VaultMetrics>,
    /// Dropped last, when the store is closed.
    _closing: oneshot::Sender<()>,
}

impl Shared {
    pub(super) fn new(mut vault: Vault, part: Part, clock: Clock, closing: oneshot::Sender<()>) -> Self {
        vault.forget_assignments();
        let Part { kv, metrics } = part;
        let (vault, mirrored) = (Mutex::new(vault), watch::Sender::new(None));
        let is_silent = AtomicBool::new(false);
        Self { vault, clock, changed: Notify::new(), mirrored, kv, is_silent, metrics, _closing: closing }
    }

    /// What can be done now.
    pub(super) fn in_words(&self) -> &'static str {
        if self.mirrored.borrow().is_none() {
            "waits for the assignments"
        } else if self.is_silent.load(Ordering::Relaxed) {
            "the key-value store gives no answer"
        } else {
            "answers"
        }
    }

    /// Counts an answer, or that there is none.
    fn count(&self, outcome: &str, since: Instant) {
        if let Some(metrics) = &self.metrics {
            metrics.answered(outcome, since.elapsed().as_secs_f64());
        }
    }

    /// Waits until the whole mirror is known.
    pub(super) async fn is_mirrored(&self) {
        let mut mirrored = self.mirrored.subscribe();
        // It lives as long as this does.
        let _ = mirrored.wait_for(Option::is_some).await;
    }

    pub(super) fn now(&self) -> WallClock {
        (self.clock)()
    }

    /// There may be something to be said.
    pub(super) fn has_changed(&self) {
        self.changed.notify_one();
    }

    fn vault(&self) -> MutexGuard<'_, Vault> {
        self.vault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something that waits on the disk beside the actors' own threads.
    pub(super) async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Vault) -> T + Send + 'static,
    ) -> Result<T, String> {
        let me = Arc::clone(self);
        tokio::task::spawn_blocking(move || act(&mut me.vault())).await.map_err(|error| error.to_string())
    }

    /// Opens the audit's file of its name once more.
    pub(super) fn reopen_audit(&self) {
        if let Err(error) = self.vault().reopen_audit() {
            tracing::warn!(%error, "the audit's file cannot be opened once more");
        }
    }
}

/// Serves accounts over the bus.
pub(super) struct VaultServer {
    shared: Arc<Shared>,
    bus: Bus,
    pins: Vec<PublicNkey>,
    /// Remembers how far the mirror had come.
    seen: PathBuf,
    /// Its drop tells the owner.
    _notice: ExitNotice,
}

impl VaultServer {
    pub(super) fn new(
        shared: Arc<Shared>,
        bus: Bus,
        pins: Vec<PublicNkey>,
        seen: PathBuf,
        birth: Birth,
    ) -> Self {
        Self { shared, bus, pins, seen, _notice: birth.notice }
    }
}

impl Actor for VaultServer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let (bus, shared) = (self.bus.clone(), Arc::clone(&self.shared));
        let (out, told) = mpsc::channel(LANE);
        let what = Follow {
            bus: bus.clone(),
            node: None,
            pins: self.pins.clone(),
            seen: SeenMark::File(self.seen.clone()),
        };
        let all = async move {
            let ((), (), (), (), ()) = futures::join!(
                follow(what, out),
                mirror(Arc::clone(&shared), told),
                requests(Arc::clone(&shared), bus.clone()),
                say(Arc::clone(&shared), bus),
                poll(shared),
            );
        };
        ctx.spawn(all.into_actor(self));
    }
}

impl Handler<Ping> for VaultServer {
    type Result = Liveness;

    fn handle(&mut self, Ping: Ping, _: &mut Self::Context) -> Liveness {
        Liveness::Alive
    }
}

impl Handler<Stop> for VaultServer {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

async fn mirror(shared: Arc<Shared>, mut told: mpsc::Receiver<Assigned>) {
    let mut highest = 0;
    // A life begins with nothing and answers nobody until it knows all of it again: what went meanwhile would stay otherwise.
    shared.mirrored.send_replace(None);
    shared.vault().forget_assignments();
    while let Some(told) = told.recv().await {
        match told {
            Assigned::Put { assignment, revision, .. } => {
                highest = revision.max(highest);
                shared.vault().mirror_mut().put(*assignment);
                shared.mirrored.send_if_modified(|known| match known {
                    Some(known) => std::mem::replace(known, highest) != highest,
                    None => false,
                });
            }
            Assigned::Gone(key) => {
                if let Some([node, module]) = quartermaster_proto::mesh::key::parts(&key) {
                    shared.vault().mirror_mut().remove(&node, &module);
                }
            }
            Assigned::Refused(_) => {}
            Assigned::Loaded => {
                let now = shared.now();
                let addressed = shared.on_disk(move |vault| vault.know_assignments(now)).await;
                match addressed {
                    Ok(Ok(())) => shared.has_changed(),
                    Ok(Err(error)) => {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            "what changed cannot be addressed"
                        );
                    }
                    Err(why) => tracing::error!(why, "what changed cannot be addressed"),
                }
                shared.mirrored.send_replace(Some(highest));
            }
        }
    }
}

async fn requests(shared: Arc<Shared>, bus: Bus) {
    loop {
        let asked = subscribe(&bus, VAULT_GET).await;
        let deposited = subscribe(&bus, VAULT_PUT).await;
        if let (Some(asked), Some(deposited)) = (asked, deposited) {
            serve(&shared, &bus, asked, deposited).await;
        }
        tokio::time::sleep(UNSENT_WAIT).await;
    }
}

async fn subscribe(bus: &Bus, base: &str) -> Option<Subscriber> {
    match bus.client().subscribe(format!("{base}.>")).await {
        Ok(subscriber) => Some(subscriber),
        Err(error) => {
            tracing::warn!(%error, "requests cannot be heard");
            None
        }
    }
}

async fn serve(shared: &Arc<Shared>, bus: &Bus, mut asked: Subscriber, mut deposited: Subscriber) {
    let mut under_way: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    loop {
        let has_room = under_way.len() < MAX_REQUESTS;
        let (operation, base, message) = tokio::select! {
            message = asked.next(), if has_room => (Operation::Get, VAULT_GET, message),
            message = deposited.next(), if has_room => (Operation::Put, VAULT_PUT, message),
            Some(()) = under_way.next(), if !under_way.is_empty() => continue,
        };
        let Some(message) = message else { return };
        under_way.push(Box::pin(answer(Arc::clone(shared), bus.clone(), operation, base, message)));
    }
}

async fn answer(shared: Arc<Shared>, bus: Bus, operation: Operation, base: &'static str, message: Message) {
    let (now, since) = (shared.now(), Instant::now());
    let who = message
        .subject
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or_default()
        .to_owned();
    let reply_to = message.reply.as_ref().filter(|reply| reply.starts_with(INBOX)).cloned();
    let (Ok(account), Some(reply_to)) = (Account::parse(&who), reply_to) else {
        let why = "it is of no account, or wants its answer outside of an inbox";
        tracing::warn!(account = who, why, "a request was dropped");
        let noted = shared.on_disk(move |vault| vault.dropped(operation, &who, why, now)).await;
        log_lost(noted.and_then(|done| done.map_err(|error| error.to_string())));
        shared.count("dropped", since);
        return;
    };
    let asked = Asking { account, operation, now };
    let answer = match asked.answered(&shared, &message.payload).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a request stays without an answer");
            None
        }
    };
    shared.has_changed();
    let Some((outcome, body)) = answer else { return shared.count("none", since) };
    shared.count(outcome, since);
    if let Err(error) = bus.client().publish(reply_to, body.into()).await {
        tracing::warn!(%error, "an answer could not leave");
    }
}

/// A request that is to be answered.
struct Asking {
    account: Account,
    operation: Operation,
    now: WallClock,
}

/// An answer: what it is, in a word, and its bytes.
type Answer = (&'static str, Vec<u8>);

impl Asking {
    /// The answer; none where whoever asks is to take it for no answer and ask again.
    async fn answered(self, shared: &Arc<Shared>, payload: &[u8]) -> Result<Option<Answer>, NoAnswer> {
        if self.operation == Operation::Get {
            let Ok(request) = GetRequest::read(payload) else { return self.no_request(shared).await };
            if !shared.has_come_to(request.revision).await {
                return Ok(None);
            }
            let reply = self.get(shared, request).await?;
            let outcome = match &reply {
                GetReply::Sealed { .. } => "sealed",
                GetReply::Absent { .. } => "absent",
                GetReply::Refused { .. } => "refused",
            };
            Ok(Some((outcome, reply.encode())))
        } else {
            let Ok(request) = PutRequest::read(payload) else { return self.no_request(shared).await };
            if !shared.has_come_to(0).await {
                return Ok(None);
            }
            let reply = self.put(shared, request).await?;
            let is_stored = matches!(reply, PutReply::Stored { .. });
            Ok(Some((if is_stored { "stored" } else { "refused" }, reply.encode())))
        }
    }

    async fn get(self, shared: &Arc<Shared>, request: GetRequest) -> Result<GetReply, NoAnswer> {
        let Self { account, now, .. } = self;
        if let Some(kv) = &shared.kv {
            return Elsewhere { shared, kv, now }.get(account, request).await;
        }
        let done = shared.on_disk(move |vault| vault.get(&account, &request, now)).await;
        Ok(done.map_err(NoAnswer::Lost)??)
    }

    async fn put(self, shared: &Arc<Shared>, request: PutRequest) -> Result<PutReply, NoAnswer> {
        let Self { account, now, .. } = self;
        if let Some(kv) = &shared.kv {
            return Elsewhere { shared, kv, now }.put(account, request).await;
        }
        let done = shared.on_disk(move |vault| vault.put(&account, &request, now)).await;
        Ok(done.map_err(NoAnswer::Lost)??)
    }

    /// Notes what is no request; there is no answer to it.
    async fn no_request(self, shared: &Arc<Shared>) -> Result<Option<Answer>, NoAnswer> {
        let Self { account, operation, now } = self;
        let noted = shared
            .on_disk(move |vault| vault.dropped(operation, &account.name(), "it is no request", now))
            .await;
        noted.map_err(NoAnswer::Lost)??;
        Ok(None)
    }
}

fn log_lost(noted: Result<(), String>) {
    if let Err(why) = noted {
        tracing::error!(why, "a dropped request could not be noted");
    }
}

impl Shared {
    /// Waits until the mirror is known up to this revision; false when it is not known at all. One that stays behind is judged as
    /// it is.
    async fn has_come_to(&self, revision: u64) -> bool {
        let mut mirrored = self.mirrored.subscribe();
        let come = mirrored.wait_for(|known| known.is_some_and(|known| known >= revision));
        let _ = tokio::time::timeout(BEHIND_WAIT, come).await;
        self.mirrored.borrow().is_some()
    }
}

/// Says what changed, until the broker has kept it.
async fn say(shared: Arc<Shared>, bus: Bus) {
    let jetstream = jetstream::new(bus.client().clone());
    loop {
        let metrics = shared.metrics.clone();
        let unsent = shared
            .on_disk(move |vault| {
                if let Some(metrics) = metrics {
                    metrics.holds(vault.list().len(), vault.store_mut().count_unsent()?);
                }
                vault.unsent(UNSENT_AT_ONCE)
            })
            .await;
        let unsent = match unsent {
            Ok(Ok(unsent)) => unsent,
            Ok(Err(error)) => {
                tracing::error!(error = &error as &dyn std::error::Error, "what changed cannot be read");
                Vec::new()
            }
            Err(why) => {
                tracing::error!(why, "what changed cannot be read");
                Vec::new()
            }
        };
        if unsent.is_empty() {
            shared.changed.notified().await;
            continue;
        }
        for (change, notice) in unsent {
            let kept = async {
                let kept = jetstream.publish(notice.subject.clone(), notice.payload.into()).await;
                match kept {
                    Ok(acknowledged) => acknowledged.await.map(drop).map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                }
            };
            let kept =
                tokio::time::timeout(KEEP_LIMIT, kept).await.unwrap_or_else(|_| Err("no answer".to_owned()));
            match kept {
                Ok(()) => {
                    let sent =
                        shared.on_disk(move |vault| vault.store_mut().sent(&notice.subject, change)).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        tracing::warn!("a change will be said once more");
                    }
                }
                Err(why) => {
                    tracing::debug!(why, "a change cannot be said yet");
                    tokio::time::sleep(UNSENT_WAIT).await;
                    break;
                }
            }
        }
    }
}
