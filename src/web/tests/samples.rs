//! Hosts as an instance might tell of them, hostile ones among them.

use quartermaster_actors::fleet::{Counts, FailureView, FleetOverview, HostView, OldestWaiting, SlowestStep};
use quartermaster_actors::journal::{AttemptRecord, HelperRecord, StepRecord};
use quartermaster_proto::choria::Identity;

/// A name that a stranger could give a host: no white space, `*` or `>` may be in it, everything else may.
pub const HOSTILE_NAME: &str = "\"onmouseover=alert(1)//<script<img/src='x'&amp;%2e%2e/.;a?b#c";

/// What a hostile helper could write.
const HOSTILE_TEXT: &str = "</pre><script>alert(1)</script> \u{1b}[2J\u{202e}evil\u{200b} & \"quoted\" 'x' <img src=x onerror=alert(1)>";

fn helper() -> HelperRecord {
    HelperRecord {
        exit: Some(1),
        ending: "exited with status 1".to_owned(),
        took_ms: 2340,
        stderr: vec!["asking the inventory".to_owned(), HOSTILE_TEXT.to_owned()],
    }
}

/// A host that does nothing yet.
fn plain(name: &str, state: &str) -> HostView {
    HostView {
        identity: Identity::parse(name).unwrap(),
        state: state.to_owned(),
        in_state_ms: 0,
        attempt: 1,
        failures: 0,
        step: None,
        step_tries: None,
        in_step_ms: None,
        waited_ms: 0,
        retry_in_ms: None,
        held_after: None,
        confirmed: None,
        first_seen_ms: 0,
        last_seen_ms: 0,
        failure: None,
    }
}

fn failed(name: &str, state: &str) -> HostView {
    HostView {
        in_state_ms: 61_000,
        attempt: 3,
        failures: 2,
        waited_ms: 1500,
        retry_in_ms: (state == "cooling").then_some(119_000),
        first_seen_ms: 600_000,
        last_seen_ms: 4000,
        failure: Some(FailureView {
            cause: "helper".to_owned(),
            error: HOSTILE_TEXT.to_owned(),
            ago_ms: 61_000,
            helper: Some(helper()),
        }),
        ..plain(name, state)
    }
}

/// All hosts, by name.
pub fn hosts() -> Vec<HostView> {
    let mut hosts = vec![failed(HOSTILE_NAME, "cooling"), failed("web-3.example.net", "gave_up")];
    for n in 0..250 {
        hosts.push(HostView {
            step: (n % 2 == 1).then(|| "inventory".to_owned()),
            step_tries: (n % 2 == 1).then_some(2),
            in_step_ms: (n % 2 == 1).then_some(700),
            ..plain(&format!("node-{n:03}.example.net"), if n % 2 == 0 { "waiting" } else { "in_flight" })
        });
    }
    hosts.push(HostView {
        held_after: Some("provisioned".to_owned()),
        confirmed: Some(true),
        ..plain("done-1.example.net", "held")
    });
    hosts.sort_by(|a, b| a.identity.cmp(&b.identity));
    hosts
}

pub fn overview() -> FleetOverview {
    FleetOverview {
        counts: Counts::default(),
        oldest_waiting: Some(OldestWaiting {
            identity: Identity::parse("node-000.example.net").unwrap(),
            waited_ms: 252_000,
        }),
        slowest_step: Some(SlowestStep {
            identity: Identity::parse(HOSTILE_NAME).unwrap(),
            step: "inventory".to_owned(),
            tries: 2,
            took_ms: 12_400,
        }),
        failures: hosts().into_iter().filter(|host| host.failure.is_some()).collect(),
    }
}

/// Oldest first.
pub fn history() -> Vec<AttemptRecord> {
    let step = |step: &str, took_ms, error: Option<&str>| StepRecord {
        step: step.to_owned(),
        tries: 1,
        began_ms: 1_700_000_000_000,
        took_ms,
        error: error.map(str::to_owned),
    };
    let failed = AttemptRecord {
        attempt: 2,
        cycle: 17,
        began_ms: 1_700_000_000_000,
        took_ms: 2500,
        ending: "failed".to_owned(),
        cause: Some("helper".to_owned()),
        error: Some(HOSTILE_TEXT.to_owned()),
        steps: vec![step("inventory", 120, None), step("helper", 2340, Some(HOSTILE_TEXT))],
        helper: Some(helper()),
    };
    let interrupted =
        AttemptRecord { attempt: 1, cycle: 3, ending: "interrupted".to_owned(), ..failed.clone() };
    vec![interrupted, failed]
}
