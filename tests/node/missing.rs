//! C43, C44: what is missing or mistyped is told by name, where it was looked for and what is like it, within a time that one gives;
//! nothing is written meanwhile, and an empty value is none of that.

use std::fs;

use quartermaster_proto::mesh::registry::{Entry, Source, VaultSource};
use quartermaster_proto::mesh::{Kind, key};
use serde_json::{Value, json};

use crate::support::{Module, Options, Site, eventually, eventually_async};

/// Runs `node status` of the first machine; its exit code, what it printed and what it said.
fn status(site: &Site, more: &[&str]) -> (Option<i32>, String, String) {
    let state = site.web1().state();
    let run = site.verb(&["node", "status", "--state", state.to_str().unwrap()], more);
    let [out, err] = [run.stdout, run.stderr].map(|text| String::from_utf8(text).unwrap());
    (run.status.code(), out, err)
}

/// What the status has of everything that a module waits for.
fn missing(site: &Site, module: &str) -> Vec<Value> {
    let (_, out, _) = status(site, &["--json"]);
    let status: Value = serde_json::from_str(&out).unwrap_or_default();
    status["modules"][module]["waiting"].as_array().cloned().unwrap_or_default()
}

/// C43: five values, three of them absent: all three are named in the log, in the status and by whoever waits for a time; what was there
/// stays. Once all is there, the same wait ends at once and well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_three_of_five_values_are_missing_and_all_three_are_told_in_time() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    for name in ["a", "b"] {
        site.config("web1", "forge", name, "1").await;
    }
    site.store("own/forge/pw", b"canary of c43");
    let text = "${config:a}${config:b}${config:c}${port:http}${secret:gone}${secret:pw}";
    let module = site.web1().module("forge").file("a", text).secret("gone").secret("pw");
    fs::write(site.web1().path("a"), "as before").unwrap();
    site.assign(&module).await;
    site.says("web1", "forge", "waiting config c no-entry, port http absent, secret gone absent").await;
    let (code, out, _) = status(&site, &["--applied-within", "1"]);
    assert_eq!(code, Some(1), "{out}");
    for line in
        ["waits for config c: no-entry", "waits for port http: absent", "waits for secret gone: absent"]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
    let (code, out, _) = status(&site, &["forge", "--json", "--applied-within", "0"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, shown["modules"]["forge"]["waiting"].as_array().unwrap().len()), (Some(1), 3));
    let log = site.web1().log();
    let line = log
        .lines()
        .find(|line| line.contains("config c (no-entry), port http (absent), secret gone (absent)"));
    assert!(
        line.is_some_and(|line| line.contains(r#""level":"info""#)),
        "at an ordinary level, all in one line"
    );
    assert_eq!(site.web1().read("a").unwrap(), "as before");

    site.config("web1", "forge", "c", "3").await;
    site.store("own/forge/gone", b"canary of c43 too");
    site.assign(&module.with("placement", json!({"port": {"http": 80}}))).await;
    let (code, out, _) = status(&site, &["forge", "--applied-within", "45"]);
    assert_eq!((code, out.contains("forge: applied")), (Some(0), true), "{out}");
    site.check_secrets();
}

/// C43: a failure ends the wait at once, nobody to ask ends it with its own code, and a module that is not there is no success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_waiting_ends_with_what_can_never_be() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.assign(&site.web1().module("forge").file("a", "${confg:a}")).await;
    // Ten hours are over as soon as it has failed.
    let (code, out, _) = status(&site, &["--applied-within", "36000"]);
    assert!(
        code == Some(1)
            && out.contains("line 1: confg a: no such kind of placeholder is known; is `config` meant?"),
        "{out}"
    );
    let (code, out, err) = status(&site, &["Forge", "--applied-within", "1"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (Some(1), "", "error: web1 has no module `Forge`; is `forge` meant?\n")
    );
    site.web1_mut().client = None;
    let (code, _, err) = status(&site, &["--applied-within", "1"]);
    assert!(code == Some(7) && err.contains("no client answers"), "{err}");
}

/// C43: a bucket, a subject, a permission and an entry that are missing are each told by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_a_bucket_a_subject_a_permission_and_an_entry_are_told_by_name() {
    let Some(mut site) =
        Site::start(Options { rules: Some("deny provisioner.web1 own/denied/*\n"), ..Options::default() })
            .await
    else {
        return;
    };
    site.start_machines().await;
    let looked = |module: &str| -> Vec<(String, String)> {
        let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
        missing(&site, module).iter().map(|one| (text(one, "why"), text(one, "looked"))).collect()
    };
    let wait = async |module: &Module, why: &str, place: &str| {
        site.assign(module).await;
        let wanted = [(why.to_owned(), place.to_owned())];
        eventually(place, || (looked(&module.name) == wanted).then_some(())).await;
    };
    let module = |name: &str, text: &str| site.web1().module(name).file(name, text);
    // An entry of a bucket, and a bucket.
    wait(
        &module("entry", "${config:a.b}"),
        "no-entry",
        "web1.entry.a=2Eb in the bucket mesh-config_resolved",
    )
    .await;
    let entry = json!({"provision": "sql", "provider": "db", "credential": "none"});
    let bound = module("bucket", "${bound:sql:host}").requires(entry);
    wait(&bound, "no-bucket", "web1.bucket.sql in the bucket db_bound").await;
    // A subject on which nobody answers: the registry names another.
    let elsewhere = |entry: Entry| match entry.source {
        Source::Vault(vault) => Entry {
            source: Source::Vault(VaultSource { request: "mesh-vualt.get".to_owned(), ..vault }),
            ..entry
        },
        _ => entry,
    };
    let entries = Entry::defaults(None);
    let secret = entries.iter().find(|entry| entry.kind == Kind::Secret).unwrap().clone();
    site.register(&elsewhere(secret.clone())).await;
    wait(&module("subject", "${secret:pw}").secret("pw"), "no-answer", "own/subject/pw at mesh-vualt.get")
        .await;
    site.register(&secret).await;
    wait(&module("absent", "${secret:pw}").secret("pw"), "absent", "own/absent/pw at mesh-vault.get").await;
    // A permission of the vault's own rules fails with its reason.
    site.assign(&module("denied", "${secret:pw}").secret("pw")).await;
    let said = site.is("web1", "denied", "failed").await;
    assert!(said.starts_with("failed secret pw: the vault refused: "), "{said}");
    // An owner that is not registered.
    site.bus.delete(key::REGISTRY, "bound").await;
    wait(&bound, "no-entry", "bound in the bucket mesh-provisioner_registry").await;
}

