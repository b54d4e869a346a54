//! The runner as an actor: slots, queue, pause, and what every ending of it means for those who wait. Real helper processes,
//! small scripts.

#[cfg(test)]
mod helper_support;

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helper_support::{Script, alive_in, eventually, script};
use quartermaster_actors::control::{PausedBy, RunState};
use quartermaster_actors::helper::{
    HelperError, HelperHandle, HelperParts, HelperRun, HelperRunner, Orphans, PanicInRun, RunHelper,
};
use quartermaster_actors::metrics::{Fact, HelperOutcome};
use quartermaster_actors::supervise::{
    Ending, Force, Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy, Slot,
    release_blocked_threads,
};
use quartermaster_proto::choria::Identity;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const ANSWER: &str = r#"echo '{"defer":true,"msg":"not yet"}'"#;
/// A deadline that passes, and that a quick helper keeps on a busy machine too.
const SHORT: Duration = Duration::from_secs(3);
/// Only there so that a failing test ends.
const LIMIT: Duration = Duration::from_mins(2);

/// A runner with its owner, and what it recorded.
struct Bench {
    script: Script,
    slot: Slot<HelperRunner>,
    handle: HelperHandle,
    overseer: OverseerHandle,
    facts: Arc<Mutex<Vec<Fact>>>,
    state: watch::Sender<RunState>,
}

type Running = JoinHandle<Result<HelperRun, HelperError>>;

#[cfg(test)]
impl Bench {
    fn start(script: Script) -> Self {
        // A panic that is printed with its backtrace holds its thread up for seconds where the machine is busy.
        Self::stuck_after(script, Duration::from_secs(20))
    }

    fn stuck_after(script: Script, stuck_after: Duration) -> Self {
        let facts: Arc<Mutex<Vec<Fact>>> = Arc::default();
        let sink = Arc::clone(&facts);
        let (state, run_state) = watch::channel(RunState::working());
        let record = Arc::new(move |fact| sink.lock().unwrap().push(fact));
        let parts =
            Arc::new(HelperParts::new(script.settings.clone(), run_state, record, Orphans::unadopted()));
        let slot = Slot::new("helper", 16);
        let handle = HelperHandle::new(slot.clone(), Arc::clone(&parts));
        let policy = RestartPolicy::new(Duration::from_millis(5), Duration::from_millis(5), 0.0).unwrap();
        let owned = Owned::new(slot.clone(), policy, move |birth, _| {
            HelperRunner::new(Arc::clone(&parts), Some(birth.notice))
        });
        let settings =
            OverseerSettings { ping_every: Duration::from_millis(50), stuck_after, restarts_at_once: 1 };
        let overseer = Overseer::launch(settings, vec![Box::new(owned)], Arc::new(|_| {}));
        Self { script, slot, handle, overseer, facts, state }
    }

    async fn up(self) -> Self {
        assert!(self.slot.up(Duration::from_secs(10)).await);
        self
    }

    fn ask(&self, host: &str) -> Running {
        let handle = self.handle.clone();
        let identity = Identity::parse(host).unwrap();
        let input = format!("{{\"identity\":\"{host}\"}}\n").into_bytes();
        actix_rt::spawn(async move {
            let run = handle.run(RunHelper { identity, input });
            tokio::time::timeout(LIMIT, run).await.expect("no answer at all")
        })
    }

    async fn run(&self, host: &str) -> Result<HelperRun, HelperError> {
        self.ask(host).await.unwrap()
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts.lock().unwrap().clone()
    }

    async fn running(&self, count: usize) {
        eventually("so many run", || self.handle.snapshot().running.len() == count).await;
    }

    async fn queued(&self, count: usize) {
        eventually("so many wait", || self.handle.snapshot().queued == count).await;
    }

    async fn stop(self) {
        assert_eq!(self.overseer.stop(Duration::from_secs(5)).await, Some(Vec::new()));
        eventually("no process is left", || alive_in(self.script.dir.path()).is_empty()).await;
    }
}

/// A helper that waits until the file `go` exists, for hosts whose name begins with `w`.
fn waiting() -> Script {
    script(&format!(
        "read line; case $line in *'\"w'*) while ! test -e $HELPER_DIR/go; do sleep 0.02; done;; esac; echo $line >> $HELPER_DIR/order; {ANSWER}"
    ))
    .within(Duration::from_mins(10))
}

#[cfg(test)]
fn with_slots(mut script: Script, slots: usize, queue: usize) -> Script {
    script.settings.slots = std::num::NonZeroUsize::new(slots).unwrap();
    script.settings.queue = queue;
    script
}

