//! T41, T42, T44, T48, T49, C52: files put back, kept, left alone, and taken away.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use quartermaster_proto::mesh::key;
use serde_json::json;

use crate::support::{Site, eventually, eventually_async, never};

/// T41: an owned file that was edited, opened, given away or deleted is put back within its minute, its program told once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t41_an_owned_file_is_put_back() {
    let Some(site) = Site::running(&["web1"], 60).await else { return };
    // Without an owner in the plan a file keeps the one it is given.
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (user, group) = (user.to_string(), group.to_string());
    let more = json!({"mode": "0640", "owner": user, "group": group, "on-change": {"command": [site.web1().teller("tell")]}});
    site.assign(&site.web1().module("forge").file_with("a", "as it should be", more)).await;
    site.says("web1", "forge", "applied a=written").await;
    let path = site.web1().path("a");
    let owner = fs::metadata(&path).unwrap().uid();
    let is_as_it_was = || {
        let found = fs::metadata(&path).ok()?;
        let is_same = found.permissions().mode() & 0o7777 == 0o640
            && found.uid() == owner
            && fs::read_to_string(&path).is_ok_and(|text| text == "as it should be");
        is_same.then_some(())
    };
    let spoils: [(&str, &dyn Fn()); 4] = [
        ("edited", &|| fs::write(&path, "edited").unwrap()),
        ("opened", &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap()),
        ("given away", &|| {
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(&path, Some(1), Some(1)).unwrap();
            } else {
                fs::write(&path, "given away").unwrap();
            }
        }),
        ("deleted", &|| fs::remove_file(&path).unwrap()),
    ];
    let place = site.tap.here();
    for (what, spoil) in spoils {
        let told = site.web1().told("tell");
        spoil();
        eventually(&format!("it is back after it was {what}"), is_as_it_was).await;
        eventually("its program is told", || (site.web1().told("tell") > told).then_some(())).await;
        assert_eq!(site.web1().told("tell"), told + 1, "{what}");
    }
    // Said once: every one of them says the same.
    assert_eq!(site.published(place, "web1", "forge"), ["applied a=restored"]);
}

/// T42: a seed is written once and then left to whoever edits it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t42_a_seed_is_written_once() {
    let Some(site) = Site::running(&["web1"], 60).await else { return };
    let seed = json!({"owner-at-runtime": "seed"});
    let module =
        |text: &str| site.web1().module("forge").file_with("a", text, seed.clone()).file("mark", text);
    site.assign(&module("one")).await;
    site.says("web1", "forge", "applied a=seeded, mark=written").await;
    fs::write(site.web1().path("a"), "edited by hand").unwrap();
    site.assign(&module("two")).await;
    site.says("web1", "forge", "applied a=kept, mark=written").await;
    assert_eq!(site.web1().read("a").unwrap(), "edited by hand");
}

/// T44, C52: twenty minutes without a change leave everything as it is: same file, nobody told, nothing said or stored; another
/// order of the same value is no change of the file either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t44_c52_twenty_minutes_without_a_change_do_nothing() {
    let Some(mut site) = Site::running(&["web1"], 240).await else { return };
    site.store("own/forge/pw", b"t44-secret");
    site.config("web1", "forge", "a", "{\"x\":1,\"y\":2}").await;
    let tell = json!({"on-change": {"command": [site.web1().teller("tell")]}});
    let module = site
        .web1()
        .module("forge")
        .file_with("a", "fixed ${secret:pw} ${config:b}", tell.clone())
        .file_with("m", "[s]\nk=1\n", json!({"owner-at-runtime": "managed", "managed": {"format": "ini"}}))
        .file_with("s", "seed", json!({"owner-at-runtime": "seed"}))
        .secret("pw");
    site.config("web1", "forge", "b", "1").await;
    site.assign(&module).await;
    site.is("web1", "forge", "applied").await;
    let look = || {
        ["a", "m", "s"].map(|name| {
            let found = fs::metadata(site.web1().path(name)).unwrap();
            (found.ino(), found.mtime(), found.mtime_nsec())
        })
    };
    // The second minute may say `unchanged` once, the first of its run.
    let writes = || site.web1().engine.as_ref().unwrap().log().matches("write").count();
    let (files, told, place) = (look(), site.web1().told("tell"), site.tap.here());
    let _ = writes();
    never(Duration::from_secs(5), || (look() != files).then(|| "a file was touched".to_owned())).await;
    assert_eq!(site.web1().told("tell"), told);
    assert_eq!(site.published(place, "web1", "forge"), Vec::<String>::new());
    for prefix in ["$KV.", "mesh-vault."] {
        assert!(site.tap.since(place, prefix).is_empty(), "{prefix}");
    }
    // The same value in another order of its bytes, where the file does not show it.
    site.config("web1", "forge", "b", "1").await;
    never(Duration::from_secs(1), || (look() != files).then(|| "a file was touched".to_owned())).await;
    assert_eq!(site.web1().told("tell"), told);
    // And it is still at work.
    fs::write(site.web1().path("a"), "edited").unwrap();
    site.web1().holds("a", "fixed t44-secret 1").await;
    site.check_secrets();
}