/// C44: another case and a slip of the hand are told with what is like them; what is empty is a value and is none of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_a_mistyped_name_is_told_with_what_is_like_it_and_an_empty_value_is_a_value() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    site.config("web1", "forge", "title", "\"ours\"").await;
    site.config("web1", "forge", "empty", "\"\"").await;
    let plan = json!({"port": {"http": 80}});
    let module =
        site.web1().module("forge").file("a", "${config:Title}${config:titel}${port:htpp}${config:empty}");
    site.assign(&module.with("placement", plan)).await;
    site.says("web1", "forge", "waiting config Title no-entry, config titel no-entry, port htpp absent")
        .await;
    let near: Vec<Value> = missing(&site, "forge").iter().map(|one| one["near"].clone()).collect();
    assert_eq!(near, [json!("title"), json!("title"), json!("http")]);
    let (_, out, _) = status(&site, &["forge"]);
    assert!(
        out.contains("looked for web1.forge.Title in the bucket mesh-config_resolved; there is `title`"),
        "{out}"
    );
    assert!(site.web1().files().is_empty(), "nothing is written");
    // What can never be right says so as well.
    let check = async |name: &str, module: Module, says: &str| {
        site.assign(&module).await;
        let said = site.is("web1", name, "failed").await;
        assert!(said.ends_with(says), "{name}: {said}");
    };
    let module = |name: &str, text: &str| site.web1().module(name).file(name, text);
    check(
        "secret",
        module("secret", "${secret:Pw}").secret("pw"),
        "the plan names no such secret; is `pw` meant?",
    )
    .await;
    let entry = json!({"provision": "postgres", "provider": "db", "credential": "none"});
    let bound = module("bound", "${bound:postgers:host}").requires(entry);
    check("bound", bound, "the plan has no such provision; is `postgres` meant?").await;
    let collected = module("collected", "${shell:zsh}").collects("shell:Zsh", "#");
    check("collected", collected, "the plan does not collect this collection; is `shell:Zsh` meant?").await;
    // Who sets a value that nobody needs, while one that is like it is needed, is told.
    eventually_async(4, || async { site.needs("web1", "forge").await.len() }).await;
    let set = site.mesh(&["config", "set", "web1", "forge", "titell", "x"]);
    let said = String::from_utf8_lossy(&set.stderr).into_owned();
    assert_eq!(said, "warning: forge on web1 needs `titel`, and nothing that is called `titell`\n");
    let shown = site.mesh(&["show", "web1", "Forge"]);
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert_eq!(
        (shown.status.code(), said.as_str()),
        (Some(1), "error: Forge is not assigned to web1; is `forge` meant?\n")
    );
    // Alone, the empty value fills its file.
    site.assign(&site.web1().module("forge").file("a", "<${config:empty}>")).await;
    site.web1().holds("a", "<>").await;
}