#[actix::test]
async fn a_run_answers_and_is_recorded_with_what_the_helper_said() {
    let bench = Bench::start(script(&format!("echo looking >&2; {ANSWER}"))).up().await;
    let run = bench.run("web1.example.net").await.unwrap();
    assert!(run.reply.defer);
    assert_eq!(run.stderr_tail, ["looking"]);
    let facts = bench.facts();
    assert!(
        matches!(&facts[..], [Fact::HelperSaid { host, line }, Fact::HelperRan { host: ran, took, outcome: HelperOutcome::Answered, error: None, .. }]
            if host == "web1.example.net" && line == "looking" && ran == host && *took == run.took),
        "{facts:?}"
    );
    let snapshot = bench.handle.snapshot();
    assert_eq!((snapshot.answered, snapshot.failed, snapshot.last.len()), (1, 0, 1));
    assert_eq!(snapshot.last[0].stderr, ["looking"]);
    bench.stop().await;
}

#[actix::test]
async fn a_run_that_times_out_records_its_whole_duration() {
    let bench = Bench::start(script("sleep 600").within(SHORT)).up().await;
    bench.run("a1").await.unwrap_err();
    let facts = bench.facts();
    let [Fact::HelperRan { took, outcome: HelperOutcome::Failed, error: Some(error), .. }] = &facts[..]
    else {
        panic!("{facts:?}")
    };
    assert!(*took >= SHORT && error.contains("did not finish within 3s"), "{took:?} {error}");
    assert_eq!(bench.handle.snapshot().last[0].error.as_ref(), Some(error));
    bench.stop().await;
}

#[actix::test]
async fn a_paused_instance_starts_no_helper_and_names_it() {
    let bench = Bench::start(script(&format!("touch $HELPER_DIR/started; {ANSWER}"))).up().await;
    let by = PausedBy { who: "op".into(), why: "repair".into(), since: 0 };
    let paused = RunState { paused: Some(Arc::new(by)), ..RunState::working() };
    let standby = RunState { leading: false, ..RunState::working() };
    for state in [paused, standby] {
        bench.state.send_replace(state);
        let error = bench.run("a1").await.unwrap_err();
        assert!(matches!(error, HelperError::Paused { .. }), "{error}");
        assert!(error.to_string().contains(bench.handle.program()), "{error}");
    }
    assert!(!bench.script.file("started").exists());
    // The timer starts before the pause is looked at, as in the peer.
    assert!(
        bench
            .facts()
            .iter()
            .all(|fact| matches!(fact, Fact::HelperRan { outcome: HelperOutcome::Failed, .. }))
    );
    assert_eq!(bench.facts().len(), 2);
    // A draining instance finishes its cycles.
    bench.state.send_replace(RunState { draining: true, ..RunState::working() });
    bench.run("a1").await.unwrap();
    bench.stop().await;
}

#[actix::test]
async fn a_run_that_waited_while_the_pause_came_is_refused_and_one_that_ran_finishes() {
    let bench = Bench::start(with_slots(waiting(), 1, 10)).up().await;
    let running = bench.ask("w1");
    bench.running(1).await;
    let queued = bench.ask("b1");
    bench.queued(1).await;
    bench.state.send_replace(RunState { leading: false, ..RunState::working() });
    fs::write(bench.script.file("go"), "").unwrap();
    assert!(running.await.unwrap().is_ok());
    assert!(matches!(queued.await.unwrap(), Err(HelperError::Paused { .. })));
    bench.stop().await;
}

#[actix::test]
async fn runs_go_in_the_order_of_asking_and_never_more_than_there_are_slots() {
    let bench = Bench::start(with_slots(waiting(), 1, 100)).up().await;
    let mut runs = vec![bench.ask("w0")];
    bench.running(1).await;
    for number in 0..20 {
        runs.push(bench.ask(&format!("b{number}")));
        bench.queued(number + 1).await;
    }
    assert_eq!(bench.handle.snapshot().running.len(), 1);
    fs::write(bench.script.file("go"), "").unwrap();
    for run in runs {
        run.await.unwrap().unwrap();
    }
    let order = fs::read_to_string(bench.script.file("order")).unwrap();
    let hosts = std::iter::once("w0".to_owned()).chain((0..20).map(|n| format!("b{n}")));
    let expected: Vec<String> = hosts.map(|host| format!("{{\"identity\":\"{host}\"}}")).collect();
    assert_eq!(order.lines().collect::<Vec<_>>(), expected);
    bench.stop().await;
}

#[actix::test]
async fn a_full_queue_refuses_at_once_and_says_so() {
    let bench = Bench::start(with_slots(waiting(), 2, 3)).up().await;
    let mut runs: Vec<Running> = (0..2).map(|n| bench.ask(&format!("w{n}"))).collect();
    bench.running(2).await;
    runs.extend((2..5).map(|n| bench.ask(&format!("w{n}"))));
    bench.queued(3).await;
    let error = bench.run("w9").await.unwrap_err();
    assert!(matches!(error, HelperError::QueueFull { queued: 3, .. }), "{error}");
    fs::write(bench.script.file("go"), "").unwrap();
    for run in runs {
        run.await.unwrap().unwrap();
    }
    bench.run("b1").await.unwrap();
    bench.stop().await;
}

#[actix::test]
async fn a_burst_at_a_new_runner_waits_its_turn() {
    // A new actor's mailbox is small until its thread gets to it.
    let bench = Bench::start(with_slots(script(ANSWER), 8, 100)).up().await;
    let runs: Vec<Running> = (0..100).map(|n| bench.ask(&format!("b{n}"))).collect();
    for run in runs {
        run.await.unwrap().unwrap();
    }
    bench.stop().await;
}

