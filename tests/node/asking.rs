//! T55 to T57: what modules' code in the tool runner may ask, and what it is told.

use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::key;
use serde_json::{Value, json};

use crate::support::{Site, eventually};

struct ToolRunner(Client);

impl ToolRunner {
    async fn connect(site: &Site) -> Self {
        Self(site.broker.connect(&Account::ToolRunner { node: "web1".to_owned() }).await)
    }

    /// Asks until somebody answers; the answer as it stands.
    async fn ask_bytes(&self, body: impl Into<Bytes>) -> String {
        let body = body.into();
        loop {
            let asked = self.0.request(key::ask_subject("web1"), body.clone());
            if let Ok(Ok(reply)) = tokio::time::timeout(Duration::from_secs(10), asked).await {
                return String::from_utf8(reply.payload.to_vec()).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn ask(&self, module: &str, kind: &str, key: &str) -> String {
        self.ask_bytes(json!({"module": module, "kind": kind, "key": key}).to_string()).await
    }

    /// The first word of the error.
    async fn word(&self, body: impl Into<Bytes>) -> String {
        let answer: Value = serde_json::from_str(&self.ask_bytes(body).await).unwrap();
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
        answer["error"].as_str().unwrap().split(':').next().unwrap().to_owned()
    }
}

/// T55: the stored JSON of a declared key, for a module that is assigned here, with or without a plan; otherwise why not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t55_a_declared_value_of_an_assigned_module_is_answered_as_it_is_stored() {
    let Some(mut site) = Site::running(&["web1", "web2"], 1).await else { return };
    for (node, module, name, stored) in [
        ("web1", "forge", "http.port", "9007199254740993"),
        ("web1", "forge", "object", r#"{"b": 1, "a":[]}"#),
        ("web1", "plain", "a", "\"x\""),
        ("web1", "stranger", "a", "1"),
        ("web2", "other", "a", "1"),
    ] {
        site.config(node, module, name, stored).await;
    }
    site.assign(&site.web1().module("forge").file("a", "x")).await;
    site.assign(&site.web2().module("other").file("a", "x")).await;
    site.assign_text("web1.plain", r#"{"node":"web1","module":"plain","serial":1}"#).await;
    site.says("web1", "forge", "applied a=written").await;
    let runner = ToolRunner::connect(&site).await;
    assert_eq!(runner.ask("forge", "config", "http.port").await, r#"{"value":9007199254740993}"#);
    assert_eq!(runner.ask("forge", "config", "object").await, r#"{"value":{"b": 1, "a":[]}}"#);
    assert_eq!(runner.ask("plain", "config", "a").await, r#"{"value":"x"}"#);
    let question =
        |module: &str, key: &str| json!({"module": module, "kind": "config", "key": key}).to_string();
    assert_eq!(runner.word(question("forge", "nothing")).await, "undeclared");
    assert_eq!(runner.word(question("stranger", "a")).await, "unassigned");
    assert_eq!(runner.word(question("other", "a")).await, "unassigned", "it is assigned on another machine");

    // Asked before it knows anything: what is in the bucket, or that it is not ready; never that there is no such thing.
    site.web1_mut().restart_client();
    let answer = runner.ask("forge", "config", "http.port").await;
    assert!(answer.contains("9007199254740993") || answer.contains("not-ready"), "{answer}");
}

/// T56: everything that is not answered is an error whose first word is fixed, and the vault is never asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t56_secrets_other_kinds_and_nonsense_are_errors() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t56-secret");
    site.assign(&site.web1().module("forge").file("a", "x").item("c", "x")).await;
    site.says("web1", "forge", "applied a=written").await;
    let runner = ToolRunner::connect(&site).await;
    let kind = |kind: &str| json!({"module": "forge", "kind": kind, "key": "pw"}).to_string();
    for (body, word) in [
        (kind("secret"), "secret"),
        (kind("consumers"), "kind"),
        (kind("bound"), "kind"),
        (kind("port"), "kind"),
        (kind("nonsense"), "kind"),
        (r#"{"module":"forge","key":"pw"}"#.to_owned(), "bad-request"),
        ("x".repeat(1024 * 1024), "bad-request"),
        ("not JSON".to_owned(), "bad-request"),
        (String::new(), "bad-request"),
        ("[]".to_owned(), "bad-request"),
    ] {
        let shown = body.chars().take(60).collect::<String>();
        assert_eq!(runner.word(body).await, word, "{shown}");
    }
    assert!(!site.audit().iter().any(|line| line.starts_with("get ")), "{:?}", site.audit());
    site.check_secrets();
}

/// T57: which value moved is said, at start and on every change, never the value and never of a secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t57_what_moved_is_said_and_never_the_value() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t57-secret");
    site.config("web1", "forge", "a", "\"value-of-t57\"").await;
    let place = site.tap.here();
    site.assign(&site.web1().module("forge").file("f", "${config:a}${secret:pw}").secret("pw")).await;
    let subject = "prov.changed.web1.forge";
    let said = |site: &Site, place: usize| -> Vec<Value> {
        site.tap.since(place, subject).into_iter().map(|heard| heard.json()).collect()
    };
    let all = json!({"kind": "config"});
    let one = json!({"kind": "config", "key": "a"});
    eventually("the assignment is said", || said(&site, place).contains(&all).then_some(())).await;
    site.says("web1", "forge", "applied f=written").await;

    let place = site.tap.here();
    site.config("web1", "forge", "a", "\"another-of-t57\"").await;
    eventually("the change is said", || (said(&site, place) == [one.clone()]).then_some(())).await;
    let place = site.tap.here();
    site.no_config("web1", "forge", "a").await;
    eventually("the deletion is said", || (said(&site, place) == [one.clone()]).then_some(())).await;
    site.config("web1", "forge", "a", "\"value-of-t57\"").await;
    site.web1().holds("f", "value-of-t57t57-secret").await;

    let place = site.tap.here();
    site.broker.start_again();
    eventually("the return is said", || said(&site, place).contains(&all).then_some(())).await;
    let place = site.tap.here();
    site.rotate("own/forge/pw");
    eventually("the rotation is here", || {
        let text = site.web1().read("f")?;
        (text != "value-of-t57t57-secret").then_some(())
    })
    .await;
    assert_eq!(said(&site, place), Vec::<Value>::new());
    site.web1_mut().restart_client();
    eventually("the start is said", || said(&site, place).contains(&all).then_some(())).await;
    let heard = site.tap.since(0, "prov.changed.");
    assert!(heard.iter().all(|one| !one.text().contains("t57")), "{heard:?}");
    site.check_secrets();
}