/// C43: a login that the broker does not take, and a right that is missing there, are told in its words: the right with its subject.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_what_the_broker_refuses_is_told_with_its_subject() {
    let Some(mut site) = Site::start(Options::default()).await else { return };
    let account = site.web1().account();
    let credentials = site.broker.credentials(&account);
    let good = fs::read(&credentials).unwrap();
    site.broker.renew(&account);
    site.start_machines().await;
    eventually("it is told", || {
        status(&site, &[]).1.contains("  the broker: authorization violation").then_some(())
    })
    .await;
    let (code, out, _) = status(&site, &["--applied-within", "1"]);
    assert!(code == Some(1) && out.starts_with("web1: no broker, 0 modules\n"), "{out}");
    let log = site.web1().log();
    let line = log.lines().find(|line| line.contains("the broker cannot be used as it should")).unwrap();
    assert!(line.contains("provisioner.web1") && line.contains(r#""level":"warning""#), "{line}");

    // It may come in, and not read its machine's rows of any bucket.
    let config = site.at("broker/template.conf");
    let text = fs::read_to_string(&config).unwrap();
    let less = text
        .replace("$JS.API.CONSUMER.CREATE.*.*.$KV.*.web1.>", "$JS.API.CONSUMER.CREATE.*.*.$KV.*.nobody.>");
    assert_ne!(text, less);
    fs::write(&config, less).unwrap();
    site.broker.reload();
    fs::write(&credentials, good).unwrap();
    site.assign(&site.web1().module("forge").file("a", "${config:a}")).await;
    // Nor what it reported before, so that it is its own status that says what it waits for.
    eventually("it waits", || {
        missing(&site, "forge").first().filter(|one| one["why"] == "not-loaded").map(drop)
    })
    .await;
    eventually("the subject is named", || {
        let (_, out, _) = status(&site, &["forge"]);
        let said = out.lines().find(|line| line.starts_with("  the broker: "))?;
        let is_named = said.to_lowercase().contains("permissions violation for publish to")
            && said.contains("$KV.mesh-config_resolved.web1.>");
        is_named.then_some(())
    })
    .await;
    site.config("web1", "forge", "a", "1").await;
    fs::write(&config, text).unwrap();
    site.broker.reload();
    site.web1().holds("a", "1").await;
}
