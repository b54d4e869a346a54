//! T23 to T28: rotation, and the credentials of what a module requires.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use quartermaster_node::vault::Value;
use quartermaster_node::vault::service::{AdminRequest, AdminValue};
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::plan::Digest;
use quartermaster_proto::mesh::vault::{PutReply, SecretChanged};
use quartermaster_proto::time::WallClock;
use rustix::process::Signal;
use serde_json::json;
use zeroize::Zeroizing;

use crate::support::{Options, Site, eventually, eventually_async};

/// Waits until the file holds something else, and answers it.
async fn changed(site: &Site, file: &str, before: &str) -> String {
    eventually(&format!("{file} is another"), || site.web1().read(file).filter(|text| text != before)).await
}

fn get_lines(site: &Site) -> Vec<String> {
    site.audit().into_iter().filter(|line| line.starts_with("get ")).collect()
}

/// T23: a rotated secret reaches its file without a new plan; its program is told once and nothing else is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t23_a_rotation_reaches_its_file_and_nothing_else() {
    let options = Options { providers: vec![("web1", "hub")], ..Options::default() };
    let Some(mut site) = Site::start(options).await else { return };
    site.start_machines().await;
    site.store("own/forge/pw", b"t23-secret");
    site.store("own/forge/other", b"t23-other-secret");
    let tell = json!({"on-change": {"command": [site.web1().teller("tell")]}});
    let module = site
        .web1()
        .module("forge")
        .file_with("a", "${secret:pw}", tell.clone())
        .file("other", "${secret:other}")
        .file_with("token", "${secret:token}", tell)
        .secret("pw")
        .secret("other")
        .requires(json!({"provision": "read", "provider": "hub", "credential": "issued", "name": "token"}));
    site.assign(&module).await;
    site.assign(&site.web1().module("hub").provides("read")).await;
    let name = "provision/hub/read/web1/forge";
    eventually("the vault knows the plan", || (!get_lines(&site).is_empty()).then_some(())).await;
    let stored = site.deposit("web1", "hub", name, b"t23-token-one").await;
    assert!(matches!(stored, PutReply::Stored { .. }), "{stored:?}");
    site.is("web1", "forge", "applied").await;
    let (told, asked) = (site.web1().told("tell"), get_lines(&site).len());

    site.rotate("own/forge/pw");
    let rotated = changed(&site, "a", "t23-secret").await;
    site.canary.watch("rotated", rotated.as_bytes());
    eventually("its program is told", || (site.web1().told("tell") == told + 1).then_some(())).await;
    assert_eq!(get_lines(&site)[asked..], ["get provisioner.web1 own/forge/pw sealed"]);
    site.deposit("web1", "hub", name, b"t23-token-two").await;
    site.web1().holds("token", "t23-token-two").await;
    eventually("its program is told", || (site.web1().told("tell") == told + 2).then_some(())).await;
    assert_eq!(get_lines(&site)[asked + 1..], [format!("get provisioner.web1 {name} sealed")]);
    site.check_secrets();
}

/// The digest of a file on the disk, as reports of files with a secret have it.
fn digest_of(site: &Site, file: &str) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["node", "digest"])
        .arg(site.web1().path(file))
        .arg("--state")
        .arg(site.web1().state())
        .output()
        .unwrap();
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

/// T24: a rotation is not missed by a client that was cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t24_a_rotation_is_not_missed_by_a_client_that_was_cut_off() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t24-secret");
    let tell = json!({"on-change": {"command": [site.web1().teller("tell")]}});
    site.assign(&site.web1().module("forge").file_with("a", "${secret:pw}", tell).secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    let client = || site.web1().client.as_ref().unwrap();
    client().signal(Signal::STOP);
    site.broker.start_again();
    site.rotate("own/forge/pw");
    // The vault's word is on the broker before the client may hear it.
    let subject = "mesh-vault.secret-changed.provisioner.web1.own/forge/pw";
    site.tap.until(0, subject, |heard| (heard.subject == subject).then_some(())).await;
    site.web1().client.as_ref().unwrap().signal(Signal::CONT);
    let second = changed(&site, "a", "t24-secret").await;
    site.canary.watch("rotated", second.as_bytes());
    eventually("its program is told", || (site.web1().told("tell") == 2).then_some(())).await;
    site.check_secrets();
}

