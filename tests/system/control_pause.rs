//! A pause with servers in flight: nothing is begun, nothing is left half done, and a resume goes on where it ended. A drain
//! finishes what was begun.

use std::fs;
use std::time::Duration;

use quartermaster::emulate::FleetHandle;
use rustix::process::Signal;
use serde_json::json;

use super::control_site::{Instance, by, client, good, heard};
use super::prove_site::{PATIENCE, Site};
use super::support::eventually;

const ONE: &str = "prov1.example.net";

fn helpers_started(site: &Site) -> usize {
    fs::read_to_string(site.path("started")).map_or(0, |text| text.lines().count())
}

fn noting_helper(site: &Site, more: &str) {
    site.helper_also(&format!("echo $identity >> {}\n{more}", site.path("started").display()));
}

/// Nobody was configured without being told to restart, nobody twice.
fn assert_none_half_done(fleet: &FleetHandle) {
    for (name, server) in fleet.report().servers {
        assert_eq!(server.record.configures, server.record.restarts, "{name}: {server:?}");
        assert!(server.record.configures <= 1, "{name}: {server:?}");
    }
}

#[tokio::test]
async fn a_pause_begins_nothing_leaves_nobody_half_done_and_a_resume_goes_on_at_once() {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 4\nin_flight: 8\ninterval: 1h");
    noting_helper(&site, "sleep 0.2");
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let looks = |instance: &Instance| instance.log().matches("Discovered ").count();
    // One of its start, and one of its connection, unless that was there first.
    eventually("it has looked", || looks(&instance) >= 1).await;
    // A look takes a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let fleet = site.servers("web", 60, |_| ()).await;
    eventually("helpers run", || helpers_started(&site) >= 8).await;
    let paused = good(&client, "quartermaster.pause", by("ann", "a test")).await;
    assert!(paused["run_state"]["says"].as_str().unwrap().starts_with("paused by ann since "));
    let idle = async || {
        let status = good(&client, "quartermaster.status", json!({})).await;
        assert_eq!(status["ready"]["role"], "paused");
        assert_eq!(status["run_state"]["paused"]["who"], "ann");
        status["fleet"]["in_flight"] == 0
    };
    while !idle().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Helpers that ran at the pause have ended with their cycles; none has been started since.
    let (started, looked) = (helpers_started(&site), looks(&instance));
    let provisioned = fleet.stats().provisioned;
    assert!(started < 60 && provisioned < 60, "{started} {provisioned}");
    assert_none_half_done(&fleet);
    let more = site.servers("late", 5, |_| ()).await;
    let queued = async || good(&client, "quartermaster.status", json!({})).await["fleet"]["queued"].clone();
    while queued().await.as_u64().unwrap() < 5 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(helpers_started(&site), started, "a paused instance starts no helper");
    assert_eq!(looks(&instance), looked, "nor does it look: {}", instance.log());

    good(&client, "quartermaster.resume", by("ann", "a test")).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    more.wait_until_all_provisioned(PATIENCE).await.unwrap();
    // The interval is an hour, so this look is the resume's.
    eventually("it looked again", || looks(&instance) == looked + 1).await;
    assert_eq!(fleet.report().duplicate_configures, 0);
    assert_none_half_done(&fleet);
    assert!(instance.exited().is_none());
}

#[tokio::test]
async fn the_gauge_is_one_while_paused_and_leadership_is_another_matter() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let mut process = site.run();
    process.ready().await;
    heard(&client).await;
    let gauge = || process.metric("choria_provisioner_paused");
    assert_eq!(gauge(), 0);
    let paused = good(&client, "quartermaster.pause", by("ann", "a test")).await;
    assert_eq!((gauge(), &paused["run_state"]["leading"]), (1, &json!(true)));
    assert_eq!(process.get("/readyz").unwrap().0, 200, "who is paused on purpose is ready");
    good(&client, "quartermaster.resume", by("ann", "a test")).await;
    assert_eq!(gauge(), 0);
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_begins_nothing_and_leaves_with_zero() {
    let Some(site) = Site::new() else { return };
    site.yaml("workers: 4\nin_flight: 4\nhelper_timeout: 1m");
    let go = site.path("go");
    noting_helper(&site, &format!("while [ ! -e {} ]; do sleep 0.1; done", go.display()));
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let fleet = site.servers("web", 20, |_| ()).await;
    eventually("four helpers run", || helpers_started(&site) == 4).await;
    let answer = good(&client, "quartermaster.drain", by("ann", "a new version")).await;
    assert_eq!((&answer["run_state"]["draining"], &answer["in_flight"]), (&json!(true), &json!(4)));
    let status = good(&client, "quartermaster.status", json!({})).await;
    assert_eq!(status["ready"]["role"], "draining");
    fs::write(go, "").unwrap();
    assert_eq!(instance.ended().await, Some(0), "{}", instance.log());
    assert_eq!(helpers_started(&site), 4, "{}", instance.log());
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 4).await.unwrap();
    assert_none_half_done(&fleet);
}

#[tokio::test]
async fn a_pause_survives_the_death_of_the_process_with_who_why_and_since_when() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let before = good(&client, "quartermaster.pause", by("ann", "a test")).await["run_state"].clone();
    instance.signal(Signal::KILL);
    assert_eq!(instance.ended().await, None);
    let looks = |instance: &Instance| instance.log().matches("Discovered ").count();
    let before_its_death = looks(&instance);
    instance.again();
    instance.answers(&client).await;
    let status = good(&client, "quartermaster.status", json!({})).await;
    assert_eq!((&status["run_state"], &status["ready"]["role"]), (&before, &json!("paused")));
    assert_eq!(looks(&instance), before_its_death, "{}", instance.log());
    good(&client, "quartermaster.resume", by("ann", "a test")).await;
    eventually("it looks at once", || looks(&instance) > before_its_death).await;
}
