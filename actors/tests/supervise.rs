//! Every ending of an owned actor, forced one by one, and what its owner makes of it. Several threads take part, so these
//! tests run on real time; they wait for published states, never for a length of time.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message};
use quartermaster_actors::supervise::{
    ActorEnding, ArbiterChoice, AskError, Birth, ChildExited, ChildId, ChildSnapshot, ChildState, Ending,
    ExitCause, ExitNotice, Fatal, Force, Liveness, Overseer, OverseerHandle, OverseerSettings, Owned, Pulse,
    RestartPolicy, SendRefused, Slot, SupervisionSnapshot, Ward, Watchdog, release_blocked_threads,
};
use quartermaster_actors::supervised;

/// Longest wait for something that must happen; a test that needs it all has failed.
const SOON: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Worker {
    birth: Birth,
    stalled: bool,
}

impl Actor for Worker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(2);
    }
}

supervised!(Worker, |me| if me.stalled {
    Liveness::Stalled("no progress".to_owned())
} else {
    Liveness::Alive
});

#[derive(Debug, Message)]
#[rtype(result = "u64")]
struct ObserveGeneration;

impl Handler<ObserveGeneration> for Worker {
    type Result = u64;

    fn handle(&mut self, _: ObserveGeneration, _: &mut Self::Context) -> u64 {
        self.birth.notice.child().generation
    }
}

#[derive(Debug, Message)]
#[rtype(result = "()")]
enum Do {
    Fail,
    Stall,
    WaitExcused(Duration),
}

impl Handler<Do> for Worker {
    type Result = ();

    fn handle(&mut self, what: Do, ctx: &mut Self::Context) {
        match what {
            Do::Fail => {
                self.birth.notice.fail("the disk is full");
                actix::ActorContext::stop(ctx);
            }
            Do::Stall => self.stalled = true,
            Do::WaitExcused(limit) => {
                self.birth.pulse.excuse(limit);
                ctx.wait(actix::fut::wrap_future(std::future::pending::<()>()));
            }
        }
    }
}

fn fast() -> RestartPolicy {
    RestartPolicy::new(Duration::from_millis(5), Duration::from_millis(20), 0.5).unwrap()
}

/// How soon a child counts as stuck where one is meant to be. Elsewhere it is never: a panic alone can take long, since
/// its trace is written before the actor drops.
const STUCK: Duration = Duration::from_secs(1);

fn watching(stuck_after: Duration) -> OverseerSettings {
    OverseerSettings { ping_every: Duration::from_millis(10), stuck_after, restarts_at_once: 2 }
}

fn worker(slot: &Slot<Worker>, policy: RestartPolicy) -> Owned<Worker> {
    Owned::new(slot.clone(), policy, |birth, _| Worker { birth, stalled: false })
}

type Endings = Arc<Mutex<Vec<ActorEnding>>>;

fn oversee(wards: Vec<Box<dyn Ward>>) -> (OverseerHandle, Endings) {
    oversee_within(10 * SOON, wards)
}

fn oversee_within(stuck_after: Duration, wards: Vec<Box<dyn Ward>>) -> (OverseerHandle, Endings) {
    let endings = Endings::default();
    let seen = Arc::clone(&endings);
    let observer = move |ending: &ActorEnding| seen.lock().unwrap().push(ending.clone());
    let handle = Overseer::launch(watching(stuck_after), wards, Arc::new(observer));
    (handle, endings)
}

async fn until(handle: &OverseerHandle, what: impl Fn(&SupervisionSnapshot) -> bool) -> SupervisionSnapshot {
    let mut states = handle.subscribe();
    let reached = tokio::time::timeout(SOON, states.wait_for(|now| what(now))).await;
    reached.unwrap_or_else(|_| panic!("never reached; now {:?}", handle.snapshot())).unwrap().clone()
}

fn life(child: &ChildSnapshot, generation: u64) -> bool {
    child.child.generation == generation && child.state == ChildState::Running
}

async fn until_life(handle: &OverseerHandle, name: &str, generation: u64) -> SupervisionSnapshot {
    until(handle, |now| now.child(name).is_some_and(|child| life(child, generation))).await
}

/// Ends the first life by `end` and expects the second under the same name, the cause counted once.
async fn check_replaced(end: impl FnOnce(&Slot<Worker>), cause: ExitCause) -> ChildSnapshot {
    let slot = Slot::new("worker", 8);
    let stuck_after = if cause == ExitCause::Stuck { STUCK } else { 10 * SOON };
    let (handle, endings) = oversee_within(stuck_after, vec![Box::new(worker(&slot, fast()))]);
    until_life(&handle, "worker", 1).await;
    end(&slot);
    let child = until_life(&handle, "worker", 2).await.children.remove(0);
    assert_eq!(slot.ask(ObserveGeneration, SOON).await, Ok(2));
    let mut expected = [0; 4];
    expected[cause.index()] = 1;
    assert_eq!(child.endings, expected);
    let seen = endings.lock().unwrap().clone();
    assert_eq!(seen.iter().map(|e| (e.child.generation, e.cause)).collect::<Vec<_>>(), [(1, cause)]);
    release_blocked_threads();
    assert_eq!(handle.stop(SOON).await, Some(vec![]));
    child
}