/// T24: ten rotations in a second, all over it, end with the last value and cost one restart or two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t24_ten_rotations_in_a_second_are_one_restart_or_two() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t24-secret");
    let tell = json!({"on-change": {"command": [site.web1().teller("tell")]}});
    site.assign(&site.web1().module("forge").file_with("a", "${secret:pw}", tell).secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    // A machine that is too busy to rotate ten times in a second tries again.
    for attempt in 0..20 {
        let before = site.web1().told("tell");
        let began = Instant::now();
        let mut last = String::new();
        for change in 0..10_u32 {
            last = format!("t24-value-{attempt}-{change}");
            site.canary.watch("rotated", last.as_bytes());
            let value = AdminValue(Value::new(Zeroizing::new(last.clone().into_bytes())));
            site.admin(&AdminRequest::Set { name: "own/forge/pw".to_owned(), value });
            if change < 9 {
                // Not to wait for anything: this is what happens. By a plan, so that what storing takes does not add up.
                let due = began + Duration::from_millis(90) * (change + 1);
                tokio::time::sleep_until(due.into()).await;
            }
        }
        let is_in_a_second = began.elapsed() < Duration::from_secs(1);
        site.web1().holds("a", &last).await;
        // What is reported is written and told, so after the last value nothing more comes.
        let digest = digest_of(&site, "a");
        eventually_async(true, || async {
            let report = site.report("web1", "forge").await.unwrap();
            report["files"][0]["digest"] == json!(digest)
        })
        .await;
        if is_in_a_second {
            let told = site.web1().told("tell") - before;
            assert!((1..=2).contains(&told), "told {told} times of ten changes");
            site.check_secrets();
            return;
        }
    }
    panic!("ten rotations never took less than a second");
}

/// T25: an answer that is older than what is held is not used, and said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t25_a_vault_that_was_set_back_does_not_set_files_back() {
    let Some(mut site) = Site::running(&["web1"], 60).await else { return };
    site.store("own/forge/pw", b"t25-first");
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    site.stop_vault().await;
    fs::copy(site.at("store"), site.at("store.old")).unwrap();
    site.start_vault().await;
    site.store("own/forge/pw", b"t25-second");
    site.web1().holds("a", "t25-second").await;
    site.stop_vault().await;
    fs::copy(site.at("store.old"), site.at("store")).unwrap();
    site.start_vault().await;
    // Something makes the client ask; the vault it asks knows less than the client.
    let name = "own/forge/pw";
    let word = SecretChanged { name: name.to_owned(), version: 1_000, at: WallClock::from_seconds(0) };
    let subject = key::secret_changed_subject(key::SECRET_CHANGED, "provisioner.web1", name);
    site.bus.publish(&subject, HeaderMap::new(), word.encode().into()).await;
    eventually("it is said", || site.web1().log().contains("older").then_some(())).await;
    fs::write(site.web1().path("a"), "edited").unwrap();
    site.web1().holds("a", "t25-second").await;
    site.check_secrets();
}

