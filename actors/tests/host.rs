//! One host's cycle through its actor, with a made-up host and paused time: how it ends, what it leaves behind, and that it
//! never configures a host that is no longer its own.
#![cfg(test)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use quartermaster_actors::control::RunState;
use quartermaster_actors::host::{
    CycleBoard, CycleStopAsked, Features, HostAnswered, HostFinished, HostProvisioner, HostSettings,
    HostSilent, PlanSettings, Resume,
};
use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::supervise::{ChildExited, ChildId, Ending, ExitCause, ExitNotice, Force};
use quartermaster_actors::testing::{FakeFleet, FakeHelper, FakeHost, run_local};
use quartermaster_proto::choria::identity::Identity;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const NAME: &str = "web.example.net";
const CYCLE: u64 = 7;

/// What the owner was told, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    Silent,
    Answered,
    Finished(&'static str),
    Exited(ExitCause),
}

#[derive(Clone, Default)]
struct Ears(Arc<Mutex<Vec<Told>>>);

struct Owner(Ears);

impl Actor for Owner {
    type Context = Context<Self>;
}

impl Owner {
    fn note(&self, told: Told) {
        self.0.0.lock().unwrap().push(told);
    }
}

impl Handler<ChildExited> for Owner {
    type Result = ();
    fn handle(&mut self, exited: ChildExited, _: &mut Self::Context) {
        assert_eq!(exited.child.generation, CYCLE);
        self.note(Told::Exited(exited.cause));
    }
}

impl Handler<HostSilent> for Owner {
    type Result = ();
    fn handle(&mut self, _: HostSilent, _: &mut Self::Context) {
        self.note(Told::Silent);
    }
}

impl Handler<HostAnswered> for Owner {
    type Result = ();
    fn handle(&mut self, _: HostAnswered, _: &mut Self::Context) {
        self.note(Told::Answered);
    }
}

impl Handler<HostFinished> for Owner {
    type Result = ();
    fn handle(&mut self, finished: HostFinished, _: &mut Self::Context) {
        use quartermaster_actors::host::Ending;
        self.note(Told::Finished(match finished.ending {
            Ending::Provisioned => "provisioned",
            Ending::Interrupted => "interrupted",
            Ending::Failed { cause, .. } => cause,
            other => panic!("{other:?}"),
        }));
    }
}

