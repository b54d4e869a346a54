//! C55 and the series of docs/node.md: every one is there on its program's page, and what happened moved those that count it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Program, Site, eventually};

/// The values of a page, by series with its labels as they stand there.
fn values(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| line.starts_with("quartermaster_"));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// The series that docs/node.md names for a program: name, label, type.
fn documented(program: &str) -> Vec<(String, Option<String>, String)> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/node.md")).unwrap();
    let prefix = format!("| `quartermaster_{program}_");
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with(&prefix))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let series = cells[1].trim_matches('`');
            let (name, label) = match series.split_once('{') {
                Some((name, label)) => (name, Some(label.trim_end_matches('}').to_owned())),
                None => (series, None),
            };
            (name.to_owned(), label, cells[2].to_owned())
        })
        .collect();
    assert!(rows.len() >= 4, "{program}: {rows:?}");
    rows
}

/// Fails unless a program tells exactly the documented series, each with the documented label and type.
fn check_series(program: &str, page: &str) {
    let found = values(page);
    let mut names = BTreeSet::new();
    for (name, label, kind) in documented(program) {
        assert!(page.contains(&format!("# TYPE {name} {kind}\n")), "{name} is no {kind}:\n{page}");
        let shown = if kind == "histogram" { format!("{name}_count") } else { name.clone() };
        let begin = match label {
            Some(label) => format!("{shown}{{{label}=\""),
            None => shown,
        };
        assert!(found.keys().any(|series| series.starts_with(&begin)), "{begin} is not there:\n{page}");
        names.insert(name);
    }
    let told: BTreeSet<String> = page
        .lines()
        .filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split(' ').next()?.to_owned()))
        .collect();
    assert_eq!(told, names, "docs/node.md names what {program} tells");
}

/// What a running program tells, once it does.
async fn page(program: Option<&Program>) -> BTreeMap<String, f64> {
    let program = program.unwrap();
    values(&eventually("it tells its numbers", || program.numbers()).await)
}

/// What engine, vault and client tell.
async fn pages(site: &Site) -> [BTreeMap<String, f64>; 3] {
    let machine = site.web1();
    [page(machine.engine.as_ref()).await, page(site.vault()).await, page(machine.client.as_ref()).await]
}

/// Fails unless each of these series, told by this program, grew between the two pages.
fn check_grew(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>, series: &[&str]) {
    for name in series {
        assert!(after[*name] > before[*name], "{name}: {} and then {}", before[*name], after[*name]);
    }
}