fn force(ending: Ending) -> impl FnOnce(&Slot<Worker>) {
    move |slot| slot.try_send(Force(ending)).unwrap()
}

#[actix::test]
async fn a_child_that_stops_is_restarted() {
    check_replaced(force(Ending::Stop), ExitCause::Stopped).await;
}

#[actix::test]
async fn a_child_that_panics_in_a_handler_is_restarted() {
    check_replaced(force(Ending::Panic), ExitCause::Panicked).await;
}

#[actix::test]
async fn a_child_that_panics_in_its_own_future_is_restarted() {
    check_replaced(force(Ending::PanicInFuture), ExitCause::Panicked).await;
}

#[actix::test]
async fn a_child_that_hangs_is_replaced() {
    let child = check_replaced(force(Ending::Hang), ExitCause::Stuck).await;
    assert!(child.last_decision.contains("no answer within 1s"), "{}", child.last_decision);
}

#[actix::test]
async fn a_child_that_blocks_its_thread_is_replaced_on_another() {
    check_replaced(force(Ending::BlockThread), ExitCause::Stuck).await;
}

#[actix::test]
async fn a_child_whose_work_stalls_is_replaced_though_its_mailbox_moves() {
    let child = check_replaced(|slot| slot.try_send(Do::Stall).unwrap(), ExitCause::Stuck).await;
    assert!(child.last_decision.ends_with("(no progress)"), "{}", child.last_decision);
}

#[actix::test]
async fn a_child_that_fails_is_restarted_and_its_reason_is_shown() {
    let child = check_replaced(|slot| slot.try_send(Do::Fail).unwrap(), ExitCause::Failed).await;
    assert!(child.last_decision.ends_with("(the disk is full)"), "{}", child.last_decision);
}

#[actix::test]
async fn a_factory_that_panics_is_an_ending_like_any_other() {
    let slot = Slot::new("worker", 8);
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    let owned = Owned::new(slot.clone(), fast(), move |birth, _: &mut Context<Worker>| {
        assert!(counted.fetch_add(1, Ordering::Relaxed) > 1, "not yet");
        Worker { birth, stalled: false }
    });
    let (handle, _) = oversee(vec![Box::new(owned)]);
    let now = until_life(&handle, "worker", 3).await;
    assert_eq!(now.children[0].endings, [0, 2, 0, 0]);
    handle.stop(SOON).await;
}

#[actix::test]
async fn the_late_end_of_an_abandoned_life_changes_nothing() {
    let slot = Slot::new("worker", 8);
    let (handle, endings) = oversee_within(STUCK, vec![Box::new(worker(&slot, fast()))]);
    until_life(&handle, "worker", 1).await;
    let old = slot.addr().unwrap();
    slot.try_send(Force(Ending::BlockThread)).unwrap();
    until_life(&handle, "worker", 2).await;
    release_blocked_threads();
    until_closed(&old).await;
    // The second life panics and is replaced; had the first one's notice counted too, there would be a fourth.
    slot.try_send(Force(Ending::Panic)).unwrap();
    until_life(&handle, "worker", 3).await;
    let seen: Vec<_> = endings.lock().unwrap().iter().map(|e| (e.child.generation, e.cause)).collect();
    assert_eq!(seen, [(1, ExitCause::Stuck), (2, ExitCause::Panicked)]);
    handle.stop(SOON).await;
}