/// T48: what is taken off leaves nothing, also when the engine or the client was away meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t48_a_module_that_is_taken_off_leaves_nothing() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/first/pw", b"t48-secret");
    let module = |site: &Site, name: &str| site.web1().module(name).file(name, "${config:a}").item("c", "x");
    for name in ["first", "second", "third"] {
        site.config("web1", name, "a", "1").await;
        site.assign(&module(&site, name)).await;
        site.says("web1", name, &format!("applied {name}=written")).await;
    }
    let place = site.tap.here();
    site.unassign("web1", "first").await;
    gone(&site, place, "first").await;

    site.web1_mut().engine = None;
    let place = site.tap.here();
    site.unassign("web1", "second").await;
    eventually_async(Vec::<String>::new(), || site.needs("web1", "second")).await;
    assert!(site.web1().read("second").is_some(), "nobody is there to take it away");
    site.machines[0].start_engine().await;
    gone(&site, place, "second").await;

    site.web1_mut().client = None;
    let place = site.tap.here();
    site.unassign("web1", "third").await;
    eventually("the engine takes the file", || site.web1().read("third").is_none().then_some(())).await;
    assert!(!site.needs("web1", "third").await.is_empty());
    site.web1_mut().start_client();
    gone(&site, place, "third").await;
    site.check_secrets();
}

/// Needs, items, report and file of a module are gone, and `removed` was heard.
async fn gone(site: &Site, place: usize, module: &str) {
    site.tap
        .until(place, "removed", |heard| {
            let is_it =
                heard.subject == format!("prov.applied.web1.{module}") && heard.json()["state"] == "removed";
            is_it.then_some(())
        })
        .await;
    eventually_async(Vec::<String>::new(), || site.needs("web1", module)).await;
    let (item, report) = (format!("web1.c.{module}"), format!("web1.{module}"));
    eventually_async(None, || site.bus.get(key::COLLECT, &item)).await;
    eventually_async(None, || site.bus.get(key::APPLIED, &report)).await;
    eventually("its file is gone", || site.web1().read(module).is_none().then_some(())).await;
}

/// T49: a plan that drops files: an owned one goes, an edited seed stays, our part of a managed one goes and the rest stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t49_a_file_that_the_plan_drops_goes_and_what_is_not_ours_stays() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    fs::write(site.web1().path("managed"), "theirs\n").unwrap();
    let block = json!({"owner-at-runtime": "managed", "managed": {"format": "block", "comment": "#"}});
    let seed = json!({"owner-at-runtime": "seed"});
    let all = site
        .web1()
        .module("forge")
        .file("stays", "x")
        .file("sub/folder/owned", "x")
        .file_with("seed", "x", seed.clone())
        .file_with("edited", "x", seed)
        .file_with("managed", "ours\n", block);
    site.assign(&all).await;
    site.is("web1", "forge", "applied").await;
    let managed = site.web1().read("managed").unwrap();
    assert!(managed.starts_with("theirs\n") && managed.contains("ours\n"), "{managed}");
    fs::write(site.web1().path("edited"), "by hand").unwrap();
    site.assign(&site.web1().module("forge").file("stays", "x")).await;
    let expected = [("edited", "by hand"), ("managed", "theirs\n"), ("stays", "x")];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    eventually("the rest is gone", || site.web1().files().into_iter().eq(expected.clone()).then_some(()))
        .await;
    eventually("folders of ours go when they are empty", || {
        (!site.web1().path("sub").exists()).then_some(())
    })
    .await;
}