struct Bench {
    hosts: FakeFleet,
    helper: FakeHelper,
    run_state: watch::Sender<RunState>,
    ears: Ears,
    addr: Addr<HostProvisioner>,
    /// Whether the roster still holds this cycle for its own.
    mine: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Bench {
    fn start(host: FakeHost, helper: FakeHelper) -> Self {
        let hosts = FakeFleet::default();
        hosts.add(NAME, host);
        let ears = Ears::default();
        let owner = Owner(ears.clone()).start();
        let (run_state, receiver) = watch::channel(RunState::working());
        let mine = Arc::new(AtomicBool::new(true));
        let asked = Arc::new(AtomicUsize::new(0));
        let plan = PlanSettings {
            steps: quartermaster_actors::host::SiteSteps::default(),
            features: Features::default(),
            token: SecretString::from("s3cret"),
            deny: vec![],
            upgrades_repository: None,
            upgrades_optional: false,
        };
        let (is_mine, count) = (Arc::clone(&mine), Arc::clone(&asked));
        let settings = HostSettings {
            steps: quartermaster_actors::steps::StepLog::default(),
            identity: Identity::parse(NAME).unwrap(),
            cycle: CYCLE,
            plan: Arc::new(plan),
            kept: None,
            tools: hosts.tools(&helper),
            run_state: receiver,
            recorder: Recorder::new("test").unwrap(),
            finished: owner.clone().recipient(),
            silent: owner.clone().recipient(),
            answered: owner.clone().recipient(),
            board: CycleBoard::default(),
            span: tracing::info_span!("cycle", host = NAME, attempt = 1),
            resume: None,
            wall_ms: || 0,
            commit: Arc::new(move |cycle, unfinished| {
                assert_eq!(cycle, CYCLE);
                if matches!(unfinished, Resume::Configure(_)) {
                    count.fetch_add(1, Ordering::SeqCst);
                }
                is_mine.load(Ordering::SeqCst)
            }),
            notice: ExitNotice::new(ChildId { name: "host", generation: CYCLE }, owner.recipient()),
        };
        let addr = HostProvisioner::new(settings).start();
        Self { hosts, helper, run_state, ears, addr, mine, asked }
    }

    fn told(&self) -> Vec<Told> {
        self.ears.0.lock().unwrap().clone()
    }

    /// Lets paused time run until the actor has gone; answers how long it took.
    async fn gone(&self) -> Duration {
        let start = Instant::now();
        while !self.told().iter().any(|told| matches!(told, Told::Exited(_))) {
            assert!(start.elapsed() < Duration::from_mins(5), "{:?}", self.told());
            sleep(Duration::from_millis(10)).await;
        }
        start.elapsed()
    }

    /// Lets paused time run until the helper was started.
    async fn in_helper(&self) {
        while self.helper.runs() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn configured_and_restarted(&self) -> (u32, u32) {
        let host = self.hosts.host(NAME);
        (host.configured, host.restarted)
    }
}

fn slow() -> FakeHelper {
    FakeHelper::new(Duration::from_mins(1), |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()))
}

#[tokio::test(start_paused = true)]
async fn a_host_is_provisioned_and_its_owner_hears_every_stage_once() {
    run_local(async {
        let bench = Bench::start(FakeHost::default(), FakeHelper::willing());
        bench.gone().await;
        let stages = [Told::Answered, Told::Finished("provisioned"), Told::Exited(ExitCause::Stopped)];
        assert_eq!(bench.told(), stages);
        assert_eq!(bench.configured_and_restarted(), (1, 1));
        assert_eq!(bench.asked.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cycle_that_was_replaced_neither_configures_nor_reports() {
    run_local(async {
        let bench = Bench::start(FakeHost::default(), FakeHelper::willing());
        bench.mine.store(false, Ordering::SeqCst);
        bench.gone().await;
        assert_eq!(bench.told(), [Told::Answered, Told::Exited(ExitCause::Stopped)]);
        assert_eq!(bench.configured_and_restarted(), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn leave_to_configure_is_asked_once_however_often_configure_is_tried() {
    run_local(async {
        let host = FakeHost { configure_fails: 3, ..FakeHost::default() };
        let bench = Bench::start(host, FakeHelper::willing());
        bench.gone().await;
        assert_eq!(bench.configured_and_restarted(), (1, 1));
        assert_eq!(bench.asked.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_reported_silent_before_it_fails() {
    run_local(async {
        let host = FakeHost { vanished: true, ..FakeHost::default() };
        let bench = Bench::start(host, FakeHelper::willing());
        bench.gone().await;
        let stages = [Told::Silent, Told::Finished("inventory"), Told::Exited(ExitCause::Stopped)];
        assert_eq!(bench.told(), stages);
        assert_eq!(bench.helper.runs(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn asked_to_stop_a_cycle_does_not_wait_for_its_helper() {
    run_local(async {
        let bench = Bench::start(FakeHost::default(), slow());
        bench.in_helper().await;
        bench.addr.do_send(CycleStopAsked);
        assert!(bench.gone().await < Duration::from_secs(1));
        let stages = [Told::Answered, Told::Finished("interrupted"), Told::Exited(ExitCause::Stopped)];
        assert_eq!(bench.told(), stages);
        assert_eq!(bench.configured_and_restarted(), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn asked_to_stop_between_configure_and_restart_a_cycle_goes_on_to_the_restart() {
    run_local(async {
        let host = FakeHost { configure_fails: 2, ..FakeHost::default() };
        let bench = Bench::start(host, FakeHelper::willing());
        while bench.asked.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        bench.addr.do_send(CycleStopAsked);
        bench.run_state.send_modify(|state| state.leading = false);
        bench.gone().await;
        assert!(bench.told().contains(&Told::Finished("provisioned")), "{:?}", bench.told());
        assert_eq!(bench.configured_and_restarted(), (1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_while_the_helper_runs_ends_the_cycle_before_configure() {
    run_local(async {
        let bench = Bench::start(FakeHost::default(), slow());
        bench.in_helper().await;
        bench.run_state.send_modify(|state| state.leading = false);
        bench.gone().await;
        assert!(bench.told().contains(&Told::Finished("interrupted")), "{:?}", bench.told());
        assert_eq!(bench.configured_and_restarted(), (0, 0));
    })
    .await;
}

async fn ends(ending: Ending, cause: ExitCause) {
    run_local(async {
        let bench = Bench::start(FakeHost::default(), slow());
        bench.in_helper().await;
        bench.addr.do_send(Force(ending));
        assert!(bench.gone().await < Duration::from_secs(1));
        assert_eq!(bench.told(), [Told::Answered, Told::Exited(cause)], "{ending:?}");
        assert_eq!(bench.configured_and_restarted(), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_owner_hears_of_an_end_without_a_report() {
    ends(Ending::Stop, ExitCause::Stopped).await;
    ends(Ending::PanicInFuture, ExitCause::Panicked).await;
    ends(Ending::Panic, ExitCause::Panicked).await;
}
