//! T58: what a stolen client account cannot do to other machines.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::signature::{HEADER, sign};

use crate::support::{Site, eventually, never};

/// T58: misdirected answers, and assignments that are not signed, signed for another key or older, take no effect, and are said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t58_a_stolen_account_changes_nothing_on_another_machine() {
    let Some(mut site) = Site::running(&["web1", "web2"], 1).await else { return };
    site.store("own/forge/pw", b"t58-secret");
    site.config("web2", "forge", "a", "\"right\"").await;
    let old = site.web2().module("forge").file("old", "${config:a}");
    site.assign(&old).await;
    site.says("web2", "forge", "applied old=written").await;
    let old_value = site.bus.get(key::ASSIGNMENTS, "web2.forge").await.unwrap();
    let module = site.web2().module("forge").file("a", "${config:a}");
    site.assign(&module).await;
    site.says("web2", "forge", "applied a=written").await;
    let right = site.bus.get(key::ASSIGNMENTS, "web2.forge").await.unwrap();

    // Its serial was remembered before anything was done for it, so a client that is killed now lets no older one in later.
    let seen = std::fs::read(site.web2().state().join("seen.json")).unwrap();
    let serial = |text: &[u8], at: &str| {
        let json: serde_json::Value = serde_json::from_slice(text).unwrap();
        json.pointer(at).and_then(serde_json::Value::as_u64).unwrap()
    };
    assert_eq!(serial(&seen, "/serials/web2.forge"), serial(&right, "/serial"));

    // The thief of web1's account asks the broker for answers that are to land elsewhere.
    let thief = site.broker.connect(&site.web1().account()).await;
    for elsewhere in [
        key::kv_subject(key::ASSIGNMENTS, "web2.forge"),
        key::kv_subject(key::CONFIG, "web2.forge.a"),
        key::kv_subject(key::APPLIED, "web2.forge"),
    ] {
        let own = key::kv_subject(key::NEEDS, "web1.x.config.a");
        thief.publish_with_reply(own, elsewhere, Bytes::from_static(b"x")).await.unwrap();
    }
    thief.flush().await.unwrap();
    site.tap
        .until(0, "the broker's answer lands as a value", |heard| {
            (heard.subject == key::kv_subject(key::CONFIG, "web2.forge.a")
                && heard.text().contains("\"seq\""))
            .then_some(())
        })
        .await;

    // Somebody who got further: assignments past the broker's permissions, but not signed for this.
    let subject = key::kv_subject(key::ASSIGNMENTS, "web2.forge");
    let forged = String::from_utf8(right.to_vec()).unwrap().replace("a.tpl", "b.tpl");
    let mut copied = HeaderMap::new();
    let other = key::kv_subject(key::ASSIGNMENTS, "web1.forge");
    copied.insert(HEADER, sign(&[7; 32], &other, forged.as_bytes()).as_str());
    let mut stranger = HeaderMap::new();
    stranger.insert(HEADER, sign(&[8; 32], &subject, forged.as_bytes()).as_str());
    let mut older = HeaderMap::new();
    older.insert(HEADER, sign(&[7; 32], &subject, &old_value).as_str());
    let place = site.tap.here();
    for (headers, body, says) in [
        (HeaderMap::new(), Bytes::from(forged.clone()), "it is not signed"),
        (copied, Bytes::from(forged.clone()), "its signature does not hold"),
        (stranger, Bytes::from(forged), "it is signed with a key that is not pinned"),
        (older, old_value, "serial"),
    ] {
        site.bus.publish(&subject, headers, body).await;
        // The bucket keeps the last of them alone, so each is waited for.
        eventually(&format!("the log says: {says}"), || site.web2().log().contains(says).then_some(())).await;
    }
    never(Duration::from_secs(2), || {
        let files = site.web2().files().into_iter().collect::<Vec<_>>();
        (files != [("a".to_owned(), "right".to_owned())]).then(|| format!("{files:?}"))
    })
    .await;
    assert_eq!(site.published(place, "web2", "forge"), Vec::<String>::new());
    // A later life is not taken in either; what the owner writes, and the controller signs, is taken again.
    site.machines[1].restart_client();
    site.config("web2", "forge", "a", "\"right\"").await;
    site.assign(&module.file("b", "more")).await;
    site.says("web2", "forge", "applied a=unchanged, b=written").await;
    site.check_secrets();
}
