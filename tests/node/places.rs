//! C37, C48, C49, C54, C74 end to end: modes that are kept, and places that cannot be written.
//!
//! Mounts are made for one engine alone, in a mount namespace of its own; where that is not allowed, the test says so and passes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::support::{Options, Site, eventually_async};

/// True when a process may have mounts of its own here; otherwise a line says so.
fn can_mount() -> bool {
    let tried = Command::new("unshare").args(["-m", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    let can = tried.is_ok_and(|run| run.status.success());
    if !can {
        assert!(
            std::env::var("QM_REQUIRE_ALL").as_deref() != Ok("1"),
            "QM_REQUIRE_ALL=1 wants mounts of one's own"
        );
        eprintln!("SKIPPED: no process may have mounts of its own here");
    }
    can
}

fn mode(site: &Site, name: &str) -> u32 {
    fs::metadata(site.web1().path(name)).unwrap().permissions().mode() & 0o7777
}

/// C48: modes of files that are there are kept or as declared, whatever the mask, and never wider.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c48_modes_are_kept_or_as_declared_whatever_the_mask() {
    for mask in ["000", "077"] {
        let Some(mut site) = Site::start(Options::default()).await else { return };
        site.web1_mut().mask = Some(mask);
        let set = |name: &str, mode: u32| {
            let path = site.web1().path(name);
            fs::write(&path, "before").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set("kept-0440", 0o440);
        set("kept-0600", 0o600);
        set("declared", 0o666);
        set("secret", 0o644);
        fs::create_dir(site.web1().path("setgid")).unwrap();
        fs::set_permissions(site.web1().path("setgid"), fs::Permissions::from_mode(0o2755)).unwrap();
        site.store("own/forge/pw", b"c48-secret");
        site.start_machines().await;
        let module = site
            .web1()
            .module("forge")
            .file("kept-0440", "x")
            .file("kept-0600", "x")
            .file_with("declared", "x", json!({"mode": "0640"}))
            .file("secret", "${secret:pw}")
            .file("new", "x")
            .file("setgid/new", "x")
            .secret("pw");
        site.assign(&module).await;
        site.is("web1", "forge", "applied").await;
        for (name, expected) in [
            ("kept-0440", 0o440),
            ("kept-0600", 0o600),
            ("declared", 0o640),
            ("secret", 0o600),
            ("new", 0o644),
            ("setgid/new", 0o644),
            ("setgid", 0o2755),
        ] {
            let found = mode(&site, name);
            assert_eq!(found, expected, "{name} under {mask}: {found:o}");
        }
        site.check_secrets();
    }
}

/// C37, C49, C54, C74: a folder that is read-only, a file that is a mount of its own, a disk that is full: the report names the
/// place, old content is whole, and nothing of the module is half applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_c49_c54_c74_places_that_cannot_be_written_are_named_and_nothing_is_half() {
    if !can_mount() {
        return;
    }
    let Some(mut site) = Site::start(Options::default()).await else { return };
    let root = site.web1().root().to_owned();
    for folder in ["tls", "full"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    for name in ["tls/main.conf", "mounted", "other"] {
        fs::write(root.join(name), "before").unwrap();
    }
    let script = [
        format!("mount --bind {0} {0} && mount -o remount,ro,bind {0}", root.join("tls").display()),
        format!("mount --bind {} {}", root.join("other").display(), root.join("mounted").display()),
        format!("mount -t tmpfs -o size=64k none {0} && printf old > {0}/disk", root.join("full").display()),
    ];
    site.web1_mut().engine_in = Some(script.join(" && "));
    site.store("own/tls/key", b"c37-secret-key");
    site.start_machines().await;
    let large = "x".repeat(200_000);
    let tls = site.web1().module("tls").secret_file("key", "tls/key.pem", json!({})).file("tls.conf", "main");
    site.assign(&tls).await;
    site.assign(&site.web1().module("mounted").file("mounted", "new")).await;
    site.assign(&site.web1().module("disk").file("full/disk", &large).file("after-the-disk", "x")).await;
    site.assign(&site.web1().module("good").file("good", "fine")).await;
    site.says("web1", "good", "applied good=written").await;
    for (module, path, code) in
        [("tls", "tls/key.pem", ""), ("mounted", "mounted", "io"), ("disk", "full/disk", "no-space")]
    {
        let said = site.is("web1", module, "failed").await;
        assert!(said.contains(path) && said.contains(code), "{module}: {said}");
        let log = site.web1().log();
        assert!(log.contains(&root.join(path).display().to_string()), "the log names {path}");
    }
    // The main file is not there without what it names, and what was there is whole.
    for absent in ["tls.conf", "after-the-disk"] {
        assert_eq!(site.web1().read(absent), None, "{absent}");
    }
    let engine = site.web1().engine.as_ref().unwrap().pid();
    let seen_by_it =
        |name: &str| fs::read_to_string(format!("/proc/{engine}/root{}", root.join(name).display()));
    assert_eq!(seen_by_it("mounted").unwrap(), "before");
    assert_eq!(seen_by_it("full/disk").unwrap(), "old");
    let left = fs::read_dir(format!("/proc/{engine}/root{}/full", root.display())).unwrap().count();
    assert_eq!(left, 1, "nothing unfinished is left over");
    // Once there is room again the next minute writes it; here a plan that fits does.
    site.assign(&site.web1().module("disk").file("full/disk", "fits")).await;
    site.says("web1", "disk", "applied full/disk=written").await;
    eventually_async(true, || async { seen_by_it("full/disk").is_ok_and(|text| text == "fits") }).await;
    site.check_secrets();
}
