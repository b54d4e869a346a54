//! The dashboard and the alert rules speak of series that there are: every name, type and label is one of a first scrape.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use prometheus::{Registry, TextEncoder};
use quartermaster::emulate::{PrepareSettings, prepare};
use quartermaster_node::client::service::NodeMetrics;
use quartermaster_node::engine::service::EngineMetrics;
use quartermaster_node::vault::service::VaultMetrics;
use regex::Regex;
use serde_json::Value;

use super::super::support::{BrokerOptions, Daemon, append, eventually};
use super::shipped::{REPOSITORY, debian_tool, run, text_of};

fn shipped(name: &str) -> String {
    std::fs::read_to_string(Path::new(REPOSITORY).join("monitoring").join(name)).unwrap()
}

/// A family of series: its type and the labels it has.
#[derive(Debug, Default)]
pub(crate) struct Family {
    kind: String,
    labels: BTreeSet<String>,
}

/// The first scrape of an instance that takes part in an election, so that all series are there.
pub(crate) async fn first_scrape() -> Option<String> {
    let broker = BrokerOptions::new().jetstream().start()?;
    let dir = tempfile::tempdir().unwrap();
    let settings =
        PrepareSettings { broker: format!("127.0.0.1:{}", broker.port()), ..PrepareSettings::default() };
    let files = prepare(dir.path(), &settings).unwrap().plain;
    append(&files.config, "listen: 127.0.0.1:0\nleader_election: true\n");
    let mut daemon = Daemon::start(&files);
    daemon.listens().await;
    // Listening a moment before the keeper of the numbers is there.
    let mut scrape = None;
    eventually("the first scrape is answered", || {
        scrape = Some(daemon.get("/metrics")).filter(|(status, _)| *status == 200).map(|(_, text)| text);
        scrape.is_some()
    })
    .await;
    scrape
}

static LABEL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"([a-z_]+)\s*(?:=~|!~|!=|=)\s*""#).unwrap());

/// The families of a scrape by name.
pub(crate) fn families(scrape: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in scrape.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap();
            families.insert(name.to_owned(), Family { kind: kind.to_owned(), ..Family::default() });
        } else if !line.starts_with('#') {
            let series = line.rsplit_once(' ').unwrap().0;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let family = family_of(&families, name).unwrap_or_else(|| panic!("{name} has no type"));
            let labels = LABEL.captures_iter(labels).map(|found| found[1].to_owned());
            families.get_mut(&family).unwrap().labels.extend(labels);
        }
    }
    families
}

/// The family that a series of this name belongs to.
fn family_of(families: &BTreeMap<String, Family>, name: &str) -> Option<String> {
    if families.contains_key(name) {
        return Some(name.to_owned());
    }
    let parts = [
        ("_bucket", &["histogram"][..]),
        ("_sum", &["histogram", "summary"]),
        ("_count", &["histogram", "summary"]),
    ];
    parts.into_iter().find_map(|(end, kinds)| {
        let family = name.strip_suffix(end)?;
        kinds.contains(&families.get(family)?.kind.as_str()).then(|| family.to_owned())
    })
}

/// Every expression of the dashboard, with the panel's title.
fn of_dashboard(name: &str) -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&shipped(name)).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap_or(&Vec::new()) {
            found.push((
                panel["title"].as_str().unwrap().to_owned(),
                target["expr"].as_str().unwrap().to_owned(),
            ));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            found.push((format!("variable {}", variable["name"]), query.to_owned()));
        }
    }
    found
}

/// Every expression of the alerts, with its name.
fn of_alerts() -> Vec<(String, String)> {
    let text = shipped("alerts.yaml");
    let values = |key: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| Some(line.trim().strip_prefix(key)?.trim_matches('\'').to_owned()))
            .collect()
    };
    let (names, expressions) = (values("- alert: "), values("expr: "));
    assert_eq!(names.len(), expressions.len(), "each expression is on one line");
    names.into_iter().zip(expressions).collect()
}

/// What is wrong with an expression, in the light of these families.
fn wrong(expression: &str, families: &BTreeMap<String, Family>) -> Vec<String> {
    let selector =
        Regex::new(r"\b((?:choria|quartermaster|process)_[a-z0-9_]+)(?:\{([^}]*)\})?(\[[^\]]*\])?").unwrap();
    let mut wrong = Vec::new();
    let (mut all, mut seen) = (BTreeSet::new(), false);
    for found in selector.captures_iter(expression) {
        let name = &found[1];
        let Some(family) = family_of(families, name).map(|family| &families[&family]) else {
            wrong.push(format!("there is no series {name}"));
            continue;
        };
        seen = true;
        // What Prometheus adds, and what a bucket has.
        let added = ["instance", "job", "le"].map(str::to_owned);
        let labels: BTreeSet<String> = family.labels.iter().cloned().chain(added).collect();
        let asked = LABEL.captures_iter(found.get(2).map_or("", |labels| labels.as_str()));
        wrong.extend(
            asked
                .filter(|label| !labels.contains(&label[1]))
                .map(|label| format!("{name} has no label {}", &label[1])),
        );
        let is_range = found.get(3).is_some();
        let counts = family.kind == "counter" || (family.kind != "gauge" && name.ends_with(['t', 'm']));
        if counts != is_range && !expression.starts_with("label_values") {
            wrong.push(format!("{name} is a {}, but the range is {is_range}", family.kind));
        }
        all.extend(labels);
    }
    let grouped = Regex::new(r"\b(?:by|on) \(([^)]*)\)").unwrap();
    for found in grouped.captures_iter(expression).filter(|_| seen) {
        let labels = found[1].split(", ").filter(|label| !all.contains(*label));
        wrong.extend(labels.map(|label| format!("no series in it has the label {label}")));
    }
    wrong
}