/// The pages once one of two modules is applied, the other one waits and nobody is to be told. Gauges are those of a look, which
/// may be a second old.
async fn settled(site: &Site) -> [BTreeMap<String, f64>; 3] {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let pages = pages(site).await;
        let [engine, _, client] = &pages;
        let is_in = |state| client[&format!("quartermaster_node_modules{{state=\"{state}\"}}")] > 0.5;
        if engine["quartermaster_engine_programs_owed"] < 0.5
            && engine["quartermaster_engine_modules"] > 1.5
            && is_in("applied")
            && is_in("gathering")
        {
            return pages;
        }
        assert!(Instant::now() < end, "{pages:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c55_numbers_tell_what_happened_and_no_secret() {
    let Some(mut site) = Site::running(&["web1"], 60).await else { return };
    let before = pages(&site).await;
    let tell = json!({"on-change": {"command": [site.web1().teller("tell")]}});
    let module = site
        .web1()
        .module("forge")
        .file_with("a", "${config:a} ${secret:pw}", tell)
        .file_with("seed", "begin with this", json!({"owner-at-runtime": "seed"}))
        .secret("pw");
    site.config("web1", "forge", "a", "1").await;
    site.assign(&module).await;
    site.says("web1", "forge", "waiting secret pw absent").await;
    site.store("own/forge/pw", b"canary of the numbers");
    site.is("web1", "forge", "applied").await;
    fs::write(site.web1().path("a"), "edited").unwrap();
    site.web1().holds("a", "1 canary of the numbers").await;
    // The same is asked for where the plan does not name it, and where a program fails.
    site.assign(&site.web1().module("waits").file("b", "${config:b}")).await;
    site.is("web1", "waits", "waiting").await;
    site.web1().have_fail("tell", true);
    site.config("web1", "forge", "a", "2").await;
    site.is("web1", "forge", "failed").await;
    site.web1().have_fail("tell", false);
    site.is("web1", "forge", "applied").await;
    let after = settled(&site).await;
    check_grew(
        &before[0],
        &after[0],
        &[
            r#"quartermaster_engine_files_total{action="written"}"#,
            r#"quartermaster_engine_files_total{action="restored"}"#,
            r#"quartermaster_engine_files_total{action="seeded"}"#,
            r#"quartermaster_engine_files_total{action="kept"}"#,
            r#"quartermaster_engine_programs_total{result="done"}"#,
            r#"quartermaster_engine_programs_total{result="failed"}"#,
            "quartermaster_engine_write_seconds_count",
            "quartermaster_engine_modules",
        ],
    );
    check_grew(
        &before[1],
        &after[1],
        &[
            r#"quartermaster_vault_requests_total{outcome="sealed"}"#,
            r#"quartermaster_vault_requests_total{outcome="absent"}"#,
            "quartermaster_vault_request_seconds_count",
            "quartermaster_vault_values",
        ],
    );
    check_grew(
        &before[2],
        &after[2],
        &[
            r#"quartermaster_node_modules{state="applied"}"#,
            r#"quartermaster_node_modules{state="gathering"}"#,
            "quartermaster_node_restored_total",
            r#"quartermaster_node_vault_asks_total{outcome="value"}"#,
            r#"quartermaster_node_vault_asks_total{outcome="absent"}"#,
            "quartermaster_node_fill_seconds_count",
        ],
    );
    for (name, value) in [
        ("quartermaster_vault_values_reachable", 1.0),
        ("quartermaster_vault_changes_unsaid", 0.0),
        ("quartermaster_vault_values", 1.0),
    ] {
        assert!((after[1][name] - value).abs() < 0.1, "{name}: {}", after[1][name]);
    }
    assert!((after[0]["quartermaster_engine_modules"] - 2.0).abs() < 0.1, "{:?}", after[0]);

    // No answer is counted as well, and one that a plan does not name as refused.
    site.kill_vault();
    site.assign(&site.web1().module("hub").file("c", "${secret:pw}").secret("pw")).await;
    site.says("web1", "hub", "waiting secret pw no-answer").await;
    let asks = r#"quartermaster_node_vault_asks_total{outcome="no-answer"}"#;
    check_grew(&before[2], &page(site.web1().client.as_ref()).await, &[asks]);
    site.start_vault().await;
    site.says("web1", "hub", "waiting secret pw absent").await;

    for (program, process) in [
        ("engine", site.web1().engine.as_ref()),
        ("vault", site.vault()),
        ("node", site.web1().client.as_ref()),
    ] {
        let text = process.unwrap().numbers().unwrap();
        check_series(program, &text);
        for name in ["web1", "forge", "own/", "pw\""] {
            assert!(!text.contains(name), "{program} names {name}:\n{text}");
        }
    }
    site.check_secrets();
}

/// What is told is part of what is searched: a page, a status and a list that named a secret would be found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c55_pages_and_statuses_are_part_of_what_is_searched() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"canary of the pages");
    site.assign(&site.web1().module("forge").file("a", "${secret:pw}").secret("pw")).await;
    site.says("web1", "forge", "applied a=written").await;
    eventually("all of them are told", || {
        let told = site.told();
        let text = |what: &str| String::from_utf8_lossy(&told[what]).into_owned();
        // One whose page is late is asked again.
        if told.keys().filter(|what| what.starts_with("the numbers of")).count() != 3 {
            return None;
        }
        let parts = [
            ("the status of web1", r#""state": "applied""#),
            ("the status of the engine of web1", r#""declared":true"#),
            ("the list of the vault", r#""name":"own/forge/pw""#),
            ("what the mesh shows", r#""state":"applied""#),
        ];
        assert_eq!(text("the list of the vault"), "[{\"name\":\"own/forge/pw\",\"version\":2}]\n");
        parts.into_iter().all(|(what, part)| text(what).contains(part)).then_some(())
    })
    .await;
    site.check_secrets();
    // Whose name holds a secret: then the list of the vault, and the audit, show it.
    site.canary.watch("a name", b"canary-in-a-name");
    site.ask_vault(&["set", "own/forge/canary-in-a-name"], b"x");
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| site.check_secrets())).unwrap_err();
    let found = found.downcast_ref::<String>().unwrap();
    assert!(found.contains("plain is in the list of the vault"), "{found}");
}
