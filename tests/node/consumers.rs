//! T34 to T40: who is bound to a provider, and what a provider serves.

use std::fs;
use std::process::Command;

use quartermaster_proto::mesh::key;
use serde_json::{Value, json};

use crate::support::{Machine, Module, Options, Site, eventually, eventually_async};

/// What a consumer binds.
fn entry(local: Option<&str>) -> Value {
    let mut entry = json!({"provision": "postgres", "provider": "db", "credential": "pair"});
    if let Some(local) = local {
        entry["local"] = json!(local);
    }
    entry
}

fn provider(machine: &Machine) -> Module {
    machine
        .module("db")
        .file_with("consumers", "${consumers:postgres}", json!({"mode": "0600"}))
        .provides("postgres")
}

fn list(machine: &Machine) -> Option<Vec<Value>> {
    serde_json::from_str(&machine.read("consumers")?).ok()
}

/// The credentials in the file, in order.
fn credentials(machine: &Machine) -> Option<Vec<String>> {
    Some(list(machine)?.iter().map(|one| one["credential"].as_str().unwrap().to_owned()).collect())
}

/// T34: everybody who binds, on every machine, in the order of the assignments' keys and then of the plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t34_all_consumers_of_all_machines_are_listed_in_order() {
    let Some(mut site) = Site::running(&["web1", "web2"], 1).await else { return };
    for (name, value) in [
        ("pair/db/postgres/web1/forge/second", "t34-forge-second"),
        ("pair/db/postgres/web1/forge/first", "t34-forge-first"),
        ("pair/db/postgres/web2/app", "t34-web2-app"),
        ("pair/db/postgres/web1/a.b", "t34-web1-ab"),
    ] {
        site.store(name, value.as_bytes());
    }
    site.assign(&site.web2().module("app").requires(entry(None))).await;
    let forge = site.web1().module("forge").requires(entry(Some("second"))).requires(entry(Some("first")));
    let other = json!({"provision": "dns", "provider": "other", "credential": "none"});
    site.assign(&forge.requires(other)).await;
    site.assign(&site.web1().module("a.b").requires(entry(None))).await;
    site.assign(&provider(site.web2())).await;
    let one = |consumer: &str, module: &str, local: &str, value: &str| {
        let tail = if local.is_empty() { String::new() } else { format!("/{local}") };
        let credential = format!("pair/db/postgres/{consumer}/{module}{tail}");
        json!({"consumer": consumer, "module": module, "local": local, "credential": credential, "value": value})
    };
    let expected = vec![
        one("web1", "a.b", "", "t34-web1-ab"),
        one("web1", "forge", "second", "t34-forge-second"),
        one("web1", "forge", "first", "t34-forge-first"),
        one("web2", "app", "", "t34-web2-app"),
    ];
    eventually("all are listed", || (list(site.web2())? == expected).then_some(())).await;
    assert!(!site.web2().read("consumers").unwrap().contains([' ', '\n']), "compact, without a line feed");
    site.check_secrets();
}

/// T35: a consumer whose credential is refused or not there is left out and said; the others are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t35_who_has_no_credential_is_left_out_and_the_others_are_served() {
    let rules = Some("deny provisioner.web1 pair/db/postgres/web1/refused\n");
    let Some(mut site) = Site::start(Options { rules, ..Options::default() }).await else { return };
    site.start_machines().await;
    site.store("pair/db/postgres/web1/good", b"t35-good-one");
    for module in ["good", "refused"] {
        site.assign(&site.web1().module(module).requires(entry(None))).await;
    }
    // A credential that the provider's software issues is not there before it does.
    let issued = json!({"provision": "postgres", "provider": "db", "credential": "issued"});
    site.assign(&site.web1().module("absent").requires(issued)).await;
    site.assign(&provider(site.web1())).await;
    site.says("web1", "db", "applied consumers=written").await;
    let good = ["pair/db/postgres/web1/good".to_owned()];
    let found = credentials(site.web1()).unwrap();
    assert!(
        found.contains(&good[0]) && !found.contains(&"pair/db/postgres/web1/refused".to_owned()),
        "{found:?}"
    );
    let log = site.web1().log();
    assert!(log.contains("pair/db/postgres/web1/refused"), "it is said who is left out");
    site.check_secrets();
}