/// T26: a secret with a path is that file's bytes and nothing else, private whatever is said; its digest does not give it away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t26_a_secret_with_a_path_is_a_private_file_of_its_bytes() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    let bytes: Vec<u8> = [0, 255, 10, 13, 36, 123].into_iter().chain((0..=255).rev()).collect();
    site.store("own/forge/key", &bytes);
    site.store("own/open/key", &bytes);
    site.store("own/forge/pin", b"4711");
    let open = json!({"mode": "0644"});
    site.assign(&site.web1().module("open").secret_file("key", "open.key", open)).await;
    let module =
        site.web1().module("forge").secret_file("key", "tls.key", json!({})).file("pin", "${secret:pin}");
    site.assign(&module.secret("pin")).await;
    site.says("web1", "forge", "applied tls.key=written, pin=written").await;
    assert_eq!(fs::read(site.web1().path("tls.key")).unwrap(), bytes);
    for file in ["tls.key", "pin"] {
        let mode = fs::metadata(site.web1().path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{file}");
    }
    let said = site.is("web1", "open", "failed").await;
    assert!(said.ends_with("secrets[0].mode: lets others read a file that holds a secret"), "{said}");
    let report = site.report("web1", "forge").await.unwrap();
    let digest = report["files"][1]["digest"].as_str().unwrap().to_owned();
    let plain: BTreeSet<String> =
        (0..10_000).map(|pin| Digest::of(format!("{pin:04}").as_bytes()).hex()).collect();
    assert!(!plain.contains(digest.rsplit(':').next().unwrap()), "{digest}");
    site.check_secrets();
}

/// T27: what a provider's software issued is waited for, then filled wherever it is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t27_an_issued_credential_is_waited_for_and_filled() {
    let options = Options { providers: vec![("web1", "hub")], ..Options::default() };
    let Some(mut site) = Site::start(options).await else { return };
    site.start_machines().await;
    let token = site.web1().path("token");
    let entry = json!({
        "provision": "read", "provider": "hub", "credential": "issued", "name": "token", "path": token.to_str().unwrap(),
    });
    site.assign(&site.web1().module("forge").file("a", "token=${secret:token}").requires(entry)).await;
    site.says("web1", "forge", "waiting secret token absent").await;
    let name = "provision/hub/read/web1/forge";
    let stored = site.deposit("web1", "hub", name, b"t27-token").await;
    assert!(matches!(stored, PutReply::Stored { .. }), "{stored:?}");
    site.says("web1", "forge", "applied token=written, a=written").await;
    assert_eq!(site.web1().read("token").unwrap(), "t27-token");
    assert_eq!(site.web1().read("a").unwrap(), "token=t27-token");
    let asked = get_lines(&site);
    assert!(asked.iter().all(|line| line.contains(name)), "{asked:?}");
    site.check_secrets();
}

/// T28: entries that cannot be fail; both ends of a pair hold one value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t28_a_pair_is_one_value_for_both_ends_and_other_forms_are_checked() {
    let Some(mut site) = Site::running(&["web1", "web2"], 1).await else { return };
    let module = |name: &str, entry| site.web1().module(name).file(name, "x").requires(entry);
    for (name, entry, says) in [
        ("noprovider", json!({"provision": "p", "credential": "pair"}), "provider"),
        ("noform", json!({"provision": "p", "provider": "db"}), "credential"),
        ("none", json!({"provision": "p", "provider": "db", "credential": "none", "name": "x"}), "name"),
    ] {
        site.assign(&module(name, entry)).await;
        let said = site.is("web1", name, "failed").await;
        assert!(said.contains(says), "{name}: {said}");
    }
    let entry = json!({"provision": "postgres", "provider": "db", "credential": "pair", "local": "main", "name": "pw"});
    site.assign(&site.web1().module("forge").file("pw", "${secret:pw}").requires(entry)).await;
    let consumers = json!({"mode": "0600"});
    let provider = site.web2().module("db").file_with("consumers", "${consumers:postgres}", consumers);
    site.assign(&provider.provides("postgres")).await;
    site.says("web1", "forge", "applied pw=written").await;
    let value = site.web1().read("pw").unwrap();
    site.canary.watch("the pair", value.as_bytes());
    eventually("the provider has the same", || {
        let list: serde_json::Value = serde_json::from_str(&site.web2().read("consumers")?).ok()?;
        (list[0]["value"] == json!(value)).then_some(())
    })
    .await;
    assert_eq!(value.len(), 43, "32 random bytes in base64url");
    site.check_secrets();
}
