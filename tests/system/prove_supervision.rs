//! Any actor of the running product may end in any way at any time: it is back, and every server ends provisioned.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Handler};
use quartermaster::app::{App, Positions, RunOptions, Watching};
use quartermaster_actors::fleet::ForceHosts;
use quartermaster_actors::supervise::{ChildState, Ending, ExitCause, Force, Slot, SupervisionSnapshot};

use super::prove_site::{Inside, PATIENCE, Site, watched_closely};

/// Servers whose cycles are under way when something ends.
const SERVERS: usize = 30;

const fn cause(ending: Ending) -> ExitCause {
    match ending {
        Ending::Stop => ExitCause::Stopped,
        Ending::Panic | Ending::PanicInFuture => ExitCause::Panicked,
        Ending::Hang | Ending::BlockThread => ExitCause::Stuck,
    }
}

async fn in_flight(inside: &Inside) {
    let mut numbers = inside.fleet.subscribe();
    let busy = numbers.wait_for(|now| now.counts.in_flight >= 2);
    tokio::time::timeout(PATIENCE, busy).await.expect("servers are taken").unwrap();
}

/// Forces every ending of one actor, each with servers in flight. `lost_replies`: its end may cost the reply to a
/// `configure`, which is then sent again.
async fn every_ending<A>(name: &'static str, slot: impl Fn(&Positions) -> Slot<A>, lost_replies: bool)
where
    A: Actor + Handler<Force>,
    A::Context: ToEnvelope<A, Force>,
{
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 4");
    site.helper_also("sleep 0.2");
    let inside = site.inside(|_| ()).await;
    let slot = slot(&inside.positions);
    for ending in Ending::ALL {
        let fleet = site.servers(&format!("{name}-{ending:?}-").to_lowercase(), SERVERS, |_| ()).await;
        in_flight(&inside).await;
        let before = inside.overseer.snapshot().child(name).unwrap().clone();
        let lives = || {
            let now = inside.overseer.snapshot();
            ["link", "vault"].map(|part| now.child(part).unwrap().child.generation)
        };
        let before_it = lives();
        slot.addr().expect("somebody is in the position").do_send(Force(ending));
        let mut states = inside.overseer.subscribe();
        let back = states.wait_for(|now| {
            let child = now.child(name).unwrap();
            child.child.generation > before.child.generation && child.state == ChildState::Running
        });
        tokio::time::timeout(PATIENCE, back)
            .await
            .unwrap_or_else(|_| panic!("{name} after {ending:?}"))
            .unwrap();
        fleet
            .wait_until_all_provisioned(PATIENCE)
            .await
            .unwrap_or_else(|error| panic!("{name} {ending:?}: {error}"));
        inside.release_threads();
        let after = inside.overseer.snapshot().child(name).unwrap().clone();
        // At least one: on a machine that is busy enough, anybody may count as stuck once more.
        let index = cause(ending).index();
        assert!(after.endings[index] > before.endings[index], "{name} {ending:?}: {after:?}");
        let report = fleet.report();
        // Nor may the link or the vault have been taken for stuck meanwhile.
        if !lost_replies && lives() == before_it {
            assert_eq!(report.duplicate_configures, 0, "{name} {ending:?}: {report:?}");
        }
        let unrestarted = report.servers.values().filter(|server| server.record.restarts == 0).count();
        assert_eq!(unrestarted, 0, "{name} {ending:?}");
        fleet.stop().await;
    }
}

#[tokio::test]
async fn every_server_is_provisioned_however_any_actor_ends() {
    // Most of this is waiting, for restarts and for what is stuck, so all of them wait together.
    tokio::join!(
        every_ending("control", |at| at.control.clone(), false),
        every_ending("metrics", |at| at.metrics.clone(), false),
        every_ending("vault", |at| at.vault.clone(), true),
        every_ending("link", |at| at.link.clone(), true),
        every_ending("helper", |at| at.helper.clone(), false),
        every_ending("fleet", |at| at.fleet.clone(), false),
        every_ending("discovery", |at| at.discovery.clone(), false),
    );
}

#[tokio::test]
async fn a_host_whose_actor_ends_in_any_way_fails_visibly_and_is_provisioned_later() {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 4");
    site.helper_also("sleep 0.2");
    let inside = site.inside(|_| ()).await;
    for ending in Ending::ALL {
        let fleet = site.servers(&format!("host-{ending:?}-").to_lowercase(), SERVERS, |_| ()).await;
        in_flight(&inside).await;
        let failed = inside.fleet.snapshot().failed;
        let keeper = inside.positions.fleet.addr().unwrap();
        assert_eq!(keeper.send(ForceHosts { ending, most: 1 }).await.unwrap(), 1);
        fleet
            .wait_until_all_provisioned(PATIENCE)
            .await
            .unwrap_or_else(|error| panic!("{ending:?}: {error}"));
        inside.release_threads();
        let now = inside.fleet.snapshot().failed;
        // Whoever shares a blocked thread fails with it; a hung actor fails alone.
        let most = if ending == Ending::BlockThread { SERVERS as u64 } else { 1 };
        assert!((failed + 1..=failed + most).contains(&now), "{ending:?}: {failed} failures became {now}");
        let report = fleet.report();
        assert_eq!(report.duplicate_configures, 0, "{ending:?}: {report:?}");
        fleet.stop().await;
    }
    let snapshot = inside.overseer.snapshot();
    assert_eq!(snapshot.child("fleet").unwrap().child.generation, 1, "their keeper lives on: {snapshot:?}");
}

/// Whoever is in the position ends so; nobody may be there, since others were hit before.
fn strike<A>(slot: &Slot<A>, ending: Ending)
where
    A: Actor + Handler<Force>,
    A::Context: ToEnvelope<A, Force>,
{
    if let Some(addr) = slot.addr() {
        addr.do_send(Force(ending));
    }
}

#[tokio::test]
async fn every_server_is_provisioned_while_actors_end_all_over_the_place() {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 4");
    site.helper_also("sleep 0.1");
    let inside = site.inside(|_| ()).await;
    let at = inside.positions.clone();
    let fleet = site.servers("web", 150, |_| ()).await;
    in_flight(&inside).await;
    for ending in [Ending::Panic, Ending::Hang, Ending::PanicInFuture] {
        for position in 0..8 {
            // Close enough that the next goes down while the last is not back yet.
            tokio::time::sleep(Duration::from_millis(80)).await;
            match position {
                0 => strike(&at.link, ending),
                1 => strike(&at.fleet, ending),
                2 => strike(&at.helper, ending),
                3 => strike(&at.vault, ending),
                4 => strike(&at.discovery, ending),
                5 => strike(&at.control, ending),
                6 => strike(&at.metrics, ending),
                _ => {
                    if let Some(keeper) = at.fleet.addr() {
                        keeper.do_send(ForceHosts { ending, most: 5 });
                    }
                }
            }
        }
    }
    fleet.wait_until_all_provisioned(3 * PATIENCE).await.unwrap();
    let mut states = inside.overseer.subscribe();
    let calm = states.wait_for(SupervisionSnapshot::all_running);
    tokio::time::timeout(PATIENCE, calm).await.expect("everybody is back").unwrap();
    let snapshot = inside.overseer.snapshot();
    let struck = ["link", "fleet", "helper", "vault", "discovery", "control", "metrics"];
    let again = |name: &&str| {
        snapshot.children.iter().any(|child| child.child.name == *name && child.child.generation > 1)
    };
    assert!(struck.iter().all(again), "{snapshot:?}");
    let report = fleet.report();
    // The link ended three times, each of which may cost a server the reply to its `configure`.
    let most = report.servers.values().map(|server| server.duplicate_configures).max();
    assert!(most <= Some(3), "{report:?}");
}

const CHILD_FILES: &str = "QM_PROVE_FILES";
const CHILD_ENDING: &str = "QM_PROVE_ENDING";

/// Not a test by itself: the next one runs it in a process of its own.
#[test]
fn process_whose_overseer_ends() {
    let (Ok(files), Ok(ending)) = (std::env::var(CHILD_FILES), std::env::var(CHILD_ENDING)) else { return };
    let files = PathBuf::from(files);
    let ending = Ending::ALL.into_iter().find(|one| format!("{one:?}") == ending).unwrap();
    let config = Site::inside_files(&files.join("provisioner.yaml"), &files.join("choria.cfg"));
    let exit = actix_rt::System::new().block_on(async move {
        let overseer_every = Duration::from_millis(500);
        let watching = Watching { overseer_every, overseer_patience: 4, ..watched_closely() };
        let options = RunOptions { watching, ..RunOptions::default() };
        let app = App::start(&Arc::new(config), &options).unwrap();
        app.overseer().force(ending);
        app.serve().await
    });
    std::process::exit(i32::from(exit.code()));
}

#[tokio::test]
async fn a_process_whose_overseer_ends_in_any_way_ends_with_a_failure() {
    let Some(site) = Site::new() else { return };
    for ending in Ending::ALL {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "prove_supervision::process_whose_overseer_ends", "--nocapture"])
            .env(CHILD_FILES, &site.files.dir)
            .env(CHILD_ENDING, format!("{ending:?}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = std::time::Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if std::time::Instant::now() > end {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{ending:?}: the process goes on without an overseer");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(status.code(), Some(1), "{ending:?}");
    }
}
