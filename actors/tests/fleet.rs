//! The fleet as a whole, through its handles, with made-up hosts and paused time: nobody is lost, nobody is taken twice,
//! nobody waits for the dead.
#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use quartermaster_actors::control::RunState;
use quartermaster_actors::discovery::{Discoverer, DiscoverySettings, Seen, SeenSink};
use quartermaster_actors::fleet::{
    Counts, FleetHandle, FleetKeeper, FleetSettings, FleetSnapshot, ForceHosts, Forgot, HostQuery,
    RetryPolicy, RosterSettings, Shelf,
};
use quartermaster_actors::host::{Features, HelperFailure, PlanSettings};
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::supervise::{ChildExited, ChildId, Ending, ExitNotice, Force, Slot};
use quartermaster_actors::testing::{FakeFleet, FakeHelper, FakeHost, run_local};
use quartermaster_proto::choria::identity::Identity;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

const MINUTE: Duration = Duration::from_mins(1);

/// Hears of endings and does nothing about them.
struct Owner;

impl Actor for Owner {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Owner {
    type Result = ();
    fn handle(&mut self, _: ChildExited, _: &mut Self::Context) {}
}

struct Site {
    hosts: FakeFleet,
    helper: FakeHelper,
    run_state: watch::Sender<RunState>,
    slot: Slot<FleetKeeper>,
    fleet: FleetHandle,
    settings: FleetSettings,
    recorder: Recorder,
    owner: actix::Addr<Owner>,
    lives: u64,
}

fn roster() -> RosterSettings {
    RosterSettings {
        queue: 50_000,
        in_flight: 16,
        silent: 4096,
        interval: MINUTE,
        hold: MINUTE,
        busy: 2 * MINUTE,
        retry: RetryPolicy::new(MINUTE, 15 * MINUTE, None).unwrap(),
    }
}

impl Site {
    async fn start(roster: RosterSettings, helper: FakeHelper) -> Self {
        let hosts = FakeFleet::default();
        let recorder = Recorder::new("test").unwrap();
        let (run_state, receiver) = watch::channel(RunState::working());
        let (publish, published) = watch::channel(FleetSnapshot::default());
        let plan = PlanSettings {
            steps: quartermaster_actors::host::SiteSteps::default(),
            features: Features::default(),
            token: SecretString::from("s3cret"),
            deny: vec![],
            upgrades_repository: None,
            upgrades_optional: false,
        };
        let slot = Slot::new("fleet", 100);
        let settings = FleetSettings {
            roster,
            plan: Arc::new(plan),
            tools: hosts.tools(&helper),
            run_state: receiver,
            recorder: recorder.clone(),
            threads: 0,
            host_ping_every: Duration::from_secs(10),
            shelf: Shelf::new(roster),
            publish: Arc::new(publish),
            wall_ms: || 0,
            journal: JournalHandle::in_memory(),
        };
        let fleet = FleetHandle::new(slot.clone(), published);
        let mut site = Self {
            hosts,
            helper,
            run_state,
            slot,
            fleet,
            settings,
            recorder,
            owner: Owner.start(),
            lives: 0,
        };
        site.start_keeper();
        // Its mailbox has its full size once it has started.
        sleep(Duration::from_millis(1)).await;
        site
    }

    fn notice(&mut self, name: &'static str) -> ExitNotice {
        self.lives += 1;
        ExitNotice::new(ChildId { name, generation: self.lives }, self.owner.clone().recipient())
    }

    /// Puts a new keeper into the slot, as the overseer does after an ending.
    fn start_keeper(&mut self) {
        let notice = self.notice("fleet");
        self.slot.set(FleetKeeper::new(self.settings.clone(), notice).start());
    }

    fn discover_every(&mut self, interval: Duration) {
        let fleet = self.fleet.clone();
        let seen: SeenSink = Arc::new(move |seen| fleet.noticed(seen));
        let settings = DiscoverySettings {
            interval,
            component: "provision_mode_server".into(),
            link: Arc::new(self.hosts.clone()),
            seen,
            run_state: self.run_state.subscribe(),
            recorder: self.recorder.clone(),
        };
        let notice = self.notice("discovery");
        Discoverer::new(settings, notice).start();
    }

