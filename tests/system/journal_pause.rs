//! An operator's pause is in force until somebody ends it, also when the process is killed; servers in flight reach a
//! defined end, and one between configure and restart is never left there.

use bytes::Bytes;
use quartermaster::emulate::FaultPlan;
use rustix::process::Signal;
use serde_json::json;

use super::prove_site::{PATIENCE, Process, Site};
use super::support::eventually;

async fn told(site: &Site, what: &str) {
    let client = async_nats::connect(site.broker.url()).await.unwrap();
    let change = Bytes::from(json!({"who": "ann", "why": "switch"}).to_string());
    let answer = client.request(format!("quartermaster.{what}"), change).await.unwrap();
    assert!(
        answer.headers.as_ref().is_none_or(|headers| headers.get("Nats-Service-Error-Code").is_none()),
        "{answer:?}"
    );
}

fn gauge(process: &Process) -> u64 {
    process.metric("choria_provisioner_paused")
}

#[tokio::test]
async fn a_pause_outlives_a_kill_and_so_does_its_end() {
    let Some(site) = Site::new() else { return };
    site.yaml(&format!("state_dir: {}", site.path("state").display()));
    let mut process = site.run();
    process.ready().await;
    let fleet = site
        .servers("web", 10, |settings| settings.faults = FaultPlan::parse("late:700ms=all").unwrap())
        .await;
    eventually("ten are in flight", || process.fleet("in_flight") == 10).await;
    told(&site, "pause").await;
    process.signal(Signal::KILL);
    process.wait(PATIENCE).await;

    let mut process = site.run();
    process.ready().await;
    let state = process.status()["run_state"].clone();
    assert_eq!((&state["paused"]["who"], &state["paused"]["why"]), (&json!("ann"), &json!("switch")));
    assert_eq!(gauge(&process), 1);
    // Nobody is between configure and restart for long, and nobody new begins.
    let halfway = || {
        let servers = fleet.report().servers;
        servers.values().filter(|server| server.record.configures > 0 && server.record.restarts == 0).count()
    };
    eventually("nobody is left halfway", || halfway() == 0 && process.fleet("in_flight") == 0).await;
    let done = fleet.stats().provisioned;
    let late = site.servers("late", 3, |_| {}).await;
    eventually("the newcomers are up", || late.stats().provisioning == 3).await;
    assert_eq!((late.stats().configures, fleet.stats().provisioned), (0, done));

    told(&site, "resume").await;
    late.wait_until(PATIENCE, |stats| stats.provisioned == 3).await.unwrap();
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 10).await.unwrap();
    process.signal(Signal::KILL);
    process.wait(PATIENCE).await;
    let mut process = site.run();
    process.ready().await;
    assert_eq!((process.status()["run_state"]["paused"].clone(), gauge(&process)), (json!(null), 0));
}
