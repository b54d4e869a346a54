//! T17 to T22, C55: own secrets asked for, sealed, waited for, refused; and nowhere but in their files.

use std::fs;
use std::time::Duration;

use futures::StreamExt as _;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::vault::{GetReply, GetRequest};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Options, Site, eventually, eventually_async, never};

/// How often the audit says that a client got this.
fn gets(site: &Site, outcome: &str) -> usize {
    site.audit()
        .iter()
        .filter(|line| line.starts_with("get provisioner.web1 ") && line.ends_with(outcome))
        .count()
}

/// T17: one secret in five files over three minutes and a reconnect is asked for once, and once more by the next life.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t17_a_secret_is_asked_for_once_in_a_life() {
    let Some(mut site) = Site::running(&["web1"], 60).await else { return };
    site.store("own/forge/pw", b"t17-secret");
    let mut module = site.web1().module("forge").secret("pw");
    for name in ["a", "b", "c", "d", "e"] {
        module = module.file(name, "${secret:pw}");
    }
    site.assign(&module).await;
    site.is("web1", "forge", "applied").await;
    site.broker.start_again();
    // Three minutes of its clock, seen by what is put back in them.
    for round in 0..3 {
        fs::write(site.web1().path("e"), format!("edited {round}")).unwrap();
        site.web1().holds("e", "t17-secret").await;
    }
    assert_eq!(
        site.audit().into_iter().filter(|line| line.starts_with("get ")).collect::<Vec<_>>(),
        ["get provisioner.web1 own/forge/pw sealed"]
    );
    site.web1_mut().restart_client();
    eventually_async(true, || async {
        site.said("web1", "forge").await.contains("a=unchanged") && gets(&site, "sealed") == 2
    })
    .await;
    site.check_secrets();
}

/// T18: only boxes cross the bus, each life has another key, and a box of an earlier one is not opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t18_only_boxes_cross_the_bus_and_none_is_good_for_another_life() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t18-secret");
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    let tap = site.tap.clone();
    let asked = || tap.since(0, "mesh-vault.get.provisioner.web1");
    let first = GetRequest::read(&asked()[0].body).unwrap();
    let inbox = asked()[0].reply.clone().unwrap();
    let sealed =
        site.tap.until(0, "the box", |heard| (heard.subject == inbox).then(|| heard.body.clone())).await;
    assert!(matches!(GetReply::read(&sealed), Ok(GetReply::Sealed { .. })));

    // The next life is answered by somebody who plays the old box again.
    site.kill_vault();
    let mut questions = site.bus.client.subscribe("mesh-vault.get.>").await.unwrap();
    let client = site.bus.client.clone();
    client.flush().await.unwrap();
    let replay = tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            client.publish(question.reply.unwrap(), sealed.clone()).await.unwrap();
        }
    });
    site.web1_mut().restart_client();
    site.says("web1", "forge", "waiting secret pw no-answer").await;
    replay.abort();
    let requests = asked();
    let last = GetRequest::read(&requests.last().unwrap().body).unwrap();
    assert_ne!(first.key, last.key);
    assert_eq!(site.web1().read("a").unwrap(), "t18-secret", "the file stays as it is");
    site.start_vault().await;
    site.says("web1", "forge", "applied a=unchanged").await;
    site.check_secrets();
}

