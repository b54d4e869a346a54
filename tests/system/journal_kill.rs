//! Killed before and after every step of a cycle and started again, the provisioner goes on where it was: every server ends
//! provisioned, none is configured again unless the reply to its `configure` was lost, and no decision is asked for twice
//! once it may have been sent.

use std::time::Duration;

use quartermaster::emulate::{FaultPlan, FleetHandle, Phase, ServerRecord};
use rustix::process::Signal;

use super::prove_site::{PATIENCE, Process, Site};
use super::support::{eventually, replace};

/// How long a server takes for each reply: the time in which a kill finds its step under way.
const REPLY: Duration = Duration::from_secs(1);

/// A provisioner that was killed this soon after a reply was sent may not have taken it in.
const MARGIN: Duration = Duration::from_millis(400);

/// A step as it is seen from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Seen {
    /// The server has got this call.
    Call(&'static str),
    /// The helper runs.
    Helper,
}

const STEPS: [Seen; 6] = [
    Seen::Call("jwt"),
    Seen::Call("gen25519"),
    Seen::Call("inventory"),
    Seen::Helper,
    Seen::Call("configure"),
    Seen::Call("restart"),
];

struct Bench {
    site: Site,
}

impl Bench {
    fn new() -> Option<Self> {
        let site = Site::new()?;
        site.yaml(&format!("state_dir: {}", site.path("state").display()));
        let runs = site.path("runs");
        site.helper_also(&format!("echo \"$identity\" >> {}\nsleep {}", runs.display(), REPLY.as_secs()));
        Some(Self { site })
    }

    async fn provisioner(&self) -> Process {
        let mut process = self.site.run();
        process.ready().await;
        process
    }

    async fn server(&self, number: usize) -> (FleetHandle, String) {
        let fleet = self
            .site
            .servers(&format!("cut{number}-"), 1, |settings| {
                settings.network = settings.network.with(None, true, quartermaster::clock::now());
                settings.faults = FaultPlan::parse(&format!("late:{}ms=all", REPLY.as_millis())).unwrap();
                settings.restart_delay = Some(Duration::from_secs(4));
            })
            .await;
        (fleet, format!("cut{number}-1.example.net"))
    }

    /// How often the helper was asked about a server.
    fn runs(&self, server: &str) -> usize {
        let text = std::fs::read_to_string(self.site.path("runs")).unwrap_or_default();
        text.lines().filter(|line| *line == server).count()
    }

    async fn reached(&self, seen: Seen, fleet: &FleetHandle, server: &str) {
        eventually(&format!("{seen:?} has begun"), || match seen {
            Seen::Call(action) => fleet.server(server).unwrap().record.last_action.as_deref() == Some(action),
            Seen::Helper => self.runs(server) > 0,
        })
        .await;
    }

    /// Kills the provisioner so long after this step of a new server has begun, starts it again and waits for the server's end.
    /// Answers what the server saw, and when the kill fell.
    async fn kill_in_step(
        &self,
        process: &mut Process,
        number: usize,
        step: Seen,
        after: Duration,
    ) -> Killed {
        let (fleet, server) = self.server(number).await;
        self.reached(step, &fleet, &server).await;
        // Where in the step the kill falls is the point of the test, so time it is.
        tokio::time::sleep(after).await;
        process.signal(Signal::KILL);
        let at_ms = quartermaster::clock::now().nanos() / 1_000_000;
        process.wait(PATIENCE).await;
        *process = self.provisioner().await;
        fleet
            .wait_until(PATIENCE, |stats| stats.provisioned + stats.stopped == 1)
            .await
            .unwrap_or_else(|error| panic!("killed in {step:?}: {error}\n{}", process.log()));
        let phase = || fleet.server(&server).unwrap().record.phase;
        eventually("it has done what it said", || phase() != Phase::Stopping).await;
        let record = fleet.server(&server).unwrap().record;
        Killed { server, record, at_ms }
    }

    /// Kills the provisioner so long after each step has begun, and starts it again.
    async fn kill_in_every_step(self, after: Duration) {
        let mut process = self.provisioner().await;
        for (number, step) in STEPS.into_iter().enumerate() {
            let Killed { server, record, at_ms: killed_ms } =
                self.kill_in_step(&mut process, number, step, after).await;
            assert_eq!(record.phase, Phase::Provisioned);
            let reply_ms = i64::try_from((REPLY + MARGIN).as_millis()).unwrap();
            // A call to restart says that the reply to `configure` had arrived.
            let lost = step != Seen::Call("restart")
                && record.configured.iter().any(|done| (0..reply_ms).contains(&(killed_ms - done.at_ms)));
            let again = record.configures - 1;
            assert!(again <= u32::from(lost), "configured when killed in {step:?}:\n{}", process.log());
            if step == Seen::Call("configure") && after < REPLY {
                assert_eq!(again, 1, "the kill fell before the reply:\n{}", process.log());
            }
            assert_eq!(record.relapses, 0);
            if matches!(step, Seen::Call("configure" | "restart")) {
                assert_eq!(self.runs(&server), 1, "the decision is used again when killed in {step:?}");
            }
            assert!(self.runs(&server) <= 2);
        }
        process.assert_no_error();
    }
}

/// A server whose provisioner was killed.
struct Killed {
    server: String,
    record: ServerRecord,
    at_ms: i64,
}

