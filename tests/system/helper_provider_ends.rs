//! A helper that is a provider when its host pauses, stops or dies: nothing is begun, nothing is lost, nothing is left.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::control_site::{Instance, by, client, good};
use super::helper_provider_site::Provided;
use super::prove_site::PATIENCE;
use super::support::eventually;

fn there(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

#[tokio::test]
async fn a_paused_instance_asks_its_provider_nothing_and_starts_none() {
    let body = "\
def slow(host, attrs):
    time.sleep(0.2)
    return decide(host, attrs)
serve(decide=slow)";
    let Some(provided) = Provided::new(body) else { return };
    provided.site.yaml("workers: 2\nin_flight: 8\ninterval: 1h");
    let client = client(&provided.site).await;
    let mut instance = Instance::start(&provided.site, "prov1.example.net", "");
    instance.answers(&client).await;
    let fleet = provided.site.servers("web", 40, |_| ()).await;
    eventually("it is asked", || provided.noted("asked").len() >= 4).await;
    good(&client, "quartermaster.pause", by("ann", "a test")).await;
    let in_flight =
        async || good(&client, "quartermaster.status", json!({})).await["fleet"]["in_flight"].clone();
    while in_flight().await != 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let asked = provided.noted("asked").len();
    assert!(asked < 40 && fleet.stats().provisioned < 40, "{asked}");
    // Its process goes; nobody needs another one now.
    let started = provided.noted("started");
    for pid in &started {
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    eventually("the deaths are noticed", || {
        instance.log().matches("Provider will be started again").count() == started.len()
    })
    .await;
    let more = provided.site.servers("late", 5, |_| ()).await;
    while good(&client, "quartermaster.status", json!({})).await["fleet"]["queued"].as_u64().unwrap() < 5 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((provided.noted("asked").len(), provided.noted("started").len()), (asked, started.len()));

    good(&client, "quartermaster.resume", by("ann", "a test")).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    more.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert!(provided.noted("started").len() > started.len());
    assert_eq!(fleet.report().duplicate_configures + more.report().duplicate_configures, 0);
}

/// A provider with a child that sleeps, asked to end through its host by this signal.
async fn ends(shutdown: &str, signal: Signal) {
    let body = format!("note('child', str(subprocess.Popen(['sleep', '600']).pid))\n{shutdown}\n");
    let Some(provided) = Provided::new(&body) else { return };
    let mut process = provided.site.run();
    process.ready().await;
    let fleet = provided.site.servers("web", 5, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    let left: Vec<String> = [provided.noted("started"), provided.noted("child")].concat();
    assert!(left.len() >= 2 && left.iter().all(|pid| there(pid)));
    process.signal(signal);
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0), "{}", process.log());
    assert!(
        left.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()),
        "nothing is left, not even defunct"
    );
}

#[tokio::test]
async fn c66_a_host_that_is_stopped_leaves_no_provider_and_nothing_that_one_started() {
    ends("serve()", Signal::TERM).await;
}

#[tokio::test]
async fn c66_a_provider_that_ignores_every_wish_is_killed_before_its_host_ends() {
    let deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntry:\n    serve()\nfinally:\n    time.sleep(600)";
    ends(deaf, Signal::TERM).await;
}

#[tokio::test]
async fn b23_a_host_that_is_killed_again_and_again_loses_no_server_and_configures_none_twice() {
    let body = "\
def slow(host, attrs):
    time.sleep(0.02)
    return decide(host, attrs)
serve(dict(SCHEMA, x_extensions={'max_in_flight': 8}), slow, threads=True)";
    let Some(provided) = Provided::new(body) else { return };
    let state = provided.site.path("state");
    provided.site.yaml(&format!("workers: 8\nin_flight: 16\nstate_dir: {}", state.display()));
    let fleet = provided.site.servers("web", 300, |_| ()).await;
    for round in 0..5 {
        let before = provided.noted("asked").len();
        let mut process = provided.site.run();
        let asked = || provided.noted("asked").len();
        eventually("it is at work", || asked() >= before + 20 + round * 7 || asked() >= 300).await;
        process.signal(Signal::KILL);
        process.wait(PATIENCE).await;
        // Its input has ended.
        eventually("no provider is left", || provided.processes().iter().all(|pid| !there(pid))).await;
    }
    let mut process = provided.site.run();
    process.ready().await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    let report = fleet.report();
    let lost: u32 = report.servers.values().map(|server| server.record.configures.saturating_sub(1)).sum();
    assert!(lost <= 30, "only those whose reply was lost: {lost}");
}
