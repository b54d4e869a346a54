//! The journal through its handle, and through every ending of the actor that writes it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::journal::{
    Began, HistoryLimits, Intent, JournalHandle, Stand, Standing, StoredPause, Unfinished,
};
use quartermaster_actors::metrics::{Fact, FactLog, Recorder};
use quartermaster_actors::supervise::{
    Ending, Force, Overseer, OverseerHandle, OverseerSettings, release_blocked_threads,
};
use quartermaster_proto::choria::Identity;
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(20);

struct Bench {
    journal: JournalHandle,
    overseer: OverseerHandle,
    facts: FactLog,
    home: TempDir,
}

fn id(name: &str) -> Identity {
    Identity::parse(name).unwrap()
}

fn standing() -> Standing {
    Standing {
        stand: Stand::Idle,
        failures: 0,
        lost: 0,
        failing_since_ms: None,
        failure: None,
        first_seen_ms: 1,
        last_seen_ms: 2,
        newest_event: None,
        unfinished: None,
    }
}

impl Bench {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (recorder, facts) = Recorder::tapped().unwrap();
        let (journal, _) = JournalHandle::open(home.path(), HistoryLimits::STANDARD, 5).unwrap();
        let settings = OverseerSettings {
            ping_every: Duration::from_millis(20),
            stuck_after: Duration::from_secs(3),
            restarts_at_once: 4,
        };
        let wards = vec![Box::new(journal.owned(&recorder, || 5)) as Box<_>];
        let overseer = Overseer::launch(settings, wards, Arc::new(|_| {}));
        Self { journal, overseer, facts, home }
    }

    /// A cycle of this host is about to configure it.
    async fn commit(&self, host: &str, cycle: u64) {
        self.journal.began(id(host), Began { cycle, attempt: 1, at_ms: 5, standing: standing() });
        let intent = Intent { step: "configure".into(), at_ms: 6, steps: vec![], helper: None };
        self.journal.intend(&id(host), cycle, intent, Some("the decision")).await;
    }

    /// What somebody would find who read the disk at this moment: hosts and what their next cycle has to make good.
    fn on_disk(&self) -> Vec<String> {
        let copy = tempfile::tempdir().unwrap();
        for file in ["journal.redb", "journal.key"] {
            std::fs::copy(self.home.path().join(file), copy.path().join(file)).unwrap();
        }
        found(copy.path())
    }

    fn lives(&self) -> u64 {
        self.overseer.snapshot().children.first().unwrap().child.generation
    }

    async fn until(&self, reached: impl Fn(&Self) -> bool) {
        let end = tokio::time::Instant::now() + SOON;
        while !reached(self) {
            assert!(tokio::time::Instant::now() < end, "not reached");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(self) {
        release_blocked_threads();
        self.overseer.stop(SOON).await;
    }
}

fn found(path: &Path) -> Vec<String> {
    let (_, found) = JournalHandle::open(path, HistoryLimits::STANDARD, 7).unwrap();
    let mut hosts: Vec<_> = found
        .hosts
        .iter()
        .map(|host| {
            let decision = host.material.as_ref().map(|text| text.as_str());
            assert_eq!(
                (host.standing.unfinished, decision),
                (Some(Unfinished::Configure), Some("the decision"))
            );
            host.host.to_string()
        })
        .collect();
    hosts.extend(found.paused.map(|pause| format!("paused by {}", pause.who)));
    hosts
}

#[actix::test]
async fn when_a_step_may_be_taken_its_intent_is_on_the_disk() {
    let bench = Bench::start();
    bench.commit("web1", 1).await;
    assert_eq!(bench.on_disk(), ["web1"]);
    let pause = StoredPause { who: "ann".into(), why: String::new(), since: 3 };
    assert!(bench.journal.pause(Some(pause)).await);
    assert_eq!(bench.on_disk(), ["web1", "paused by ann"]);
    bench.stop().await;
}

#[actix::test]
async fn many_that_wait_share_a_commit() {
    let bench = Bench::start();
    bench.until(|bench| bench.journal.slot().is_up()).await;
    let names: Vec<_> = (0..200).map(|number| format!("web{number}")).collect();
    futures::future::join_all((1..).zip(&names).map(|(cycle, name)| bench.commit(name, cycle))).await;
    let commits = bench
        .facts
        .lock()
        .unwrap()
        .iter()
        .filter(|fact| matches!(fact, Fact::JournalCommitted { .. }))
        .count();
    assert!(commits < 50, "{commits} commits for 200 intents");
    bench.stop().await;
}

#[actix::test]
async fn however_the_keeper_ends_nothing_is_lost_and_nobody_waits_for_ever() {
    for ending in [Ending::Stop, Ending::Panic, Ending::PanicInFuture, Ending::Hang, Ending::BlockThread] {
        let bench = Bench::start();
        bench.commit("web1", 1).await;
        bench.until(|bench| bench.journal.slot().is_up()).await;
        bench.journal.slot().addr().unwrap().do_send(Force(ending));
        tokio::time::timeout(SOON, bench.commit("web2", 2)).await.unwrap();
        bench.until(|bench| bench.lives() >= 2).await;
        tokio::time::timeout(SOON, bench.commit("web3", 3)).await.unwrap();
        assert!(bench.journal.is_durable(), "{ending:?}");
        // One that was replaced may wake up again, and must not take what is another's to write.
        release_blocked_threads();
        for cycle in 4..9 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            tokio::time::timeout(SOON, bench.commit(&format!("web{cycle}"), cycle)).await.unwrap();
        }
        let all: Vec<_> = (1..9).map(|number| format!("web{number}")).collect();
        assert_eq!(bench.on_disk(), all, "{ending:?}");
        bench.stop().await;
    }
}

#[actix::test]
async fn in_memory_nobody_waits_and_the_history_is_kept() {
    let journal = JournalHandle::in_memory();
    journal.began(id("web1"), Began { cycle: 1, attempt: 1, at_ms: 5, standing: standing() });
    let intent = Intent { step: "configure".into(), at_ms: 6, steps: vec![], helper: None };
    journal.intend(&id("web1"), 1, intent, Some("x")).await;
    assert!(!journal.is_durable());
    assert!(!journal.pause(None).await);
}
