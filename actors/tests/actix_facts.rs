//! What actix 0.13 does when an actor ends, as measured: our supervision is built on these facts, so a new version that
//! changes one of them fails here first. Durations are those of paused time and exact.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, AtomicResponse, Context, Handler, MailboxError,
    Message, ResponseActFuture, ResponseFuture, Running, Supervised, Supervisor, WrapFuture,
};
use tokio::time::Instant;

/// What an actor went through, in order.
type Diary = Arc<Mutex<Vec<&'static str>>>;

struct Probe {
    diary: Diary,
    /// Survives a restart by `Supervisor` if the value does.
    count: usize,
}

impl Probe {
    fn write(&self, entry: &'static str) {
        self.diary.lock().unwrap().push(entry);
    }
}

impl Actor for Probe {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.write("started");
        ctx.set_mailbox_capacity(2);
    }

    fn stopping(&mut self, _: &mut Self::Context) -> Running {
        self.write("stopping");
        Running::Stop
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.write("stopped");
    }
}

impl Supervised for Probe {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.write("restarting");
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.write(if std::thread::panicking() { "dropped in a panic" } else { "dropped" });
    }
}

#[derive(Message)]
#[rtype(result = "usize")]
struct Count;

impl Handler<Count> for Probe {
    type Result = usize;

    fn handle(&mut self, _: Count, _: &mut Self::Context) -> usize {
        self.count += 1;
        self.count
    }
}

#[derive(Message)]
#[rtype(result = "()")]
enum Do {
    Stop,
    Panic,
    PanicInActorFuture,
    /// Sets a timer that writes into the diary.
    SetTimer,
}

impl Handler<Do> for Probe {
    type Result = ();

    fn handle(&mut self, what: Do, ctx: &mut Self::Context) {
        match what {
            Do::Stop => ctx.stop(),
            Do::Panic => panic!("on purpose"),
            Do::PanicInActorFuture => {
                ctx.spawn(async { panic!("on purpose") }.into_actor(self));
            }
            Do::SetTimer => {
                ctx.run_later(Duration::from_secs(1), |me, _| me.write("timer"));
            }
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct PanicInPlainFuture;

impl Handler<PanicInPlainFuture> for Probe {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: PanicInPlainFuture, _: &mut Self::Context) -> Self::Result {
        Box::pin(async { panic!("on purpose") })
    }
}

/// Never answered.
#[derive(Message)]
#[rtype(result = "()")]
struct Linger;

impl Handler<Linger> for Probe {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Linger, _: &mut Self::Context) -> Self::Result {
        Box::pin(std::future::pending().into_actor(self).map(|(), me: &mut Self, _| me.write("lingered")))
    }
}

fn probe() -> (Probe, Diary) {
    let diary = Diary::default();
    (Probe { diary: Arc::clone(&diary), count: 0 }, diary)
}

fn entries(diary: &Diary) -> Vec<&'static str> {
    diary.lock().unwrap().clone()
}

/// Waits until the diary ends like this.
async fn until(diary: &Diary, last: &str) {
    let reached = async {
        while entries(diary).last() != Some(&last) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached)
        .await
        .unwrap_or_else(|_| panic!("{:?}", entries(diary)));
}

#[actix::test]
async fn a_supervisor_restarts_after_a_stop_with_the_same_value_and_its_queue() {
    let (probe, diary) = probe();
    let addr = Supervisor::start(|_| probe);
    assert_eq!(addr.send(Count).await, Ok(1));
    addr.do_send(Do::Stop);
    // Queued behind the stop, answered by the next life, which counts on.
    assert_eq!(addr.send(Count).await, Ok(2));
    assert_eq!(entries(&diary), ["started", "stopping", "stopped", "restarting", "started"]);
}

#[actix::test]
async fn a_restart_drops_timers_and_futures_in_flight() {
    tokio::time::pause();
    let (probe, diary) = probe();
    let addr = Supervisor::start(|_| probe);
    addr.send(Do::SetTimer).await.unwrap();
    let lingering = tokio::task::spawn_local({
        let addr = addr.clone();
        async move { addr.send(Linger).await }
    });
    tokio::task::yield_now().await;
    addr.send(Do::Stop).await.unwrap();
    assert_eq!(addr.send(Count).await, Ok(1));
    assert_eq!(lingering.await.unwrap(), Err(MailboxError::Closed), "its sender gets an error");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!entries(&diary).contains(&"timer"));
}