    fn announce(&self, name: &str) {
        self.fleet.noticed(Seen::Answered(Identity::parse(name).unwrap())).unwrap();
    }

    fn add(&self, names: impl IntoIterator<Item = String>, host: FakeHost) {
        for name in names {
            self.hosts.add(&name, host);
        }
    }

    /// Lets paused time run until `done`, at most for `limit` of it; answers how long it took.
    async fn until(&self, limit: Duration, done: impl Fn(&Self) -> bool) -> Duration {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < limit, "not within {limit:?}: {:?}", self.fleet.snapshot());
            sleep(Duration::from_millis(100)).await;
        }
        start.elapsed()
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}.example.net")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_ten_and_two_hundred_hosts_all_get_done_and_none_twice() {
    run_local(async {
        let slow = FakeHelper::new(Duration::from_secs(1), |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()));
        let mut site = Site::start(RosterSettings { queue: 10, in_flight: 4, ..roster() }, slow).await;
        site.add(names("web", 200), FakeHost::default());
        site.discover_every(MINUTE);
        site.until(60 * MINUTE, |site| site.hosts.restarted() == 200).await;
        assert_eq!(site.hosts.configured_twice(), Vec::<String>::new());
        assert!(site.hosts.most_talking() <= 4, "{}", site.hosts.most_talking());
        // Replays of what is long done change nothing.
        for name in names("web", 200) {
            for _ in 0..50 {
                site.fleet.noticed(Seen::Started(Identity::parse(&name).unwrap(), 1, -1000)).unwrap();
            }
        }
        sleep(10 * MINUTE).await;
        assert_eq!(site.hosts.configured_twice(), Vec::<String>::new());
        assert_eq!(site.helper.runs(), 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn machines_that_vanish_do_not_hold_up_those_that_are_there() {
    run_local(async {
        let site = Site::start(roster(), FakeHelper::willing()).await;
        site.add(names("dead", 1000), FakeHost { vanished: true, ..FakeHost::default() });
        site.add(names("live", 50), FakeHost::default());
        for name in names("dead", 1000) {
            site.announce(&name);
        }
        sleep(Duration::from_secs(2)).await;
        for name in names("live", 50) {
            site.announce(&name);
        }
        let took = site.until(5 * MINUTE, |site| site.hosts.restarted() == 50).await;
        // 1,000 dead ones, 16 at a time, two seconds of patience each: the last live one waits for little more.
        assert!(took < Duration::from_secs(140), "{took:?}");
        let most_calls = names("dead", 1000).iter().map(|name| site.hosts.host(name).calls).max();
        site.until(10 * MINUTE, |site| site.fleet.snapshot().counts == Counts::default()).await;
        assert!(most_calls <= Some(5), "calls to one dead host: {most_calls:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_always_fails_is_tried_ever_more_rarely_and_others_are_not_held_up() {
    run_local(async {
        let helper = FakeHelper::new(Duration::from_millis(5), |host| match host.as_str() {
            "bad.example.net" => Err(HelperFailure { reason: "exit 1".into(), paused: false }),
            _ => Ok(r#"{"configuration":{"a":"b"}}"#.into()),
        });
        let mut site = Site::start(roster(), helper).await;
        site.add(["bad.example.net".to_owned()], FakeHost::default());
        site.add(names("good", 20), FakeHost::default());
        site.discover_every(MINUTE);
        site.until(MINUTE, |site| site.hosts.restarted() == 20).await;
        sleep(60 * MINUTE).await;
        let attempts = site.helper.runs() - 20;
        // 1, 2, 4, 8, 15, 15, 15 minutes apart, each varied by a quarter.
        assert!((6..=10).contains(&attempts), "{attempts} attempts in an hour");
        let troubled = site.fleet.troubled(10).await.unwrap();
        assert_eq!(troubled.len(), 1);
        assert_eq!(troubled[0].failure.as_ref().unwrap().cause, "helper");
        assert!(troubled[0].retry_in_ms.is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn age_of_the_process_never_shortens_a_step_and_single_steps_are_retried() {
    run_local(async {
        let site = Site::start(roster(), FakeHelper::willing()).await;
        sleep(3 * 24 * 60 * MINUTE).await;
        site.add(["web.example.net".to_owned()], FakeHost { configure_fails: 2, ..FakeHost::default() });
        site.announce("web.example.net");
        site.until(MINUTE, |site| site.hosts.restarted() == 1).await;
        assert_eq!(site.hosts.host("web.example.net").configured, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_lets_nothing_new_begin_and_work_goes_on_at_once_after_it() {
    run_local(async {
        let mut site = Site::start(roster(), FakeHelper::willing()).await;
        site.run_state.send_modify(|state| state.leading = false);
        site.add(names("web", 10), FakeHost::default());
        site.discover_every(MINUTE);
        sleep(5 * MINUTE).await;
        assert_eq!(site.hosts.restarted(), 0);
        assert_eq!(site.helper.runs(), 0);
        site.run_state.send_modify(|state| state.leading = true);
        site.until(Duration::from_secs(5), |site| site.hosts.restarted() == 10).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn draining_finishes_what_is_in_flight_and_admits_nothing() {
    run_local(async {
        let slow = FakeHelper::new(Duration::from_secs(5), |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()));
        let site = Site::start(RosterSettings { in_flight: 3, ..roster() }, slow).await;
        site.add(names("web", 10), FakeHost::default());
        for name in names("web", 10) {
            site.announce(&name);
        }
        site.until(MINUTE, |site| site.helper.runs() == 3).await;
        site.run_state.send_modify(|state| state.draining = true);
        site.until(MINUTE, |site| site.fleet.snapshot().counts.in_flight == 0).await;
        assert_eq!(site.hosts.restarted(), 3);
        sleep(MINUTE).await;
        assert_eq!(site.helper.runs(), 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn asked_to_end_cycles_stop_before_configure_and_the_hosts_stay_as_they_were() {
    run_local(async {
        let slow = FakeHelper::new(Duration::from_secs(5), |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()));
        let site = Site::start(roster(), slow).await;
        site.add(names("web", 3), FakeHost::default());
        for name in names("web", 3) {
            site.announce(&name);
        }
        site.until(MINUTE, |site| site.helper.runs() == 3).await;
        site.run_state.send_modify(|state| state.draining = true);
        site.fleet.end_cycles().unwrap();
        site.until(MINUTE, |site| site.fleet.snapshot().counts.in_flight == 0).await;
        assert_eq!(site.hosts.restarted(), 0);
        assert_eq!(site.fleet.snapshot().failed, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_keeper_that_ends_in_any_way_leaves_no_host_behind() {
    for ending in [Ending::Stop, Ending::PanicInFuture, Ending::Hang] {
        run_local(async {
            let mut site = Site::start(roster(), FakeHelper::willing()).await;
            site.add(names("web", 40), FakeHost::default());
            for name in names("web", 40) {
                site.announce(&name);
            }
            site.until(MINUTE, |site| site.hosts.restarted() >= 5).await;
            site.slot.addr().unwrap().do_send(Force(ending));
            sleep(Duration::from_millis(50)).await;
            site.start_keeper();
            site.discover_every(MINUTE);
            site.until(15 * MINUTE, |site| site.hosts.restarted() == 40).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_host_fails_alone_and_is_tried_again() {
    run_local(async {
        let slow = FakeHelper::new(Duration::from_secs(20), |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()));
        let mut site = Site::start(roster(), slow).await;
        site.add(names("web", 8), FakeHost::default());
        site.discover_every(MINUTE);
        site.until(MINUTE, |site| site.helper.runs() == 8).await;
        let keeper = site.slot.addr().unwrap();
        assert_eq!(keeper.send(ForceHosts { ending: Ending::Hang, most: 1 }).await.unwrap(), 1);
        site.until(MINUTE, |site| site.hosts.restarted() == 7).await;
        site.until(MINUTE, |site| site.fleet.snapshot().failed == 1).await;
        let troubled = site.fleet.troubled(10).await.unwrap();
        assert_eq!(troubled[0].failure.as_ref().unwrap().cause, "stuck");
        site.until(5 * MINUTE, |site| site.hosts.restarted() == 8).await;
        assert_eq!(site.hosts.configured_twice(), Vec::<String>::new());
        assert_eq!(site.fleet.snapshot().failed, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_keeper_that_hangs_and_is_replaced_lets_no_host_be_configured_twice() {
    run_local(async {
        let slow = FakeHelper::new(Duration::from_secs(2), |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()));
        let mut site = Site::start(roster(), slow).await;
        site.add(names("web", 12), FakeHost::default());
        for name in names("web", 12) {
            site.announce(&name);
        }
        site.until(MINUTE, |site| site.helper.runs() == 12).await;
        // The old keeper is still there, and so are its hosts; they only have no ear any more.
        let old = site.slot.addr().unwrap();
        old.do_send(Force(Ending::Hang));
        sleep(Duration::from_secs(1)).await;
        site.start_keeper();
        site.until(5 * MINUTE, |site| site.hosts.restarted() == 12).await;
        sleep(5 * MINUTE).await;
        assert_eq!(site.hosts.configured_twice(), Vec::<String>::new());
        assert!(old.connected());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_happened_to_a_host_is_told_attempt_by_attempt() {
    run_local(async {
        let helper = FakeHelper::new(Duration::from_millis(5), |_| {
            Err(HelperFailure { reason: "exit 1".into(), paused: false })
        });
        let site = Site::start(roster(), helper).await;
        site.add(["bad.example.net".to_owned()], FakeHost::default());
        site.announce("bad.example.net");
        site.until(MINUTE, |site| site.fleet.snapshot().failed == 1).await;
        let bad = Identity::parse("bad.example.net").unwrap();
        let view = site.fleet.host(bad.clone()).await.unwrap().unwrap();
        assert_eq!((view.state.as_str(), view.failures, view.attempt), ("cooling", 1, 2));
        let failure = view.failure.unwrap();
        assert_eq!((failure.cause.as_str(), failure.helper.unwrap().exit), ("helper", Some(1)));
        // An operator's word clears the wait.
        assert!(site.fleet.retry(bad.clone()).await.unwrap());
        site.until(MINUTE, |site| site.fleet.snapshot().failed == 2).await;
        let history = site.settings.journal.history(&bad);
        assert_eq!(history.len(), 2);
        let steps: Vec<_> = history[0].steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(steps, ["inventory", "helper"]);
        assert_eq!(history[0].ending, "failed");
        assert_eq!(history[0].helper.as_ref().unwrap().stderr, ["a made-up line"]);
        assert!(history[0].steps[1].error.as_ref().unwrap().contains("exit 1"));
        assert_eq!(site.fleet.forget(bad.clone()).await.unwrap(), Forgot::Forgotten);
        assert_eq!(site.fleet.forget(bad.clone()).await.unwrap(), Forgot::Unknown);
        assert!(site.settings.journal.history(&bad).is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn hosts_are_shown_page_by_page_and_what_deserves_a_look() {
    run_local(async {
        let slow = FakeHelper::new(MINUTE, |_| Ok(r#"{"configuration":{"a":"b"}}"#.into()));
        let site = Site::start(RosterSettings { in_flight: 2, ..roster() }, slow).await;
        site.add(names("web", 30), FakeHost::default());
        for name in names("web", 30) {
            site.announce(&name);
        }
        sleep(Duration::from_secs(20)).await;
        let waiting = HostQuery { state: Some("waiting".into()), most: 20, ..HostQuery::default() };
        let first = site.fleet.hosts(waiting.clone()).await.unwrap();
        assert_eq!((first.hosts.len(), first.total), (20, 28));
        let rest = site.fleet.hosts(HostQuery { after: first.next, ..waiting }).await.unwrap();
        assert_eq!((rest.hosts.len(), rest.next), (8, None));
        let overview = site.fleet.overview(5).await.unwrap();
        assert_eq!(overview.slowest_step.unwrap().step, "helper");
        assert!(overview.oldest_waiting.unwrap().waited_ms >= 20_000);
        let busy = HostQuery { state: Some("in_flight".into()), most: 9, ..HostQuery::default() };
        let busy = site.fleet.hosts(busy).await.unwrap();
        assert_eq!(busy.hosts[0].step.as_deref(), Some("helper"));
        let running = site.fleet.running(busy.hosts[0].identity.clone()).await.unwrap().unwrap();
        assert_eq!((running.ending.as_str(), running.steps.len()), ("running", 2));
    })
    .await;
}
