//! When to look, and what an event says.

use std::time::{Duration, Instant};

use super::event::{Noted, read_event};
use super::plan::{Effect, Input, Plan};

const INTERVAL: Duration = Duration::from_mins(1);

fn plan() -> (Plan, Instant) {
    let now = Instant::now();
    (Plan::new(INTERVAL, now), now)
}

#[test]
fn it_looks_at_once_and_then_every_interval() {
    let (mut plan, now) = plan();
    assert_eq!(plan.handle(Input::Due, false, now), Effect::Look("interval"));
    assert_eq!(plan.handle(Input::Ended { ok: true }, false, now), Effect::Nothing);
    assert_eq!(plan.due(), now + INTERVAL);
    assert_eq!(plan.handle(Input::Due, false, now + INTERVAL / 2), Effect::Nothing);
    assert_eq!(plan.handle(Input::Due, false, now + INTERVAL), Effect::Look("interval"));
}

#[test]
fn a_hundred_causes_during_a_look_make_one_more_look() {
    let (mut plan, now) = plan();
    plan.handle(Input::Due, false, now);
    for _ in 0..100 {
        assert_eq!(plan.handle(Input::Wanted("asked"), false, now), Effect::Nothing);
    }
    assert_eq!(plan.handle(Input::Ended { ok: true }, false, now), Effect::Look("asked"));
    assert_eq!(plan.handle(Input::Ended { ok: true }, false, now), Effect::Nothing);
}

#[test]
fn paused_it_says_so_and_looks_when_work_goes_on() {
    let (mut plan, now) = plan();
    assert_eq!(plan.handle(Input::Due, true, now), Effect::SayPaused);
    assert_eq!(plan.handle(Input::Wanted("working again"), false, now), Effect::Look("working again"));
}

#[test]
fn after_a_failure_it_comes_back_sooner_but_never_later_than_the_interval() {
    let (mut plan, mut now) = plan();
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(plan.handle(Input::Due, false, now), Effect::Look("interval"));
        plan.handle(Input::Ended { ok: false }, false, now);
        waits.push((plan.due() - now).as_secs());
        now = plan.due();
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
}

fn inner(component: &str, identity: &str) -> String {
    format!(
        r#"{{"protocol":"io.choria.lifecycle.v1.startup","id":"87d5bb6a-b086-4c76-a58e-052c5c8b2d19","identity":"{identity}","component":"{component}","timestamp":1795976737,"version":"0.29.4"}}"#
    )
}

fn check(bytes: &str, expected: &str) {
    let got = match read_event(bytes.as_bytes(), "provision_mode_server") {
        Ok(Noted::WantsProvisioning { identity, stamp, .. }) => format!("wants {identity} {stamp}"),
        Ok(Noted::Serves { identity }) => format!("serves {identity}"),
        Ok(Noted::Other) => "other".to_owned(),
        Err(error) => format!("refused: {error}"),
    };
    assert_eq!(got, expected);
}

#[test]
fn a_host_in_provisioning_mode_wants_provisioning() {
    check(&inner("provision_mode_server", "web1.example.net"), "wants web1.example.net 1795976737");
}

#[test]
fn an_ordinary_server_serves() {
    check(&inner("server", "web1.example.net"), "serves web1.example.net");
}

#[test]
fn other_components_do_not_concern_the_fleet() {
    check(&inner("provisioner", "p.example.net"), "other");
}

#[test]
fn what_is_no_event_is_refused() {
    check("not json", "refused: could not read a lifecycle event");
}

#[test]
fn an_identity_that_could_forge_a_log_line_or_a_subject_is_refused() {
    for bad in ["a\\nb", "a b", "a.*", ">", "", "a..b", "a\\u0000"] {
        check(
            &inner("provision_mode_server", bad),
            "refused: a lifecycle event names an impossible identity",
        );
    }
}
