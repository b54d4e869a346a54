//! T29 to T33: items and collections.

use quartermaster_proto::mesh::key;
use serde_json::json;

use crate::support::{Site, eventually, eventually_async};

/// The items of a machine: key and text.
async fn items(site: &Site) -> Vec<(String, String)> {
    let found = site.bus.entries(key::COLLECT, "web1.").await;
    let text = |value: &str| serde_json::from_str::<serde_json::Value>(value).unwrap()["text"].clone();
    found.iter().map(|(key, value)| (key.clone(), text(value).as_str().unwrap().to_owned())).collect()
}

/// T29: an item is recorded under its escaped key, follows its values, and goes with its plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t29_an_item_is_recorded_follows_its_values_and_goes_with_its_plan() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    site.config("web1", "forge", "home", "\"/one\"").await;
    let module = site.web1().module("forge").file("a", "${config:missing}");
    site.assign(&module.clone().item("shell:zsh:normal", "export FORGE=${config:home}\n")).await;
    let key = "web1.shell=3Azsh=3Anormal.forge".to_owned();
    // Whatever the module's files wait for.
    let one = vec![(key.clone(), "export FORGE=/one\n".to_owned())];
    eventually_async(one, || items(&site)).await;
    site.says("web1", "forge", "waiting config missing no-entry").await;
    let stored: serde_json::Value =
        serde_json::from_slice(&site.bus.get(key::COLLECT, &key).await.unwrap()).unwrap();
    let expected = json!({
        "node": "web1", "collection": "shell:zsh:normal", "contributor": "forge", "text": "export FORGE=/one\n",
    });
    assert_eq!(stored, expected);
    site.config("web1", "forge", "home", "\"/two\"").await;
    eventually_async(vec![(key, "export FORGE=/two\n".to_owned())], || items(&site)).await;
    site.assign(&module).await;
    eventually_async(vec![], || items(&site)).await;
}

/// T30: an item that names a secret, consumers or a collection fails its module, and nothing of it is recorded or written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t30_an_item_holds_no_secret_no_consumers_and_no_collection() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/secret/pw", b"t30-secret");
    for (name, text) in [
        ("secret", "${secret:pw}"),
        ("consumers", "${consumers:p}"),
        ("collected", "${collected:c}"),
        ("old", "${shell:c}"),
    ] {
        let module = site
            .web1()
            .module(name)
            .file(name, "x")
            .item("c", "fine")
            .item("d", text)
            .secret("pw")
            .provides("p")
            .collects("c", "#");
        site.assign(&module).await;
        let said = site.is("web1", name, "failed").await;
        assert!(said.contains("item-2.tpl`, line 1: "), "{said}");
    }
    assert_eq!(items(&site).await, vec![]);
    assert!(site.web1().files().is_empty());
    site.check_secrets();
}

/// T31: contributors in the order of their names, each introduced in the collection's comment and ended by a line feed; the old
/// names are the same collections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t31_a_collection_is_filled_in_the_order_of_its_contributors() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let all = ["shell:zsh:normal", "environment:posix", "contribution:node-hotkeys:trigger"];
    for (name, text) in [("zeta", "z=1\n"), ("alpha", "a=1"), ("b.eta", "b=1\nb=2\n")] {
        let module =
            all.iter().fold(site.web1().module(name), |module, collection| module.item(collection, text));
        site.assign(&module).await;
    }
    let expected = "# alpha\na=1\n# b.eta\nb=1\nb=2\n# zeta\nz=1\n";
    let collector = all.iter().fold(site.web1().module("collector"), |module, collection| {
        let old = collection.replacen("collected:", "", 1);
        module
            .file(&collection.replace(':', "-"), &format!("${{collected:{collection}}}|${{{old}}}"))
            .collects(collection, "#")
    });
    site.assign(&collector).await;
    for collection in all {
        site.web1().holds(&collection.replace(':', "-"), &format!("{expected}|{expected}")).await;
    }
}

/// T32: an unnamed collection fails; an empty one is filled empty, and again whenever an item comes or goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t32_a_collector_follows_what_is_recorded() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    for (name, text) in [("unnamed", "${collected:c}"), ("old", "${shell:c}")] {
        site.assign(&site.web1().module(name).file(name, text)).await;
        let said = site.is("web1", name, "failed").await;
        assert!(said.contains("the plan does not collect this collection"), "{said}");
    }
    site.assign(&site.web1().module("collector").file("c", "<${collected:c}>").collects("c", "#")).await;
    site.web1().holds("c", "<>").await;
    let item = json!({"node": "web1", "collection": "c", "contributor": "hand", "text": "by hand\n"});
    site.bus.put(key::COLLECT, "web1.c.hand", item.to_string()).await;
    site.web1().holds("c", "<# hand\nby hand\n>").await;
    site.assign(&site.web1().module("forge").item("c", "of forge")).await;
    site.web1().holds("c", "<# forge\nof forge\n# hand\nby hand\n>").await;
    site.unassign("web1", "forge").await;
    site.web1().holds("c", "<# hand\nby hand\n>").await;
}

/// T33, C25: a bucket that is not there, or not read whole, is not an empty one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t33_c25_a_collection_is_not_empty_before_its_bucket_is_known() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.assign(&site.web1().module("forge").item("c", "of forge")).await;
    site.assign(&site.web1().module("collector").file("c", "<${collected:c}>").collects("c", "#")).await;
    site.web1().holds("c", "<# forge\nof forge\n>").await;
    // What it saw of the bucket outlives it once it is on the disk.
    let seen = site.web1().state().join("seen.json");
    eventually("it remembers the bucket", || {
        std::fs::read_to_string(&seen).ok()?.contains(key::COLLECT).then_some(())
    })
    .await;
    let root = site.web1().root().to_owned();
    let watched = std::thread::spawn(move || {
        // Every state of the file, while the client is started again and again without the bucket.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(4);
        let mut seen = std::collections::BTreeSet::new();
        while std::time::Instant::now() < end {
            seen.insert(std::fs::read_to_string(root.join("c")).unwrap_or_default());
        }
        seen
    });
    site.web1_mut().client = None;
    site.bus.delete_bucket(key::COLLECT).await;
    site.web1_mut().start_client();
    site.says("web1", "collector", "waiting collected c no-bucket").await;
    site.bus.make_bucket(key::COLLECT).await;
    // Whatever is seen first of the new bucket: the item that is recorded anew, or that the bucket is not the one of before.
    eventually_async(true, || async {
        let is_held = site.web1().log().contains("the bucket of items looks lost or set back");
        is_held || site.said("web1", "collector").await.starts_with("applied")
    })
    .await;
    let seen = watched.join().unwrap();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["<# forge\nof forge\n>"]);
}
