//! T50, T51: the bus is away for a while, and a bucket is lost.

use std::fs;
use std::time::Duration;

use quartermaster_proto::mesh::key;
use serde_json::json;

use crate::support::{Site, eventually, never};

/// What the broker knows of consumers that deliver to the client.
async fn consumers(site: &Site) -> usize {
    let mut found = 0;
    for stream in [key::ASSIGNMENTS, key::REGISTRY, key::CONFIG, key::COLLECT] {
        let subject = format!("$JS.API.CONSUMER.NAMES.KV_{stream}");
        let reply = site.bus.client.request(subject, "".into()).await.unwrap();
        let names: serde_json::Value = serde_json::from_slice(&reply.payload).unwrap();
        found += names["consumers"].as_array().map_or(0, Vec::len);
    }
    found
}

/// T50: files are put back while the broker is away; what changed meanwhile is filled in after its return, and no consumer is left over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t50_files_are_kept_while_the_broker_is_away_and_filled_anew_when_it_is_back() {
    let Some(mut site) = Site::running(&["web1"], 60).await else { return };
    site.config("web1", "forge", "a", "1").await;
    site.store("own/forge/pw", b"t50-secret");
    site.assign(&site.web1().module("forge").file("a", "${config:a} ${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    let before = consumers(&site).await;
    site.broker.kill();
    for round in 0..3 {
        fs::write(site.web1().path("a"), format!("edited {round}")).unwrap();
        site.web1().holds("a", "1 t50-secret").await;
    }
    // The client is not let in before the new value is stored.
    let client = site.web1().client.as_ref().unwrap();
    client.signal(rustix::process::Signal::STOP);
    site.broker.start_again();
    site.config("web1", "forge", "a", "2").await;
    site.web1().client.as_ref().unwrap().signal(rustix::process::Signal::CONT);
    site.web1().holds("a", "2 t50-secret").await;
    for _ in 0..3 {
        site.broker.start_again();
        let place = site.tap.here();
        site.tap
            .until(place, "the client is back", |heard| {
                (heard.subject == "prov.changed.web1.forge").then_some(())
            })
            .await;
    }
    site.config("web1", "forge", "a", "3").await;
    site.web1().holds("a", "3 t50-secret").await;
    // Whatever the broker had for the connections before is gone with them, at the latest when it is not used for a while.
    let now = consumers(&site).await;
    assert!(now <= before * 4, "{before} consumers before, {now} after four returns");
    let requests = site.tap.since(0, "mesh-vault.get.").len();
    assert_eq!(requests, 1, "what is held is not asked for again");
    site.check_secrets();
}

/// T51: a bucket that was deleted and made anew, empty, takes nothing away for ten minutes; entries that come back were never gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t51_a_lost_mirror_is_no_removal() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    let tell = json!({"on-change": {"command": [site.web1().teller("tell")]}});
    let module = site.web1().module("forge").file_with("a", "x", tell).item("c", "x");
    site.assign(&module).await;
    site.says("web1", "forge", "applied a=written").await;
    let (told, place) = (site.web1().told("tell"), site.tap.here());
    site.bus.delete_bucket(key::ASSIGNMENTS).await;
    site.bus.make_bucket(key::ASSIGNMENTS).await;
    eventually("it is said", || site.web1().log().contains("lost or set back").then_some(())).await;
    never(Duration::from_secs(2), || site.web1().read("a").is_none().then(|| "the file is gone".to_owned()))
        .await;
    site.web1_mut().restart_client();
    eventually("it is said again", || {
        (site.web1().log().matches("lost or set back").count() > 1).then_some(())
    })
    .await;
    assert!(
        !site.needs("web1", "forge").await.is_empty()
            || site.bus.get(key::APPLIED, "web1.forge").await.is_some()
    );
    assert!(site.bus.get(key::COLLECT, "web1.c.forge").await.is_some());
    site.assign(&module).await;
    site.is("web1", "forge", "applied").await;
    assert!(!site.published(place, "web1", "forge").contains(&"removed".to_owned()));
    assert_eq!(site.web1().told("tell"), told);
}
