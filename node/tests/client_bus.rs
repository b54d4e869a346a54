//! The client with engine, vault and a real broker, each account with the rights of the table and no others.

#![cfg(test)]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use quartermaster_node::client::service::{self as client, NodeError, NodeMetrics};
use quartermaster_proto::mesh::{
    accounts::Account,
    key,
    report::{Action, Outcome, Waiting, Why},
};
use support::machine::{Site, now};

mod support;

/// A module with a config value, a placement value and a secret.
fn forge(site: &Site) -> String {
    let templates = site.templates(
        "forge",
        &[("app.ini", "port = ${config:http.port}\ndir = ${dir:data}\npw = ${secret:pw}\n")],
    );
    let path = site.root("web1").join("app.ini");
    format!(
        r#"{templates},"files":[{{"path":"{}","template":"app.ini","owner-at-runtime":"owned"}}],"placement":{{"dir":{{"data":"/srv"}}}},"secrets":[{{"name":"pw"}}]"#,
        path.display()
    )
}

fn waits_for(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Waiting { waiting } => {
            waiting.iter().map(|one| format!("{} {}", one.kind, one.name)).collect()
        }
        _ => Vec::new(),
    }
}

#[actix::test]
async fn a_module_is_filled_once_every_value_is_there_and_follows_each() {
    let Some(mut site) = Site::start(&["web1"]).await else { return };
    let (engine, vault) = (site.engine("web1").await, site.vault().await);
    let (client, running) = site.client("web1").await;
    let plan = forge(&site);
    site.assign("web1", "forge", &plan).await;
    let both = site.report("forge", |report| waits_for(&report.outcome).len() == 2).await;
    assert_eq!(waits_for(&both.outcome), ["config http.port", "secret pw"]);
    let file = site.root("web1").join("app.ini");
    assert!(!file.exists(), "nothing is written while something is missing");
    site.config("web1", "forge", "http.port", "3000").await;
    site.report("forge", |report| waits_for(&report.outcome) == ["secret pw"]).await;
    let status = site.status("web1").await;
    assert!(status.connected);
    assert_eq!(status.modules["forge"].state, "gathering");
    assert_eq!(status.modules["forge"].waiting.len(), 1);
    site.store("own/forge/pw", "canary-9d1e").await;
    let applied = site.reported("forge", "applied").await;
    let Outcome::Applied { files, .. } = &applied.outcome else { panic!("{applied:?}") };
    assert_eq!((files.len(), files[0].action), (1, Action::Written));
    assert!(files[0].digest.starts_with("hmac-sha256:"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "port = 3000\ndir = /srv\npw = canary-9d1e\n");
    let digest = client::digest_of(&site.at("web1").join("client"), &file, false).unwrap();
    assert_eq!(digest, files[0].digest);

    site.config("web1", "forge", "http.port", "3001").await;
    site.reported("forge", "applied").await;
    assert!(fs::read_to_string(&file).unwrap().starts_with("port = 3001\n"));
    site.store("own/forge/pw", "canary-rotated").await;
    site.reported("forge", "applied").await;
    assert!(fs::read_to_string(&file).unwrap().ends_with("pw = canary-rotated\n"));
    assert_eq!(running.modules(), (1, 1));

    let needs = site.bucket(key::NEEDS).await;
    let names: Vec<&str> = needs.keys().map(String::as_str).collect();
    assert_eq!(names, ["web1.forge.config.http=2Eport", "web1.forge.dir.data", "web1.forge.secret.pw"]);
    for (bucket, rows) in [("needs", needs), ("reports", site.bucket(key::APPLIED).await)] {
        assert!(!rows.is_empty() && rows.values().all(|row| !row.contains("canary")), "{bucket}");
    }
    let status = site.status("web1").await.modules["forge"].clone();
    assert_eq!((status.state.as_str(), status.files), ("applied", 1));
    assert!(status.last_write.is_some() && status.last_look.is_some() && status.waiting.is_empty());

    site.unassign("web1", "forge").await;
    site.reported("forge", "removed").await;
    while file.exists() || !site.bucket(key::APPLIED).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(site.bucket(key::NEEDS).await.is_empty());
    client.stop().await;
    vault.stop().await;
    engine.stop().await;
}

#[actix::test]
async fn what_went_while_the_client_was_down_is_said_at_its_start() {
    let Some(mut site) = Site::start(&["web1"]).await else { return };
    let (engine, vault) = (site.engine("web1").await, site.vault().await);
    let (client, _) = site.client("web1").await;
    let plan = forge(&site);
    for module in ["forge", "hub"] {
        let plan = plan.replace("app.ini\",\"template", &format!("{module}.ini\",\"template"));
        site.assign("web1", module, &plan).await;
        site.report(module, |report| waits_for(&report.outcome).len() == 2).await;
    }
    while site.bucket(key::NEEDS).await.len() < 6 || site.bucket(key::APPLIED).await.len() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.stop().await;
    site.unassign("web1", "hub").await;
    let (client, _) = site.client("web1").await;
    site.reported("hub", "removed").await;
    while site.bucket(key::NEEDS).await.len() > 3 || site.bucket(key::APPLIED).await.len() > 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.stop().await;
    vault.stop().await;
    engine.stop().await;
}

#[actix::test]
async fn a_second_client_and_one_without_a_credential_do_not_start() {
    let Some(site) = Site::start(&["web1"]).await else { return };
    let (first, _) = site.client("web1").await;
    let run = |settings| {
        client::run(settings, NodeMetrics::new().unwrap(), Arc::new(now), |_| (), std::future::pending())
    };
    let second = run(site.client_settings("web1")).await.unwrap_err();
    assert!(second.is_taken() && !second.is_configuration());
    let other = client::Settings { state: site.at("other"), ..site.client_settings("web1") };
    let missing = client::Settings { credentials: site.at("no-such-file"), ..other.clone() };
    assert!(matches!(run(missing).await, Err(NodeError::Credentials(_))));
    if rustix::process::geteuid().is_root() {
        let root = run(client::Settings { allow_root: false, ..other }).await.unwrap_err();
        assert!(matches!(root, NodeError::Root) && root.is_configuration());
    }
    first.stop().await;
}

/// How often the vault was asked for anything, by its audit.
fn asks(site: &Site) -> usize {
    let audit = fs::read_to_string(site.at("vault.audit")).unwrap();
    audit.lines().filter(|line| line.contains(r#""op":"get""#) && line.contains("sealed")).count()
}

#[actix::test]
async fn a_module_that_panics_is_built_anew_and_nothing_is_asked_again() {
    let Some(mut site) = Site::start(&["web1"]).await else { return };
    let (engine, vault) = (site.engine("web1").await, site.vault().await);
    let panics = Arc::new(AtomicBool::new(false));
    let trap = Arc::clone(&panics);
    let (client, _) = site
        .client_with_clock("web1", move || {
            assert!(!trap.swap(false, Ordering::SeqCst), "a trap of this test");
            now()
        })
        .await;
    let plan = forge(&site);
    site.assign("web1", "forge", &plan).await;
    site.config("web1", "forge", "http.port", "1").await;
    // Told first that it is absent, so that no question is open when it is stored.
    let is_absent = |one: &Waiting| one.kind == "secret" && one.why == Why::Absent;
    site.report("forge", |report| match &report.outcome {
        Outcome::Waiting { waiting } => waiting.iter().any(is_absent),
        _ => false,
    })
    .await;
    site.store("own/forge/pw", "canary-77aa").await;
    site.reported("forge", "applied").await;
    assert_eq!(asks(&site), 1);
    // The next to look at the clock is the module, when it hears of the new value.
    panics.store(true, Ordering::SeqCst);
    site.config("web1", "forge", "http.port", "2").await;
    site.reported("forge", "applied").await;
    assert!(!panics.load(Ordering::SeqCst), "it has panicked");
    let text = fs::read_to_string(site.root("web1").join("app.ini")).unwrap();
    assert_eq!(text, "port = 2\ndir = /srv\npw = canary-77aa\n");
    assert_eq!(asks(&site), 1, "the value is held");
    client.stop().await;
    vault.stop().await;
    engine.stop().await;
}

#[actix::test]
async fn the_tool_runner_is_answered_and_told_what_moved() {
    let Some(mut site) = Site::start(&["web1"]).await else { return };
    let runner = site.broker.connect(&Account::ToolRunner { node: "web1".to_owned() }).await;
    let mut moved = runner.client().subscribe("prov.changed.web1.>").await.unwrap();
    runner.client().flush().await.unwrap();
    let (client, _) = site.client("web1").await;
    site.config("web1", "forge", "http.port", "3000").await;
    site.assign_raw("web1", "forge", "").await;
    let mut told = async || {
        let message = moved.next().await.unwrap();
        (message.subject.to_string(), String::from_utf8(message.payload.to_vec()).unwrap())
    };
    let all = ("prov.changed.web1.forge".to_owned(), r#"{"kind":"config"}"#.to_owned());
    assert_eq!(told().await, all, "assigned without a plan is assigned");
    let ask = async |question: &str| {
        let asked = runner.client().request("prov.ask.web1", question.to_owned().into());
        String::from_utf8(asked.await.unwrap().payload.to_vec()).unwrap()
    };
    for (question, answer) in [
        (r#"{"module":"forge","kind":"config","key":"http.port"}"#, r#"{"value":3000}"#),
        (r#"{"module":"forge","kind":"config","key":"x"}"#, r#"{"error":"undeclared:"#),
        (r#"{"module":"hub","kind":"config","key":"x"}"#, r#"{"error":"unassigned:"#),
        (r#"{"module":"forge","kind":"secret","key":"x"}"#, r#"{"error":"secret:"#),
        (r#"{"module":"forge","kind":"bound","key":"x"}"#, r#"{"error":"kind:"#),
        ("not JSON", r#"{"error":"bad-request:"#),
    ] {
        let found = ask(question).await;
        assert!(found.starts_with(answer), "{question} {found}");
    }
    site.config("web1", "forge", "http.port", "3001").await;
    let one = r#"{"kind":"config","key":"http.port"}"#.to_owned();
    assert_eq!(told().await, ("prov.changed.web1.forge".to_owned(), one));
    site.broker.restart();
    assert_eq!(told().await, all, "what moved while the bus was away is not known");
    client.stop().await;
}
