//! Values kept in HashiCorp Vault itself: written there by others, filled into files, changed there, sealed away and back. Only with
//! `QM_KV_LAB=1`; what can be shown with a small store stands in `node/tests`.

use std::fs;
use std::time::Duration;

use crate::kv_lab::{KvLab, MOUNT};
use crate::support::{Options, Site, eventually, never};

/// A lab, the file with its secret id, and a mesh whose vault logs in there by `AppRole`.
async fn site() -> Option<(KvLab, Site, tempfile::TempDir, String)> {
    let lab = KvLab::start(&[])?;
    let folder = tempfile::tempdir().unwrap();
    let role = lab.role("20s");
    let id = lab.secret_id();
    let secret = KvLab::credential(folder.path(), "secret-id", &id);
    let vault = [
        ["--kv", &lab.address],
        ["--kv-mount", MOUNT],
        ["--kv-role", &role],
        ["--kv-secret-file", secret.to_str().unwrap()],
    ];
    let vault = vault.concat().into_iter().map(str::to_owned).collect();
    let mut site = Site::start(Options { pace: 20, vault, ..Options::default() }).await?;
    site.start_machines().await;
    Some((lab, site, folder, id))
}

/// Somebody writes a value there, which from here on may be nowhere but in its file.
fn write(site: &mut Site, lab: &KvLab, name: &str, value: &str) {
    site.canary.watch(name, value.as_bytes());
    lab.write(name, value);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_of_hashicorp_vault_is_in_its_file_and_so_is_what_others_make_of_it() {
    let Some((lab, mut site, _folder, _)) = site().await else { return };
    site.assign(&site.web1().module("forge").file("a", "pw=${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "waiting secret pw absent").await;
    write(&mut site, &lab, "own/forge/pw", "t-kv-first \"quoted\"");
    site.web1().holds("a", "pw=t-kv-first \"quoted\"").await;
    site.says("web1", "forge", "applied a=written").await;
    // Nobody tells the vault; it looks by itself, and says it to whom it concerns.
    write(&mut site, &lab, "own/forge/pw", "t-kv-second");
    site.web1().holds("a", "pw=t-kv-second").await;
    // By the vault's own verbs, with what others did in between.
    write(&mut site, &lab, "own/forge/pw", "t-kv-third");
    site.rotate("own/forge/pw");
    let made = eventually("the vault's own value", || {
        site.web1().read("a").filter(|text| !text.contains("t-kv")).map(|text| text[3..].to_owned())
    })
    .await;
    let kept = lab.must("GET", &format!("{MOUNT}/data/own/forge/pw"), &serde_json::Value::Null);
    assert_eq!(kept["data"]["data"]["value"], made);
    site.canary.watch("own/forge/pw", made.as_bytes());
    assert!(site.ask_vault(&["list"], b"").contains("own/forge/pw"));
    site.check_secrets();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hashicorp_vault_that_is_sealed_takes_nothing_away_and_is_waited_for() {
    let Some((lab, mut site, folder, id)) = site().await else { return };
    write(&mut site, &lab, "own/forge/pw", "t-kv-sealed");
    write(&mut site, &lab, "own/shop/pw", "t-kv-other");
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    lab.seal();
    site.assign(&site.web1().module("shop").file("b", "${secret:pw}").secret("pw")).await;
    site.says("web1", "shop", "waiting secret pw no-answer").await;
    // What is held serves on.
    fs::write(site.web1().path("a"), "edited").unwrap();
    site.web1().holds("a", "t-kv-sealed").await;
    assert!(!site.try_store("own/forge/pw", b"t-kv-sealed"));
    lab.unseal();
    site.says("web1", "shop", "applied b=written").await;

    // The login is taken back while it is used, and its secret id with it; another one heals it without a restart.
    lab.destroy(&id);
    lab.revoke_logins();
    write(&mut site, &lab, "own/blog/pw", "t-kv-login");
    site.assign(&site.web1().module("blog").file("c", "${secret:pw}").secret("pw")).await;
    site.says("web1", "blog", "waiting secret pw no-answer").await;
    never(Duration::from_secs(1), || site.web1().read("c")).await;
    KvLab::credential(folder.path(), "secret-id", &lab.secret_id());
    site.says("web1", "blog", "applied c=written").await;
    let audit = site.audit();
    assert!(!audit.iter().any(|line| line.ends_with("absent") || line.ends_with("refused")), "{audit:?}");
    site.check_secrets();
}