/// T36: a vault that does not answer leaves the list of before alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t36_a_vault_that_is_away_does_not_empty_a_list() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("pair/db/postgres/web1/forge", b"t36-secret");
    site.assign(&site.web1().module("forge").requires(entry(None))).await;
    site.assign(&provider(site.web1())).await;
    eventually("it is listed", || (list(site.web1())?.len() == 1).then_some(())).await;
    let before = site.web1().read("consumers").unwrap();
    site.kill_vault();
    site.web1_mut().restart_client();
    site.says("web1", "db", "waiting consumers postgres no-answer").await;
    assert_eq!(site.web1().read("consumers").unwrap(), before);
    site.check_secrets();
}

/// T37: binding, unbinding and rotating on another machine reach the list, and nobody else's file is touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t37_a_list_follows_who_binds_and_what_is_rotated() {
    let Some(mut site) = Site::running(&["web1", "web2"], 1).await else { return };
    site.assign(&provider(site.web1())).await;
    site.assign(&site.web1().module("other").file("other", "x")).await;
    site.web1().holds("consumers", "[]").await;
    site.says("web1", "other", "applied other=written").await;
    let before = fs::metadata(site.web1().path("other")).unwrap().modified().unwrap();
    let name = "pair/db/postgres/web2/forge";
    site.store(name, b"t37-first-value");
    let bound = site.web2().module("forge").requires(entry(None));
    site.assign(&bound).await;
    let value = || list(site.web1())?.first()?["value"].as_str().map(str::to_owned);
    eventually("it is bound", || value().filter(|value| value == "t37-first-value")).await;
    site.rotate(name);
    let rotated = eventually("it is rotated", || value().filter(|value| value != "t37-first-value")).await;
    site.canary.watch("rotated", rotated.as_bytes());
    site.assign(&site.web2().module("forge")).await;
    site.web1().holds("consumers", "[]").await;
    assert_eq!(fs::metadata(site.web1().path("other")).unwrap().modified().unwrap(), before);
    site.check_secrets();
}

/// T38: the catalogue refuses a list of consumers that others may read, that is no owned file, or of what is not provided; past
/// the catalogue the client refuses the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t38_a_list_of_consumers_is_private_owned_and_of_a_provider() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let module = |name: &str, more: Value| {
        site.web1().module(name).file_with(name, "${consumers:postgres}", more).requires(entry(None))
    };
    for (name, module, says) in [
        ("open", module("open", json!({"mode": "0640"})).provides("postgres"), "must have the mode 0600"),
        (
            "seed",
            module("seed", json!({"owner-at-runtime": "seed", "mode": "0600"})).provides("postgres"),
            "must be `owned`",
        ),
        ("stranger", module("stranger", json!({"mode": "0600"})), "the module does not provide this"),
    ] {
        site.assign(&module).await;
        let said = site.is("web1", name, "failed").await;
        assert!(said.contains(says), "{name}: {said}");
        let (file, templates) = (site.at(&format!("{name}.json")), site.at(&format!("{name}.tar")));
        fs::write(&file, module.assignment(1).to_string()).unwrap();
        fs::write(&templates, module.bytes()).unwrap();
        let run = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
            .args(["node", "check", "--templates"])
            .args([&templates, &file])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.code() == Some(1) && printed.contains(says), "{name}: {printed}");
        // And so does whoever assigns: nothing of it reaches the mirror.
        let (folder, file) = module_folder(&site, &format!("{name}-2"), &module);
        let verb = ["assign", "web1", &format!("{name}-2"), "--module", &file, "--templates", &folder];
        let (code, said) = mesh(&site, &verb);
        assert!(code == Some(1) && said.contains("refused: ") && said.contains(says), "{name}: {said}");
        assert!(site.bus.get(key::ASSIGNMENTS, &format!("web1.{name}-2")).await.is_none());
    }
    assert!(site.web1().files().is_empty());
}