async fn check_panic_is_the_end(supervised: bool, how: Do) {
    let (probe, diary) = probe();
    let addr = if supervised { Supervisor::start(|_| probe) } else { probe.start() };
    assert_eq!(addr.send(Count).await, Ok(1));
    let at_once = matches!(how, Do::Panic);
    addr.do_send(how);
    let queued = addr.send(Count).await;
    if at_once {
        assert_eq!(queued, Err(MailboxError::Closed), "queued senders get an error");
    }
    until(&diary, "dropped in a panic").await;
    assert!(!addr.connected(), "the mailbox is closed for good");
    assert_eq!(addr.send(Count).await, Err(MailboxError::Closed));
    assert!(!entries(&diary).contains(&"restarting"));
}

#[actix::test]
async fn a_panic_in_a_handler_closes_the_mailbox_for_good() {
    check_panic_is_the_end(false, Do::Panic).await;
}

#[actix::test]
async fn a_panic_in_a_handler_is_not_restarted_by_a_supervisor() {
    check_panic_is_the_end(true, Do::Panic).await;
}

#[actix::test]
async fn a_panic_in_an_actor_future_is_not_restarted_by_a_supervisor() {
    check_panic_is_the_end(true, Do::PanicInActorFuture).await;
}

#[actix::test]
async fn siblings_on_the_thread_of_a_panic_live_on() {
    let ((victim, diary), (sibling, _)) = (probe(), probe());
    let (victim, sibling) = (victim.start(), sibling.start());
    victim.do_send(Do::Panic);
    until(&diary, "dropped in a panic").await;
    assert_eq!(sibling.send(Count).await, Ok(1));
}

#[actix::test]
async fn a_panic_in_a_plain_future_costs_one_request_only() {
    let (probe, diary) = probe();
    let addr = probe.start();
    assert_eq!(addr.send(PanicInPlainFuture).await, Err(MailboxError::Closed));
    assert_eq!(addr.send(Count).await, Ok(1), "the actor lives on");
    assert_eq!(entries(&diary), ["started"]);
}

#[actix::test]
async fn stopping_and_stopped_run_after_a_panic_too_and_only_the_drop_can_tell() {
    let (victim, diary) = probe();
    let addr = victim.start();
    addr.do_send(Do::Panic);
    until(&diary, "dropped in a panic").await;
    assert_eq!(entries(&diary), ["started", "stopping", "stopped", "dropped in a panic"]);

    let (calm, diary) = probe();
    let addr = calm.start();
    addr.do_send(Do::Stop);
    until(&diary, "dropped").await;
    assert_eq!(entries(&diary), ["started", "stopping", "stopped", "dropped"]);
}

/// Sends ten messages at once through `send`; answers how many were taken. The actor shares the thread and reads none.
async fn taken_of_ten(capacity: Option<usize>, mut send: impl FnMut(&actix::Addr<Idle>) -> bool) -> usize {
    let addr = Idle { capacity }.start();
    addr.send(Nothing).await.unwrap();
    (0..10).chain(10..20).filter(|_| send(&addr)).count()
}

struct Idle {
    capacity: Option<usize>,
}

impl Actor for Idle {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(capacity) = self.capacity {
            ctx.set_mailbox_capacity(capacity);
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Nothing;

impl Handler<Nothing> for Idle {
    type Result = ();

