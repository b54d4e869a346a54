//! T12 to T16: archives of templates.

use std::fs;

use quartermaster_proto::mesh::plan::Digest;
use serde_json::json;

use crate::support::{Entry, Module, Site, archive, gzip_of_zeros};

/// What the store was asked for archives from this place on.
fn fetches(site: &Site, place: usize) -> usize {
    site.tap.since(place, "$JS.API.CONSUMER.CREATE.OBJ_mesh-templates.").len()
}

/// T12: no digest, or one of another kind, fails and nothing is fetched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_without_a_digest_that_is_known_nothing_is_fetched() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let module = |name: &str| site.web1().module(name).file(name, "x");
    site.assign(&module("none").digest(json!(null))).await;
    site.assign(&module("other").digest(json!("md5:0123"))).await;
    site.assign(&module("short").digest(json!("sha256:0123"))).await;
    for name in ["none", "other", "short"] {
        let said = site.is("web1", name, "failed").await;
        assert!(said.contains("provisioning.templates.digest"), "{said}");
    }
    assert_eq!(fetches(&site, 0), 0);
    assert!(site.web1().files().is_empty());
}

/// T13: another hash fails and writes nothing; the right archive is found without a new plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t13_an_archive_with_another_hash_is_not_used_and_asked_for_again() {
    let Some(site) = Site::running(&["web1"], 60).await else { return };
    let module = site.web1().module("forge").file("a", "right");
    let wrong = archive(&[Entry::file("a.tpl", b"wrong")]);
    site.bus.put_object(&module.object(), &wrong).await;
    site.assign_only(&module).await;
    let said = site.is("web1", "forge", "failed").await;
    assert!(said.contains("hash") || said.contains("digest"), "{said}");
    assert_eq!(site.web1().read("a"), None);
    site.bus.put_object(&module.object(), &module.bytes()).await;
    site.says("web1", "forge", "applied a=written").await;
    assert_eq!(site.web1().read("a").unwrap(), "right");
}

/// T14: an archive is fetched once, kept over a restart, and one that was damaged meanwhile is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t14_an_archive_is_kept_by_its_digest_and_read_back_with_care() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    let module = site.web1().module("forge").file("a", "x");
    let again: Module = site.web1().module("again").file("b", "y");
    let both = archive(&[Entry::file("a.tpl", b"x"), Entry::file("b.tpl", b"y")]);
    let (module, again) = (module.archive(both.clone()), again.archive(both.clone()));
    site.assign(&module).await;
    site.says("web1", "forge", "applied a=written").await;
    let asked = fetches(&site, 0);
    site.assign_only(&again).await;
    site.says("web1", "again", "applied b=written").await;
    assert_eq!(fetches(&site, 0), asked, "the second is served from the cache");

    // Nothing in the store any more.
    site.bus.delete_templates().await;
    site.web1_mut().restart_client();
    site.says("web1", "forge", "applied a=unchanged").await;
    let kept = site.web1().state().join("templates").join(format!("sha256-{}", Digest::of(&both).hex()));
    let mut bytes = fs::read(&kept).unwrap();
    assert_eq!(bytes, both);
    bytes[513] ^= 1;
    fs::write(&kept, &bytes).unwrap();
    site.web1_mut().restart_client();
    let said = site.is("web1", "forge", "waiting").await;
    assert!(said.starts_with("waiting templates "), "{said}");
    site.bus.make_templates().await;
    site.bus.put_object(&module.object(), &both).await;
    site.says("web1", "forge", "applied a=unchanged").await;
    assert_eq!(fs::read(&kept).unwrap(), both);
}

/// T15: what an archive may not hold refuses it as a whole; nothing is unpacked anywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t15_an_archive_that_leads_elsewhere_is_refused() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let good = || Entry::file("t15.tpl", b"x");
    let cases = [
        ("lacking", vec![Entry::file("other", b"x")], "is not in the archive"),
        ("parent", vec![good(), Entry::file("../t15", b"x")], "../t15"),
        ("absolute", vec![good(), Entry::file("/t15", b"x")], "/t15"),
        ("symlink", vec![good(), Entry::other("link", '2', "/etc/passwd")], "link"),
        ("hardlink", vec![good(), Entry::other("hard", '1', "t15.tpl")], "hard"),
        ("device", vec![good(), Entry::other("device", '3', "")], "device"),
        ("fifo", vec![good(), Entry::other("fifo", '6', "")], "fifo"),
        ("doubled", vec![good(), good()], "t15.tpl"),
        ("large", vec![good(), Entry::file("large", &vec![0; 1024 * 1024 + 1])], "large"),
    ];
    for (name, entries, says) in cases {
        let module = site.web1().module(name).file("t15", "x").archive(archive(&entries));
        site.assign(&module).await;
        let said = site.is("web1", name, "failed").await;
        assert!(said.contains(says), "{name}: {said}");
    }
    assert!(site.web1().files().is_empty());
    assert!(!site.dir().join("t15").exists() && !site.web1().dir().join("t15").exists());
}

/// T15, the rest: what unpacks to far more than it is does not make the client grow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t15_a_bomb_is_refused_without_being_unpacked_whole() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let bomb = gzip_of_zeros(1 << 30);
    assert!(bomb.len() < 8 * 1024 * 1024, "{}", bomb.len());
    site.assign(&site.web1().module("bomb").file("a", "x").archive(bomb)).await;
    site.is("web1", "bomb", "failed").await;
    let status =
        fs::read_to_string(format!("/proc/{}/status", site.web1().client.as_ref().unwrap().pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 512 * 1024, "the client grew to {peak} KiB");
}

/// T16, without TLS: an object and a file are alike, plain HTTP is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t16_an_archive_comes_from_the_store_or_a_file_and_never_over_plain_http() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let object = site.web1().module("object").file("object", "from the store");
    site.assign(&object).await;
    let file = site.web1().module("file").file("file", "from a file");
    let path = site.at("templates.tar");
    fs::write(&path, file.bytes()).unwrap();
    site.assign_only(&file.reference(&format!("file:{}", path.display()))).await;
    let absent = site.web1().module("absent").file("absent", "x");
    site.assign_only(&absent).await;
    let plain = site.web1().module("plain").file("plain", "x").reference("http://127.0.0.1:1/t.tar");
    site.assign_only(&plain).await;
    site.says("web1", "object", "applied object=written").await;
    site.says("web1", "file", "applied file=written").await;
    let missing = format!("waiting templates nats-object:mesh-templates/{} absent", absent.object());
    site.says("web1", "absent", &missing).await;
    let said = site.is("web1", "plain", "failed").await;
    assert!(said.contains("provisioning.templates.reference"), "{said}");
}
