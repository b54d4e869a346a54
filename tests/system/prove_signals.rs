//! What a service manager relies on: an end that is asked for leaves no server half done, and the exit code says so.

use std::fs;
use std::time::{Duration, Instant};

use quartermaster::emulate::{FaultPlan, FleetHandle};
use rustix::process::Signal;

use super::prove_site::{PATIENCE, Site};
use super::support::eventually;

/// How often the helper was started.
fn helpers_started(site: &Site) -> usize {
    fs::read_to_string(site.path("started")).map_or(0, |text| text.lines().count())
}

/// Processes that this site's helper left, by command line.
fn helpers_left(site: &Site) -> Vec<String> {
    let wanted = site.files.helper.to_str().unwrap().to_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&wanted))
        .collect()
}

fn slow_helper(site: &Site, seconds: u32) {
    let started = site.path("started");
    site.helper_also(&format!("echo $identity >> {}\nsleep {seconds}", started.display()));
}

/// Nobody was configured without being told to restart.
fn assert_none_half_done(fleet: &FleetHandle) {
    for (name, server) in fleet.report().servers {
        assert_eq!(server.record.configures, server.record.restarts, "{name}: {server:?}");
    }
}

async fn what_is_in_flight_is_finished_and_nothing_else_begun(signal: Signal) {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 4\nin_flight: 4\nhelper_timeout: 1m");
    let (started, go) = (site.path("started"), site.path("go"));
    let (note, hold) = (started.display(), go.display());
    site.helper_also(&format!("echo $identity >> {note}\nwhile [ ! -e {hold} ]; do sleep 0.1; done"));
    let pid_file = site.path("pid");
    let mut process = site.run_with(&["--pid", pid_file.to_str().unwrap()]);
    process.ready().await;
    assert_eq!(fs::read_to_string(&pid_file).unwrap(), process.pid().to_string());
    let fleet = site.servers("web", 20, |_| ()).await;
    eventually("four helpers run", || helpers_started(&site) == 4).await;
    process.signal(signal);
    eventually("it is stopping", || process.log().contains("stopping: nothing new is taken")).await;
    fs::write(go, "").unwrap();
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0), "{}", process.log());
    assert_eq!(helpers_started(&site), 4, "{}", process.log());
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 4).await.unwrap();
    assert_none_half_done(&fleet);
    assert_eq!(fleet.stats().provisioning, 16);
    assert!(!pid_file.exists());
}

#[tokio::test]
async fn after_sigterm_what_is_in_flight_is_finished_and_nothing_else_begun() {
    what_is_in_flight_is_finished_and_nothing_else_begun(Signal::TERM).await;
}

#[tokio::test]
async fn after_sigint_what_is_in_flight_is_finished_and_nothing_else_begun() {
    what_is_in_flight_is_finished_and_nothing_else_begun(Signal::INT).await;
}

#[tokio::test]
async fn a_helper_that_takes_its_time_is_not_waited_for_past_the_deadline() {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 2\nhelper_timeout: 5m");
    slow_helper(&site, 300);
    let mut process = site.run();
    process.ready().await;
    // Two with a helper each, the others in line for one.
    let fleet = site.servers("web", 10, |_| ()).await;
    eventually("both helpers run and the others wait", || {
        helpers_started(&site) == 2 && process.fleet("in_flight") == 10
    })
    .await;
    process.signal(Signal::TERM);
    let asked = Instant::now();
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0), "{}", process.log());
    assert!(asked.elapsed() < Duration::from_mins(1), "{:?}", asked.elapsed());
    assert_eq!(helpers_started(&site), 2);
    assert_eq!(helpers_left(&site), Vec::<String>::new());
    assert_eq!(fleet.stats().configures, 0);
}

#[tokio::test]
async fn a_server_between_configure_and_restart_is_restarted_however_long_it_takes() {
    let Some(site) = Site::new() else { return };
    let mut process = site.run();
    process.ready().await;
    // Its answer to `configure` comes after cycles in flight have been told to end.
    let late = |settings: &mut quartermaster::emulate::FleetSettings| {
        settings.faults = FaultPlan::parse("late:13s/configure=all").unwrap();
    };
    let fleet = site.servers("web", 3, late).await;
    fleet.wait_until(PATIENCE, |stats| stats.configures == 3).await.unwrap();
    process.signal(Signal::TERM);
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0), "{}", process.log());
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_none_half_done(&fleet);
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_leaves_no_helper_behind() {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 2\nhelper_timeout: 5m");
    slow_helper(&site, 300);
    let pid_file = site.path("pid");
    let mut process = site.run_with(&["--pid", pid_file.to_str().unwrap()]);
    process.ready().await;
    let fleet = site.servers("web", 4, |_| ()).await;
    eventually("both helpers run", || helpers_started(&site) == 2).await;
    process.signal(Signal::TERM);
    eventually("it is stopping", || process.log().contains("stopping: nothing new is taken")).await;
    assert!(process.exited().is_none());
    let asked = Instant::now();
    process.signal(Signal::TERM);
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    assert!(!pid_file.exists());
    eventually("no helper is left", || helpers_left(&site).is_empty()).await;
    assert_eq!(fleet.stats().configures, 0);
}

#[tokio::test]
async fn a_second_instance_on_the_same_address_says_what_is_wrong_and_ends() {
    let Some(site) = Site::new() else { return };
    let mut first = site.run();
    first.ready().await;
    let mut second = site.run();
    assert_eq!(second.wait(PATIENCE).await.code(), Some(1));
    let log = second.log();
    let said = log.lines().find(|line| line.contains("could not start")).unwrap_or_default();
    assert!(said.contains(&format!("127.0.0.1:{}", site.monitor)), "{log}");
    assert!(said.contains("in use"), "{log}");
    assert!(first.exited().is_none());
}