#[actix::test]
async fn who_stops_waiting_gives_up_the_place_and_who_leaves_a_run_stops_it() {
    // Far longer than a test waits: nobody but the asker ends the run.
    let script = waiting().within(Duration::from_mins(10));
    let bench = Bench::start(with_slots(script, 1, 1)).up().await;
    let left = bench.ask("w1");
    bench.running(1).await;
    let queued = bench.ask("w2");
    bench.queued(1).await;
    queued.abort();
    // The queue is full no more, for the next one takes the place of the one who left.
    let next = bench.ask("b3");
    eventually("w2 is gone", || queued.is_finished()).await;
    left.abort();
    next.await.unwrap().unwrap();
    assert!(!fs::read_to_string(bench.script.file("order")).unwrap().contains('w'));
    bench.stop().await;
}

#[actix::test]
async fn sleepers_time_out_one_by_one_while_the_quick_finish() {
    let script =
        script(&format!("read line; case $line in *'\"a'*) sleep 30;; esac; {ANSWER}")).within(SHORT);
    let bench = Bench::start(with_slots(script, 4, 100)).up().await;
    let (mut slow, mut quick) = (Vec::new(), Vec::new());
    for number in 0..20 {
        slow.push(bench.ask(&format!("a{number}")));
        quick.push(bench.ask(&format!("b{number}")));
    }
    for run in quick {
        run.await.unwrap().unwrap();
    }
    for run in slow {
        assert!(matches!(run.await.unwrap(), Err(HelperError::TimedOut { .. })));
    }
    let failed = bench
        .facts()
        .iter()
        .filter(|fact| matches!(fact, Fact::HelperRan { outcome: HelperOutcome::Failed, .. }))
        .count();
    assert_eq!(failed, 20);
    let snapshot = bench.handle.snapshot();
    assert_eq!((snapshot.answered, snapshot.failed, snapshot.running.len(), snapshot.queued), (20, 20, 0, 0));
    bench.stop().await;
}

#[actix::test]
async fn a_panic_in_a_run_costs_that_run_and_frees_its_slot() {
    let script =
        script(&format!("read line; echo hello >&2; case $line in *'\"a'*) sleep 600;; esac; {ANSWER}"));
    let bench = Bench::start(with_slots(script, 1, 10)).up().await;
    let addr = bench.slot.addr().unwrap();
    addr.send(PanicInRun(Identity::parse("a1").unwrap())).await.unwrap();
    let (hit, next) = (bench.ask("a1"), bench.ask("b2"));
    assert!(matches!(hit.await.unwrap(), Err(HelperError::Lost)));
    next.await.unwrap().unwrap();
    assert!(bench.slot.addr().is_some_and(|now| now == addr), "the runner itself lives on");
    assert!(bench.handle.snapshot().running.is_empty());
    bench.stop().await;
}

#[actix::test]
async fn after_every_ending_of_the_runner_nobody_waits_for_ever_and_no_process_is_left() {
    let bench = Bench::stuck_after(with_slots(waiting(), 1, 10), Duration::from_secs(5)).up().await;
    for ending in Ending::ALL {
        let before = bench.slot.addr().unwrap();
        let (running, queued) = (bench.ask("w1"), bench.ask("w2"));
        bench.running(1).await;
        bench.queued(1).await;
        before.do_send(Force(ending));
        for run in [running, queued] {
            assert!(matches!(run.await.unwrap(), Err(HelperError::Lost)), "{ending:?}");
        }
        if ending == Ending::BlockThread {
            release_blocked_threads();
        }
        eventually("another runner is there", || bench.slot.addr().is_some_and(|now| now != before)).await;
        eventually("the old processes have gone", || alive_in(bench.script.dir.path()).is_empty()).await;
        bench.run("b1").await.unwrap_or_else(|error| panic!("{ending:?}: {error}"));
    }
    bench.stop().await;
}

#[actix::test]
async fn without_a_runner_the_answer_comes_at_once() {
    let bench = Bench::start(script(ANSWER)).up().await;
    let handle = bench.handle.clone();
    bench.stop().await;
    let run = RunHelper { identity: Identity::parse("a1").unwrap(), input: Vec::new() };
    assert!(matches!(handle.run(run).await, Err(HelperError::Down)));
}

#[actix::test]
async fn stopping_the_runner_ends_its_processes() {
    let bench = Bench::start(with_slots(waiting(), 4, 10)).up().await;
    let runs: Vec<Running> = (0..4).map(|n| bench.ask(&format!("w{n}"))).collect();
    bench.running(4).await;
    let pids: BTreeSet<i32> = alive_in(bench.script.dir.path()).into_iter().collect();
    assert!(pids.len() >= 4);
    bench.stop().await;
    for run in runs {
        assert!(matches!(run.await.unwrap(), Err(HelperError::Lost)));
    }
}