impl Process {
    fn assert_no_error(&self) {
        let log = self.log();
        let bad: Vec<_> =
            log.lines().filter(|line| line.contains("journal") && line.contains("ERROR")).collect();
        assert!(bad.is_empty(), "{bad:?}");
    }
}

#[tokio::test]
async fn killed_before_the_reply_to_every_step_every_server_ends_provisioned() {
    let Some(bench) = Bench::new() else { return };
    // The one whose reply was lost, which is sent again with the decision of then.
    bench.kill_in_every_step(Duration::ZERO).await;
}

#[tokio::test]
async fn killed_after_the_reply_to_every_step_every_server_ends_provisioned_and_none_is_configured_again() {
    let Some(bench) = Bench::new() else { return };
    bench.kill_in_every_step(REPLY + 2 * MARGIN).await;
}

/// A kill before the reply, and one after it.
const MOMENTS: [Duration; 2] = [Duration::ZERO, REPLY.saturating_add(MARGIN.saturating_mul(2))];

#[tokio::test]
async fn killed_around_the_reply_with_a_certificate_request_a_server_is_configured_once() {
    let Some(bench) = Bench::new() else { return };
    replace(&bench.site.files.config, "  ed25519: true", "  pki: true");
    let mut process = bench.provisioner().await;
    for (number, after) in MOMENTS.into_iter().enumerate() {
        let killed = bench.kill_in_step(&mut process, number, Seen::Call("gencsr"), after).await;
        assert_eq!((killed.record.phase, killed.record.configures), (Phase::Provisioned, 1));
        // After the reply, the helper may have been asked already; a decision about a certificate dies with the request.
        assert!((1..=2).contains(&bench.runs(&killed.server)));
    }
    process.assert_no_error();
}

#[tokio::test]
async fn killed_around_the_reply_to_a_shutdown_a_server_is_shut_down_and_nobody_is_asked_again() {
    let Some(bench) = Bench::new() else { return };
    bench.site.helper_also(r#"printf '{"shutdown": true, "msg": "scrapped"}'; exit 0"#);
    let mut process = bench.provisioner().await;
    for (number, after) in MOMENTS.into_iter().enumerate() {
        let killed = bench.kill_in_step(&mut process, number, Seen::Call("shutdown"), after).await;
        assert_eq!((killed.record.phase, killed.record.configures), (Phase::Stopped, 0));
        assert_eq!(bench.runs(&killed.server), 1, "the helper is asked once");
    }
    process.assert_no_error();
}

#[tokio::test]
async fn killed_around_the_reply_to_an_update_a_server_is_updated_once_and_then_configured_once() {
    let Some(bench) = Bench::new() else { return };
    replace(&bench.site.files.config, "  ed25519: true", "  ed25519: true\n  upgrades: true");
    bench.site.yaml("upgrades_repository: http://repository.example.net");
    replace(&bench.site.files.helper, "\\\"defer\\\": false", "\\\"upgrade\\\": \\\"9.9.9\\\"");
    let mut process = bench.provisioner().await;
    for (number, after) in MOMENTS.into_iter().enumerate() {
        let killed = bench.kill_in_step(&mut process, number, Seen::Call("release_update"), after).await;
        assert_eq!((killed.record.phase, killed.record.configures), (Phase::Provisioned, 1));
        assert_eq!(killed.record.updates, 1);
        assert_eq!(bench.runs(&killed.server), 2, "once for each version");
    }
    process.assert_no_error();
}

#[tokio::test]
async fn what_happened_is_told_across_a_kill() {
    let Some(bench) = Bench::new() else { return };
    let mut process = bench.provisioner().await;
    let (fleet, server) = bench.server(0).await;
    bench.reached(Seen::Call("configure"), &fleet, &server).await;
    process.signal(Signal::KILL);
    process.wait(PATIENCE).await;
    process = bench.provisioner().await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 1).await.unwrap();
    eventually("the cycle is over", || process.fleet("in_flight") == 0).await;
    let url = bench.site.broker.url();
    let told = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["host", &server, "--server", &url])
        .output()
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    for words in
        ["attempt 1 (", "\n  the instance ended under it\n", "no reply to it is known", "attempt 2 ("]
    {
        assert!(told.contains(words), "{words}:\n{told}");
    }
    process.signal(Signal::TERM);
    process.wait(PATIENCE).await;
    let path = bench.site.path("state");
    let limits = quartermaster_actors::journal::HistoryLimits::STANDARD;
    let now_ms = quartermaster::clock::now().nanos() / 1_000_000;
    let (journal, _) = quartermaster_actors::journal::JournalHandle::open(&path, limits, now_ms).unwrap();
    let identity = quartermaster_proto::choria::Identity::parse(&server).unwrap();
    let history = journal.history(&identity);
    let endings: Vec<_> = history.iter().map(|attempt| attempt.ending.as_str()).collect();
    assert_eq!(endings, ["lost", "provisioned"]);
    assert_eq!((history[0].attempt, history[1].attempt), (1, 2));
    let steps =
        |attempt: usize| history[attempt].steps.iter().map(|step| step.step.as_str()).collect::<Vec<_>>();
    assert_eq!(steps(0), ["jwt", "gen25519", "inventory", "helper", "server_token", "configure"]);
    assert_eq!(steps(1), ["configure", "restart"]);
    assert_eq!(history[0].helper.as_ref().unwrap().exit, Some(0));
}
