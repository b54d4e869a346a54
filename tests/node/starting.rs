//! T59, C57, C74: how a client starts, and how it says that it cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Options, Program, Site, eventually, still_there};

/// Starts a client with these arguments in place of its own, and answers how it ended and what it said.
async fn try_client(site: &Site, change: impl FnOnce(&mut Vec<String>)) -> (Option<i32>, String) {
    let mut arguments = site.web1().client_arguments();
    change(&mut arguments);
    let mut client = Program::quartermaster("node", &arguments, &[], &site.at("second"));
    let code = client.ended().await.code();
    (code, client.log())
}

/// T59: the seat is taken once; root, and a missing credential, are refused; a new credential is used from the next connect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t59_one_client_has_the_seat_and_reads_its_credential_at_every_connect() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.config("web1", "forge", "a", "1").await;
    site.assign(&site.web1().module("forge").file("a", "${config:a}")).await;
    site.says("web1", "forge", "applied a=written").await;
    let (code, said) = try_client(&site, |_| {}).await;
    assert_eq!(code, Some(75), "{said}");
    let elsewhere = site.at("elsewhere").to_str().unwrap().to_owned();
    let replace = |arguments: &mut Vec<String>, name: &str, value: &str| {
        let at = arguments.iter().position(|argument| argument == name).unwrap();
        arguments[at + 1] = value.to_owned();
    };
    if rustix::process::geteuid().is_root() {
        let (code, said) = try_client(&site, |arguments| {
            replace(arguments, "--state", &elsewhere);
            arguments.retain(|argument| argument != "--allow-root");
        })
        .await;
        assert_eq!(code, Some(78), "{said}");
        assert!(said.contains("root"), "{said}");
    }
    let (code, said) = try_client(&site, |arguments| {
        replace(arguments, "--state", &elsewhere);
        replace(arguments, "--credentials", "/does/not/exist");
    })
    .await;
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("/does/not/exist"), "{said}");

    // The controller makes a new credential and the broker takes no other any more.
    let account = site.web1().account();
    site.broker.renew(&account);
    let accounts = site.accounts().to_vec();
    site.broker.configure(&accounts);
    site.broker.reload();
    site.config("web1", "forge", "a", "2").await;
    site.web1().holds("a", "2").await;
    site.web1_mut().client.as_mut().unwrap().assert_running();
}

/// T60: a vault with another key, with a key that others may read, or with a store that is none ends with 78 and does not meet the
/// bus; with its own key all of it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t60_a_vault_that_cannot_open_its_store_ends_with_78() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t60-secret");
    site.stop_vault().await;
    fs::write(site.at("other.key"), [2; 32]).unwrap();
    fs::set_permissions(site.at("other.key"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(site.at("loose.key"), [1; 32]).unwrap();
    fs::set_permissions(site.at("loose.key"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(site.at("no-store"), "this is no store").unwrap();
    let place = site.tap.here();
    for (flag, file) in [
        ("--key-file", "other.key"),
        ("--key-file", "loose.key"),
        ("--key-file", "none.key"),
        ("--store", "no-store"),
    ] {
        let mut arguments = site.vault_arguments();
        let at = arguments.iter().position(|argument| argument == flag).unwrap();
        arguments[at + 1] = site.at(file).to_str().unwrap().to_owned();
        let mut vault = Program::quartermaster("vault", &arguments, &[], &site.at("second"));
        assert_eq!(vault.ended().await.code(), Some(78), "{file}: {}", vault.log());
        let said = vault.log();
        assert!(said.lines().last().unwrap().starts_with("error: "), "{file}: {said}");
    }
    assert_eq!(site.tap.since(place, "mesh-vault.").len(), 0, "nothing was served");
    site.start_vault().await;
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.web1().holds("a", "t60-secret").await;
    site.check_secrets();
}

/// C57: whatever the file mask, what a client keeps is nobody else's to read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c57_what_programs_keep_is_private_whatever_the_mask() {
    let Some(mut site) = Site::start(Options::default()).await else { return };
    site.web1_mut().mask = Some("000");
    site.start_machines().await;
    site.assign(&site.web1().module("forge").file("a", "x")).await;
    site.says("web1", "forge", "applied a=written").await;
    let mut folders = vec![site.web1().state(), site.web1().dir().join("engine")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", folder.display());
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            seen += 1;
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                // A file that takes another one's place is gone when that is done.
                let Some(metadata) = still_there(&entry.path(), entry.metadata()) else { continue };
                let mode = metadata.permissions().mode();
                assert_eq!(mode & 0o027, 0, "{}", entry.path().display());
            }
        }
    }
    assert!(seen >= 4, "{seen} files were looked at");
    let audit = fs::metadata(site.at("audit")).unwrap().permissions().mode();
    assert_eq!(audit & 0o137, 0, "the audit is 0640 or tighter");
    eventually("the file is there", || site.web1().read("a")).await;
}