async fn until_closed(addr: &actix::Addr<Worker>) {
    let closed = async {
        while addr.connected() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(SOON, closed).await.unwrap();
}

#[actix::test]
async fn a_declared_wait_is_not_taken_for_a_hang_before_its_limit() {
    let slot = Slot::new("worker", 8);
    let (handle, _) = oversee_within(STUCK, vec![Box::new(worker(&slot, fast()))]);
    until_life(&handle, "worker", 1).await;
    let before = std::time::Instant::now();
    let declared = Duration::from_millis(2500);
    slot.try_send(Do::WaitExcused(declared)).unwrap();
    until_life(&handle, "worker", 2).await;
    assert!(before.elapsed() >= declared, "replaced within the declared wait");
    handle.stop(SOON).await;
}

#[actix::test]
async fn an_owners_end_cancels_all_below_it_and_they_return_after_it() {
    let (fleet, finder) = (Slot::new("fleet", 8), Slot::new("finder", 8));
    let (handle, endings) =
        oversee(vec![Box::new(worker(&fleet, fast())), Box::new(worker(&finder, fast()).below("fleet"))]);
    until_life(&handle, "finder", 1).await;
    fleet.try_send(Force(Ending::Panic)).unwrap();
    until_life(&handle, "fleet", 2).await;
    let now = until_life(&handle, "finder", 2).await;
    assert_eq!(now.child("finder").unwrap().endings, [0; 4], "a cancelled child has not failed");
    assert_eq!(endings.lock().unwrap().len(), 1);
    handle.stop(SOON).await;
}

#[actix::test]
async fn the_end_of_a_lower_child_leaves_its_owner_alone() {
    let (fleet, finder) = (Slot::new("fleet", 8), Slot::new("finder", 8));
    let (handle, _) =
        oversee(vec![Box::new(worker(&fleet, fast())), Box::new(worker(&finder, fast()).below("fleet"))]);
    until_life(&handle, "finder", 1).await;
    finder.try_send(Force(Ending::Panic)).unwrap();
    until_life(&handle, "finder", 2).await;
    assert_eq!(fleet.ask(ObserveGeneration, SOON).await, Ok(1));
    handle.stop(SOON).await;
}

#[actix::test]
async fn a_child_on_a_shared_thread_is_replaced_on_its_own_when_that_thread_is_blocked() {
    let shared = actix_rt::Arbiter::new();
    let slot = Slot::new("worker", 8);
    let owned = worker(&slot, fast()).on(ArbiterChoice::Shared(shared.handle()));
    let (handle, _) = oversee_within(STUCK, vec![Box::new(owned)]);
    until_life(&handle, "worker", 1).await;
    slot.try_send(Force(Ending::BlockThread)).unwrap();
    until_life(&handle, "worker", 2).await;
    release_blocked_threads();
    handle.stop(SOON).await;
    shared.stop();
}

#[actix::test]
async fn a_child_that_cannot_be_kept_alive_is_fatal_and_the_reason_is_named() {
    let slot = Slot::new("worker", 8);
    let policy = fast().give_up_after(2).unwrap();
    let owned = Owned::new(slot.clone(), policy, |birth, _: &mut Context<Worker>| {
        assert!(birth.notice.child().generation == 0, "never");
        Worker { birth, stalled: false }
    });
    let (handle, _) = oversee(vec![Box::new(owned)]);
    let fatal = tokio::time::timeout(SOON, handle.fatal()).await.unwrap();
    assert_eq!(fatal.child, "worker");
    assert!(fatal.why.starts_with("panicked after 2 restarts in a row"), "{}", fatal.why);
    let now = until(&handle, |now| now.children[0].state == ChildState::GaveUp).await;
    assert_eq!(now.children[0].endings, [0, 3, 0, 0]);
    handle.stop(SOON).await;
}

#[actix::test]
async fn a_child_that_has_done_its_work_retires() {
    let slot = Slot::new("worker", 8);
    let (handle, _) = oversee(vec![Box::new(worker(&slot, fast().retire_on_stop()))]);
    until_life(&handle, "worker", 1).await;
    slot.try_send(Force(Ending::Stop)).unwrap();
    until(&handle, |now| now.children[0].state == ChildState::Retired).await;
    assert_eq!(slot.try_send(Do::Stall), Err(SendRefused::Down { slot: "worker" }));
    handle.stop(SOON).await;
}

#[actix::test]
async fn an_overseer_that_panics_is_fatal() {
    let (handle, _) = oversee(vec![]);
    handle.force(Ending::Panic);
    let fatal = tokio::time::timeout(SOON, handle.fatal()).await.unwrap();
    assert_eq!(fatal, Fatal { child: "overseer", why: "the overseer has ended".to_owned() });
}

#[actix::test]
async fn an_overseer_that_ends_takes_its_children_with_it() {
    let slot = Slot::new("worker", 8);
    let (handle, _) = oversee(vec![Box::new(worker(&slot, fast()))]);
    until_life(&handle, "worker", 1).await;
    let addr = slot.addr().unwrap();
    handle.force(Ending::Panic);
    handle.fatal().await;
    until_closed(&addr).await;
    assert!(!slot.is_up(), "the slot is empty");
}

async fn check_watchdog_sees(ending: Ending) {
    let (handle, _) = oversee(vec![]);
    let (said, heard) = tokio::sync::oneshot::channel();
    let last_resort = |why| said.send(why).unwrap();
    let dog = Watchdog::start(handle.vital(), Duration::from_millis(50), 5, last_resort).unwrap();
    handle.force(ending);
    let why = tokio::time::timeout(SOON, heard).await.unwrap().unwrap();
    assert_eq!(why, "the overseer made no progress in 5 looks, 50ms apart");
    drop(dog);
    release_blocked_threads();
}

#[actix::test]
async fn the_watchdog_sees_an_overseer_whose_thread_is_blocked() {
    check_watchdog_sees(Ending::BlockThread).await;
}

#[actix::test]
async fn the_watchdog_sees_an_overseer_that_is_gone() {
    check_watchdog_sees(Ending::Stop).await;
}

#[actix::test]
async fn stopping_ends_children_and_names_those_it_had_to_abandon() {
    let (first, second) = (Slot::new("first", 8), Slot::new("second", 8));
    let (handle, endings) =
        oversee(vec![Box::new(worker(&first, fast())), Box::new(worker(&second, fast()))]);
    until(&handle, SupervisionSnapshot::all_running).await;
    first.try_send(Force(Ending::Hang)).unwrap();
    assert_eq!(handle.stop(Duration::from_secs(2)).await, Some(vec!["first"]));
    assert!(handle.snapshot().children.iter().all(|child| child.state == ChildState::Retired));
    assert!(endings.lock().unwrap().is_empty(), "an ordered stop is no ending to count");
    assert!(!first.is_up() && !second.is_up());
}

#[actix::test]
async fn many_that_end_at_once_all_return() {
    let slots: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|name| Slot::new(name, 8)).into();
    let wards = slots.iter().map(|slot| Box::new(worker(slot, fast().at_once())) as Box<dyn Ward>).collect();
    let (handle, _) = oversee(wards);
    until(&handle, SupervisionSnapshot::all_running).await;
    for slot in &slots {
        slot.try_send(Force(Ending::Panic)).unwrap();
    }
    until(&handle, |now| now.children.iter().all(|child| life(child, 2))).await;
    handle.stop(SOON).await;
}