#[test]
fn an_expression_that_cannot_work_is_noticed() {
    let families = families(
        "# TYPE quartermaster_x_total counter\nquartermaster_x_total{site=\"\",cause=\"a\"} 0\n# TYPE quartermaster_y gauge\nquartermaster_y 1\n",
    );
    for good in ["sum by (cause) (rate(quartermaster_x_total{site=~\".*\"}[5m]))", "quartermaster_y == 0"] {
        assert!(wrong(good, &families).is_empty(), "{good}: {:?}", wrong(good, &families));
    }
    for bad in [
        "quartermaster_z",
        "quartermaster_x_total",
        "rate(quartermaster_y[5m])",
        "rate(quartermaster_x_total{host=\"a\"}[5m])",
        "sum by (host) (quartermaster_y)",
        "quartermaster_y_bucket",
    ] {
        assert!(!wrong(bad, &families).is_empty(), "{bad}");
    }
}

#[actix::test]
async fn every_series_of_dashboard_and_alerts_is_in_a_first_scrape() {
    let Some(scrape) = first_scrape().await else { return };
    let families = families(&scrape);
    let all = [of_dashboard("dashboard.json"), of_alerts()].concat();
    assert!(all.len() > 60, "{}", all.len());
    let wrong: Vec<_> = all
        .iter()
        .flat_map(|(place, expression)| {
            wrong(expression, &families).into_iter().map(move |what| format!("{place}: {what}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // And the dashboard leaves none out.
    let shown = of_dashboard("dashboard.json")
        .into_iter()
        .map(|(_, expression)| expression)
        .collect::<Vec<_>>()
        .join("\n");
    let hidden: Vec<_> = families
        .keys()
        .filter(|name| !NOT_SHOWN.contains(&name.as_str()) && !shown.contains(name.as_str()))
        .collect();
    assert!(hidden.is_empty(), "not on the dashboard: {hidden:?}");
}

/// What says nothing in a graph.
const NOT_SHOWN: [&str; 5] = [
    "quartermaster_build_info",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
    "process_max_fds",
    "choria_election_interval_seconds",
];

#[test]
fn every_alert_leads_to_what_to_do() {
    let text = shipped("alerts.yaml");
    let page = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/operations.md")).unwrap();
    let anchors: BTreeSet<String> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
        .collect();
    let runbooks: Vec<_> =
        text.lines().filter_map(|line| line.trim().strip_prefix("runbook: 'docs/operations.md#")).collect();
    assert_eq!(runbooks.len(), of_alerts().len());
    for runbook in runbooks {
        assert!(
            anchors.contains(runbook.trim_end_matches('\'')),
            "docs/operations.md has no heading for {runbook}"
        );
    }
    let tried = shipped("alerts_test.yaml");
    for (name, _) in of_alerts() {
        let cases: Vec<_> =
            tried.split("alertname: ").skip(1).filter(|case| case.lines().next() == Some(&name)).collect();
        assert!(
            cases.iter().any(|case| !case
                .trim_start_matches(name.as_str())
                .trim_start()
                .starts_with("exp_alerts: []")),
            "{name} is never tried"
        );
    }
}

#[test]
fn promtool_accepts_the_rules_and_they_do_what_they_should() {
    let Some(promtool) = debian_tool("prometheus", "promtool", &[]) else { return };
    let file = |name: &str| Path::new(REPOSITORY).join("monitoring").join(name).to_str().unwrap().to_owned();
    text_of(&run(&promtool, &["check", "rules", &file("alerts.yaml")]));
    text_of(&run(&promtool, &["test", "rules", &file("alerts_test.yaml")]));
}

#[actix::test]
async fn promtool_accepts_a_scrape() {
    let Some(promtool) = debian_tool("prometheus", "promtool", &[]) else { return };
    let Some(scrape) = first_scrape().await else { return };
    let mut child = std::process::Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(scrape.as_bytes()).unwrap();
    let judged = child.wait_with_output().unwrap();
    let said = [judged.stdout, judged.stderr].concat();
    // The peer's names are not ours to choose: counters without `_total` among them.
    let ours: Vec<_> =
        std::str::from_utf8(&said).unwrap().lines().filter(|line| !line.starts_with("choria_")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}

/// The families that the programs of the node side tell.
fn of_node_side() -> BTreeMap<String, Family> {
    let registry = Registry::new();
    EngineMetrics::new().unwrap().register(&registry).unwrap();
    VaultMetrics::new().unwrap().register(&registry).unwrap();
    NodeMetrics::new().unwrap().register(&registry).unwrap();
    families(&TextEncoder::new().encode_to_string(&registry.gather()).unwrap())
}

#[test]
fn the_node_sides_dashboard_asks_for_series_that_there_are_and_its_page_explains_all() {
    let families = of_node_side();
    let expressions = of_dashboard("node-dashboard.json");
    let mut shown = BTreeSet::new();
    for (title, expression) in
        expressions.iter().filter(|(_, expression)| !expression.starts_with("label_values"))
    {
        let faults = wrong(expression, &families);
        assert!(faults.is_empty(), "{title}: {faults:?}");
        shown.extend(families.keys().filter(|name| expression.contains(*name)).cloned());
    }
    let page = std::fs::read_to_string(Path::new(REPOSITORY).join("docs/node.md")).unwrap();
    for (name, family) in &families {
        let labels: Vec<&str> =
            family.labels.iter().map(String::as_str).filter(|label| *label != "le").collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        assert!(
            page.contains(&format!("`{name}{labels}` | {} |", family.kind)),
            "docs/node.md lacks {name}{labels}"
        );
        assert!(shown.contains(name), "no panel shows {name}");
    }
}
