//! Steps of providers in a whole site: done before and after configure, taken back when the cycle fails later, also when the
//! provisioner is killed at any point in between.

use rustix::process::Signal;

use super::prove_site::{PATIENCE, Process};
use super::steps_site::Steps;
use super::support::eventually;

#[tokio::test]
async fn a_server_gets_its_record_and_certificate_before_it_is_configured_and_a_failure_later_takes_exactly_those_back()
 {
    let Some(steps) = Steps::new() else { return };
    steps.refuse(true);
    let mut process = steps.site.run();
    process.ready().await;
    let fleet = steps.site.servers("web", 1, |_| {}).await;
    let server = "web1.example.net";
    steps.seen("done remove", 2).await;
    let log = steps.log();
    let verbs: Vec<_> = log.iter().map(|line| line.rsplit_once(' ').unwrap().0).take(9).collect();
    assert_eq!(
        verbs,
        [
            "begin record_create",
            "done record_create",
            "begin sign",
            "done sign",
            "begin enter",
            "begin remove",
            "done remove",
            "begin remove",
            "done remove"
        ]
    );
    let key = |line: &str| line.rsplit_once(' ').unwrap().1.to_owned();
    assert_eq!((key(&log[6]), key(&log[8])), (key(&log[3]), key(&log[1])), "newest first");
    assert!(fleet.server(server).unwrap().record.configures >= 1);
    steps.refuse(false);
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 1).await.unwrap();
    eventually("the cycle is over", || process.fleet("in_flight") == 0).await;
    steps.assert_complete(server);
    let (_, host) = process.get(&format!("/api/v1/hosts/{server}")).unwrap();
    for name in ["steps.record", "undo.record", "steps.inventory"] {
        assert!(host.contains(name), "{host}");
    }
    assert!(process.metric_with("quartermaster_steps_total", "result=\"undone\"") >= 2);
    assert!(process.metric_with("quartermaster_cycle_ends_total", "cause=\"step\"") >= 1);
    for text in
        ["Step record done", "Taking back what was done for web1.example.net", "Step certificate taken back"]
    {
        assert!(process.log().contains(text), "{text}:\n{}", process.log());
    }
    process.signal(Signal::TERM);
    process.wait(PATIENCE).await;
}

/// Where a provisioner is killed: while this action is held, before or after it was done.
async fn killed_at(place: &str, action: &str, refuse: bool) {
    let Some(steps) = Steps::new() else { return };
    steps.refuse(refuse);
    steps.hold(place, action);
    let mut process = steps.site.run();
    process.ready().await;
    let fleet = steps.site.servers("web", 1, |_| {}).await;
    let seen = if place == "before" { format!("begin {action}") } else { format!("done {action}") };
    steps.seen(&seen, 1).await;
    process.signal(Signal::KILL);
    process.wait(PATIENCE).await;
    // As the machine would have it: the killed one's providers end with their input.
    steps.let_go();
    let mut process: Process = steps.site.run();
    process.ready().await;
    if refuse {
        // What the killed one did is taken back before anything is done anew.
        steps.seen("done remove", 2).await;
        steps.refuse(false);
    }
    fleet
        .wait_until(PATIENCE, |stats| stats.provisioned == 1)
        .await
        .unwrap_or_else(|error| panic!("{place} {action}: {error}\n{}\n{:#?}", process.log(), steps.log()));
    eventually("the cycle is over", || process.fleet("in_flight") == 0).await;
    steps.assert_complete("web1.example.net");
    let log = steps.log();
    for line in log.iter().filter(|line| line.starts_with("done") && !line.starts_with("done remove")) {
        assert_eq!(log.iter().filter(|other| *other == line).count(), 1, "{place} {action}: {log:#?}");
    }
    process.signal(Signal::TERM);
    process.wait(PATIENCE).await;
}

#[tokio::test]
async fn killed_around_the_step_of_a_record() {
    killed_at("before", "record_create", false).await;
    killed_at("after", "record_create", false).await;
}

#[tokio::test]
async fn killed_around_the_step_of_a_certificate() {
    killed_at("before", "sign", false).await;
    killed_at("after", "sign", false).await;
}

#[tokio::test]
async fn killed_around_the_step_after_configure() {
    killed_at("before", "enter", false).await;
    killed_at("after", "enter", false).await;
}

#[tokio::test]
async fn killed_while_everything_is_taken_back() {
    killed_at("before", "remove", true).await;
    killed_at("after", "remove", true).await;
}