#[actix::test]
async fn a_slot_nobody_is_in_refuses() {
    let slot: Slot<Worker> = Slot::new("worker", 8);
    assert_eq!(slot.try_send(Do::Stall), Err(SendRefused::Down { slot: "worker" }));
    assert_eq!(slot.ask(ObserveGeneration, SOON).await, Err(AskError::Down { slot: "worker" }));
}

struct Deaf;

impl Actor for Deaf {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Deaf {
    type Result = ();

    fn handle(&mut self, _: ChildExited, _: &mut Self::Context) {}
}

/// A worker on the test's own thread, in a slot that admits two questions; it has started when this returns.
async fn lone_worker() -> Slot<Worker> {
    let slot = Slot::new("worker", 2);
    let notice = ExitNotice::new(ChildId { name: "worker", generation: 1 }, Deaf.start().recipient());
    slot.set(Worker { birth: Birth { notice, pulse: Pulse::new() }, stalled: false }.start());
    assert_eq!(slot.ask(ObserveGeneration, SOON).await, Ok(1));
    slot
}

#[actix::test]
async fn a_full_mailbox_refuses_instead_of_growing() {
    let slot = lone_worker().await;
    // The worker shares this thread, so it reads nothing until we wait.
    let taken = (0..10).filter(|_| slot.try_send(Do::Stall).is_ok()).count();
    assert_eq!(taken, 2, "of 10 with room for 2");
    assert_eq!(slot.try_send(Do::Stall), Err(SendRefused::Full { slot: "worker" }));
}

#[actix::test]
async fn a_question_past_the_bound_is_refused_at_once() {
    let slot = lone_worker().await;
    slot.try_send(Force(Ending::Hang)).unwrap();
    let ask = || slot.ask(ObserveGeneration, SOON);
    let (first, second, third) = (ask(), ask(), ask());
    tokio::select! {
        biased;
        _ = first => unreachable!("nobody answers"),
        _ = second => unreachable!("nobody answers"),
        refused = third => assert_eq!(refused, Err(AskError::Full { slot: "worker" })),
    }
}

#[actix::test]
async fn an_unanswered_question_times_out() {
    let slot = lone_worker().await;
    slot.try_send(Force(Ending::Hang)).unwrap();
    tokio::time::pause();
    let after = Duration::from_secs(30);
    let silence = slot.ask(ObserveGeneration, after).await;
    assert_eq!(silence, Err(AskError::TimedOut { slot: "worker", after }));
}

#[actix::test]
async fn a_question_in_the_hands_of_an_actor_that_ends_is_dropped() {
    let slot = lone_worker().await;
    slot.try_send(Force(Ending::Panic)).unwrap();
    assert_eq!(slot.ask(ObserveGeneration, SOON).await, Err(AskError::Dropped { slot: "worker" }));
}

#[actix::test]
async fn a_slot_tells_when_somebody_is_in_it() {
    let slot: Slot<Worker> = Slot::new("worker", 8);
    assert!(!slot.up(Duration::from_millis(1)).await);
    let (handle, _) = oversee(vec![Box::new(worker(&slot, fast()))]);
    assert!(slot.up(SOON).await);
    handle.stop(SOON).await;
}