    fn handle(&mut self, _: Nothing, _: &mut Self::Context) {}
}

#[actix::test]
async fn a_mailbox_holds_sixteen_by_default() {
    assert_eq!(taken_of_ten(None, |addr| addr.try_send(Nothing).is_ok()).await, 16);
}

#[actix::test]
async fn try_send_respects_the_capacity() {
    assert_eq!(taken_of_ten(Some(2), |addr| addr.try_send(Nothing).is_ok()).await, 2);
}

#[actix::test]
async fn do_send_ignores_the_capacity() {
    let handled = Arc::new(AtomicUsize::new(0));
    let counting = Counting(Arc::clone(&handled)).start();
    for _ in 0..1000 {
        counting.do_send(Nothing);
    }
    counting.send(Nothing).await.unwrap();
    assert_eq!(handled.load(Ordering::Relaxed), 1001);
}

struct Counting(Arc<AtomicUsize>);

impl Actor for Counting {
    type Context = Context<Self>;
}

impl Handler<Nothing> for Counting {
    type Result = ();

    fn handle(&mut self, _: Nothing, _: &mut Self::Context) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[actix::test]
async fn every_clone_of_an_address_has_one_place_beyond_the_capacity() {
    // Why a slot sends through the one address it holds, never through a clone.
    assert_eq!(taken_of_ten(Some(2), |addr| addr.clone().try_send(Nothing).is_ok()).await, 20);
}

/// Answers after 100 ms, overlapping or in turns.
struct Slow;

impl Actor for Slow {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Overlapping;

#[derive(Message)]
#[rtype(result = "()")]
struct InTurns;

const STEP: Duration = Duration::from_millis(100);

impl Handler<Overlapping> for Slow {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Overlapping, _: &mut Self::Context) -> Self::Result {
        Box::pin(tokio::time::sleep(STEP))
    }
}

impl Handler<InTurns> for Slow {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, _: InTurns, _: &mut Self::Context) -> Self::Result {
        AtomicResponse::new(Box::pin(tokio::time::sleep(STEP).into_actor(self)))
    }
}

#[actix::test]
async fn response_futures_of_one_actor_overlap_so_capacity_bounds_no_work_in_flight() {
    tokio::time::pause();
    let addr = Slow.start();
    let began = Instant::now();
    let (first, second) = tokio::join!(addr.send(Overlapping), addr.send(Overlapping));
    assert!(first.is_ok() && second.is_ok());
    let took = began.elapsed();
    assert!(took >= STEP && took < STEP * 3 / 2, "{took:?}");
}

#[actix::test]
async fn atomic_responses_take_turns() {
    tokio::time::pause();
    let addr = Slow.start();
    let began = Instant::now();
    let (first, second) = tokio::join!(addr.send(InTurns), addr.send(InTurns));
    assert!(first.is_ok() && second.is_ok());
    let took = began.elapsed();
    assert!(took >= STEP * 2 && took < STEP * 5 / 2, "{took:?}");
}

struct Ticking {
    ticks: Arc<AtomicUsize>,
    later: Arc<AtomicBool>,
}

impl Actor for Ticking {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(Duration::from_secs(1), |me, _| {
            me.ticks.fetch_add(1, Ordering::Relaxed);
        });
        ctx.run_later(Duration::from_mins(59), |me, _| me.later.store(true, Ordering::Relaxed));
    }
}

#[actix::test]
async fn paused_time_drives_intervals_and_timers() {
    tokio::time::pause();
    let (ticks, later) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let _addr = Ticking { ticks: Arc::clone(&ticks), later: Arc::clone(&later) }.start();
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_hours(1) + STEP).await;
    assert_eq!(ticks.load(Ordering::Relaxed), 3600);
    assert!(later.load(Ordering::Relaxed));
}

#[actix::test]
async fn an_actor_that_blocks_its_thread_stops_its_siblings() {
    // Why every supervised actor has a thread of its own, and the overseer another.
    let arbiter = actix::Arbiter::new();
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let sibling = Idle::start_in_arbiter(&arbiter.handle(), |_| Idle { capacity: None });
    sibling.send(Nothing).await.unwrap();
    let (say, blocked) = tokio::sync::oneshot::channel();
    arbiter.spawn_fn(move || {
        say.send(()).unwrap();
        let _ = wait.recv();
    });
    blocked.await.unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(100), sibling.send(Nothing)).await;
    assert!(silent.is_err(), "no answer while the thread is blocked");
    release.send(()).unwrap();
    assert_eq!(sibling.send(Nothing).await, Ok(()));
    arbiter.stop();
}