/// T19, C55: a secret through every state at the lowest level of logging, to an abort and beyond, is only in its file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t19_c55_a_secret_is_nowhere_but_in_its_file() {
    let Some(mut site) = Site::start(Options { pace: 60, ..Options::default() }).await else { return };
    site.web1_mut().environment.push(("RUST_LOG".to_owned(), "trace".to_owned()));
    site.store("own/forge/pw", b"canary-t19-\"quoted\"\n-secret");
    let module = |site: &Site, text: &str| {
        let command = json!({"on-change": {"command": [site.web1().teller("tell")]}, "filters": true});
        site.web1().module("forge").file_with("a", text, command).secret("pw").secret_file(
            "pw2",
            "pw2",
            json!({}),
        )
    };
    site.store("own/forge/pw2", b"canary-t19-second");
    site.web1_mut().start_client();
    site.assign(&module(&site, "${secret:pw}")).await;
    site.says("web1", "forge", "waiting engine  no-answer").await;
    site.machines[0].start_engine().await;
    site.is("web1", "forge", "applied").await;
    // A value that a filter refuses, a program that fails, a plan that cannot be, one more good.
    site.assign(&module(&site, "${secret:pw|line}")).await;
    let said = site.is("web1", "forge", "failed").await;
    assert!(said.contains("secret pw"), "{said}");
    site.web1().have_fail("tell", true);
    site.assign(&module(&site, "again ${secret:pw}")).await;
    eventually_async(true, || async { site.said("web1", "forge").await.contains("exit") }).await;
    site.web1().have_fail("tell", false);
    site.is("web1", "forge", "applied").await;
    site.check_secrets();
    let client = site.web1_mut().client.as_mut().unwrap();
    client.signal(Signal::ABORT);
    client.ended().await;
    site.check_secrets();
    site.web1_mut().restart_client();
    site.unassign("web1", "forge").await;
    eventually("the files are gone", || site.web1().files().is_empty().then_some(())).await;
    site.check_secrets();
}

/// T20: a vault that is away, then up without the secret, then has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t20_a_vault_that_is_away_and_a_secret_that_is_not_stored_are_waited_for() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.kill_vault();
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "waiting secret pw no-answer").await;
    site.start_vault().await;
    site.says("web1", "forge", "waiting secret pw absent").await;
    // It has asked on its own for a while, so that its next try would come later than two seconds from now.
    eventually("it has asked three times", || (gets(&site, "absent") >= 3).then_some(())).await;
    let place = site.tap.here();
    site.store("own/forge/pw", b"t20-secret");
    site.says("web1", "forge", "applied a=written").await;
    // It was asked for at the vault's word and for no other reason, so it took no longer than that.
    let mut heard: Vec<String> =
        site.tap.since(place, "mesh-vault.").into_iter().map(|heard| heard.subject).collect();
    // The word is heard as it is said and as the client's consumer gets it.
    heard.dedup();
    let word = "mesh-vault.secret-changed.provisioner.web1.own/forge/pw";
    assert_eq!(heard, [word, "mesh-vault.get.provisioner.web1"]);
    site.check_secrets();
}

/// T21: a vault that goes away takes nothing with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t21_a_vault_that_goes_away_takes_nothing_with_it() {
    let Some(mut site) = Site::running(&["web1"], 60).await else { return };
    site.store("own/forge/pw", b"t21-secret");
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    site.kill_vault();
    fs::write(site.web1().path("a"), "edited").unwrap();
    site.web1().holds("a", "t21-secret").await;
    site.says("web1", "forge", "applied a=restored").await;
    site.check_secrets();
}

/// T22: a refusal fails the module with the vault's words, and is asked again after ten minutes, no sooner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t22_a_refusal_is_asked_again_after_ten_minutes() {
    let rules = Some("deny provisioner.web1 own/forge/*\n");
    let Some(mut site) = Site::start(Options { pace: 40, rules, ..Options::default() }).await else {
        return;
    };
    site.start_machines().await;
    site.store("own/forge/pw", b"t22-secret");
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    let said = site.is("web1", "forge", "failed").await;
    assert!(said.starts_with("failed secret pw: the vault refused: "), "{said}");
    assert!(site.report("web1", "forge").await.unwrap()["retry-at"].is_string());
    fs::write(site.at("rules"), "").unwrap();
    site.stop_vault().await;
    site.start_vault().await;
    // A quarter of a minute for the ten minutes; in some of it nothing may happen.
    never(Duration::from_secs(2), || (gets(&site, "sealed") > 0).then(|| "it was asked again".to_owned()))
        .await;
    site.says("web1", "forge", "applied a=written").await;
    assert_eq!((gets(&site, "refused"), gets(&site, "sealed")), (1, 1), "{:?}", site.audit());
    assert_eq!(site.tap.since(0, &format!("{}.", key::VAULT_GET)).len(), 2);
    site.check_secrets();
}