/// The folder of a module's templates and its file, as an operator has them.
fn module_folder(site: &Site, name: &str, module: &Module) -> (String, String) {
    let (folder, file) = (site.at(name), site.at(&format!("{name}.module")));
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in module.templates() {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut declared = module.assignment(1)["provisioning"].take();
    declared.as_object_mut().unwrap().remove("templates");
    fs::write(&file, declared.to_string()).unwrap();
    (folder.to_str().unwrap().to_owned(), file.to_str().unwrap().to_owned())
}

/// Runs a verb of the mesh; its exit code and what it said to people.
fn mesh(site: &Site, verb: &[&str]) -> (Option<i32>, String) {
    let run = site.mesh(verb);
    (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
}

/// T38, C44: a provider that is there and does not provide what is asked of it is refused; one that is not there yet is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t38_c44_a_provider_that_is_missing_is_said_and_a_wrong_one_refused() {
    let Some(site) = Site::start(Options::default()).await else { return };
    let assign = |name: &str, module: &Module| {
        let (folder, file) = module_folder(&site, name, module);
        mesh(&site, &["assign", "web1", name, "--module", &file, "--templates", &folder])
    };
    let web = |provider: &str, provision: &str| {
        let entry = json!({"provision": provision, "provider": provider, "credential": "none"});
        site.web1().module("web").file("web", "x").requires(entry)
    };
    let (code, said) = assign("web", &web("db", "postgres"));
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "warning: provisions[0].provider: no machine has the module `db`\n")
    );
    assert_eq!(assign("db", &provider(site.web1())).0, Some(0));
    assert_eq!(assign("web", &web("db", "postgres")), (Some(0), String::new()));
    let (code, said) = assign("web2", &web("DB", "postgres"));
    assert!(code == Some(0) && said.contains("the module `DB`; is `db` meant?"), "{said}");
    for provision in ["Postgres", "postgers"] {
        let (code, said) = assign("web3", &web("db", provision));
        let wanted = format!(
            "refused: provisions[0].provision: `db` does not provide `{provision}`; is `postgres` meant?\n"
        );
        assert_eq!((code, said), (Some(1), wanted));
    }
    assert!(site.bus.get(key::ASSIGNMENTS, "web1.web3").await.is_none());
}

/// T39: what a provider serves is waited for without its bucket, without the entry, without the key; then it is filled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t39_what_a_provider_serves_is_waited_for_and_filled() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let module = site
        .web1()
        .module("forge")
        .file("a", "${bound:postgres.main:as} ${bound:postgres.main:user} ${bound:postgres.main:port}")
        .requires(entry(Some("main")))
        .requires(entry(Some("log")));
    site.assign(&module).await;
    site.is("web1", "forge", "waiting").await;
    eventually_async(true, || async { site.said("web1", "forge").await.contains("no-bucket") }).await;
    site.bus.make_bucket("db_bound").await;
    eventually_async(true, || async { site.said("web1", "forge").await.contains("no-entry") }).await;
    let parts = ["web1", "forge", "postgres", "main"];
    let incomplete = r#"{"state":"bound","as":"forge_web1","user":"u","values":{"host":"db1"}}"#;
    site.bind("db", &["web1", "forge", "postgres", "log"], incomplete).await;
    site.bind("db", &parts, incomplete).await;
    site.says("web1", "forge", "waiting bound postgres.main:port absent").await;
    let whole = r#"{"state":"bound","as":"forge_web1","user":"u","values":{"host":"db1","port":5432}}"#;
    site.bind("db", &parts, whole).await;
    site.says("web1", "forge", "applied a=written").await;
    assert_eq!(site.web1().read("a").unwrap(), "forge_web1 u 5432");
    // Watched for the own machine's keys only.
    let filters: Vec<String> = site
        .tap
        .since(0, "$JS.API.CONSUMER.CREATE.KV_db_bound.")
        .into_iter()
        .map(|heard| heard.subject.splitn(6, '.').nth(5).unwrap().to_owned())
        .collect();
    assert!(
        !filters.is_empty() && filters.iter().all(|filter| filter.contains(".$KV.db_bound.web1.")),
        "{filters:?}"
    );
}

/// T40: a provider that refuses fails the module in its own words until the entry changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t40_a_provider_that_refuses_fails_the_module_until_it_binds() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    site.bus.make_bucket("db_bound").await;
    let parts = ["web1", "forge", "postgres"];
    site.bind("db", &parts, r#"{"state":"refused","reason":"no room for another database"}"#).await;
    site.assign(&site.web1().module("forge").file("a", "${bound:postgres:host}").requires(entry(None))).await;
    let said = site.is("web1", "forge", "failed").await;
    assert!(said.contains("no room for another database"), "{said}");
    site.bind("db", &parts, r#"{"state":"bound","values":{"host":"db1"}}"#).await;
    site.says("web1", "forge", "applied a=written").await;
    assert_eq!(site.web1().read("a").unwrap(), "db1");
    assert!(site.bus.get(&key::bound_bucket("db"), "web1.forge.postgres").await.is_some());
}
