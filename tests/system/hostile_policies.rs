//! A decision too large for the broker fails its one server at once, with both numbers, and nothing else happens.

use super::hostile_field::{Fate, Field, Kind, Row, node};
use super::support::replace;

/// Small for a helper, too large for a broker that takes 1 MiB.
const POLICIES: usize = 3 << 19;
const ROWS: &[Row] =
    &[("abort_configure:1", Fate::Decided("configure", "failed after 1 tries: the request has "))];

async fn too_large(kind: Kind) {
    let field = Field::start(kind, ROWS, &[], |files| {
        let large = files.dir.join("large.json");
        let policy = "a".repeat(POLICIES);
        let reply = serde_json::json!({
            "configuration": {"plugin.choria.server.provision": "false"},
            "action_policies": {"large.policy": policy},
        });
        std::fs::write(&large, reply.to_string()).unwrap();
        let answer = format!(
            "if [ \"$identity\" = {} ]; then cat {}; exit 0; fi\nprintf '%s\\n' \"{{",
            node(1),
            large.display()
        );
        replace(&files.helper, "printf '%s\\n' \"{", &answer);
    });
    let Some(mut field) = field.await else { return };
    field.daemon.listens().await;
    let failure = |field: &Field| {
        let lines = field.daemon.lines();
        lines.into_iter().find(|line| line["host"] == node(1) && line["cause"] == "configure")
    };
    super::support::eventually("the large decision fails", || failure(&field).is_some()).await;
    let message = failure(&field).unwrap()["msg"].as_str().unwrap().to_owned();
    let numbers: Vec<usize> =
        message.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
    assert!(numbers.iter().any(|size| *size > POLICIES) && numbers.contains(&(1 << 20)), "{message}");
    // One call, one connection, before and after.
    let lines = field.daemon.lines();
    let tries = lines.iter().filter(|line| {
        line["host"] == node(1)
            && line["msg"].as_str().is_some_and(|msg| msg.contains("choria_provision#configure"))
    });
    assert_eq!(tries.count(), 1);
    let logins =
        |line: &&serde_json::Value| line["msg"].as_str().is_some_and(|msg| msg.starts_with("Connected: "));
    assert_eq!(lines.iter().filter(logins).count(), 1);
    field.check(ROWS, Fate::Provisioned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_plain_network_a_decision_over_the_limit_fails_at_once() {
    too_large(Kind::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_issuer_network_a_decision_over_the_limit_fails_at_once() {
    too_large(Kind::Issuer).await;
}
