//! `quartermaster bench` measures what really runs, compares, draws, and leaves nothing behind.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::{nats_server, skip};

const OWN: &str = env!("CARGO_BIN_EXE_quartermaster");

/// Processes whose command line mentions `dir`, the measurement itself aside.
fn mentions(dir: &Path) -> Vec<String> {
    let wanted = dir.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(wanted) && !line.contains("quartermaster bench"))
        .collect()
}

/// Starts a measurement whose files are below `dir`; none without a broker.
fn started(dir: &Path, arguments: &[&str]) -> Option<Child> {
    let nats = match nats_server() {
        Ok(nats) => nats,
        Err(why) => {
            skip("the measurement", why);
            return None;
        }
    };
    let mut command = Command::new(OWN);
    command.args(["bench", "--json", "--warm-up", "2", "--restart-delay", "100ms"]).args(arguments);
    command.env("QM_NATS_SERVER", nats).env("TMPDIR", dir).current_dir(dir);
    Some(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn measured(arguments: &[&str], check: impl FnOnce(&Path, &Value)) {
    let dir = tempfile::tempdir().unwrap();
    let Some(child) = started(dir.path(), arguments) else { return };
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(output.status.code(), Some(0), "{told}{report}");
    assert_eq!(mentions(dir.path()), Vec::<String>::new());
    check(dir.path(), &report);
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name == "quartermaster-bench.svg"), "{left:?}");
}

/// That a run provisioned so many servers, each once, and has its figures.
fn check_run(run: &Value, servers: u64) {
    for (figure, expected) in
        [("servers", servers), ("provisioned", servers), ("duplicate_configures", 0), ("failures", 0)]
    {
        assert_eq!(run[figure], expected, "{figure}: {run}");
    }
    for figure in ["elapsed_s", "per_minute"] {
        assert!(run[figure].as_f64().unwrap() > 0.0, "{figure}: {run}");
    }
    for process in ["provisioner", "broker", "fleet"] {
        assert!(run[process]["peak_rss_mib"].as_f64().unwrap() > 1.0, "{process}: {run}");
        assert!(run[process]["cpu_s"].is_f64(), "{process}: {run}");
    }
}

#[test]
fn a_run_has_every_figure() {
    measured(&["--servers", "6", "--runs", "2", "--lone", "--state"], |_, report| {
        let runs = report["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2);
        for run in runs {
            check_run(run, 6);
            for step in ["jwt", "gen25519", "inventory", "helper", "configure", "restart"] {
                // The lone server is one of those that are timed.
                assert_eq!(run["steps"][step]["count"], 7, "{step}: {run}");
                for quantile in ["p50_ms", "p95_ms", "p99_ms"] {
                    assert!(run["steps"][step][quantile].is_f64(), "{step}: {run}");
                }
            }
            assert_eq!(run["helper_wait"]["count"], 7, "{run}");
            assert!(run["lone_s"].as_f64().unwrap() > 0.0, "{run}");
            assert!(run["control_answer"]["count"].as_u64().unwrap() > 0, "{run}");
        }
        for known in ["processor", "kernel"] {
            assert!(!report["machine"][known].as_str().unwrap().is_empty(), "{report}");
        }
        assert!(report["versions"]["broker"].as_str().unwrap().contains("nats-server"), "{report}");
        let first = &report["summary"][0];
        assert_eq!(first["figure"], "servers a minute");
        let [min, median, max] = ["min", "median", "max"].map(|which| first[which].as_f64().unwrap());
        assert!(min <= median && median <= max, "{first}");
    });
}

#[test]
fn servers_that_are_there_already_are_found_and_measured() {
    measured(
        &["--servers", "5", "--runs", "1", "--announce", "discovery", "--connections", "5"],
        |_, report| {
            check_run(&report["runs"][0], 5);
        },
    );
}

#[test]
fn a_helper_that_lives_on_is_measured_in_every_network() {
    for network in ["plain", "x509"] {
        let wanted = ["--servers", "4", "--runs", "1", "--helper", "provider", "--network", network];
        measured(&wanted, |_, report| {
            check_run(&report["runs"][0], 4);
            assert_eq!(report["runs"][0]["steps"]["helper"]["count"], 4, "{report}");
        });
    }
}

#[test]
fn waves_of_servers_come_and_go() {
    measured(&["--servers", "20", "--soak", "12s"], |_, report| {
        assert_eq!((&report["unfinished"], &report["flat"]), (&0.into(), &true.into()), "{report}");
        assert_eq!(report["provisioned"], report["waves"].as_u64().unwrap() * 20, "{report}");
        for figure in ["memory_kib", "descriptors", "threads"] {
            assert!(report[figure]["late"].as_f64().unwrap() > 0.0, "{figure}: {report}");
        }
    });
}

#[test]
fn certificates_are_measured_too() {
    for network in ["issuer", "x509"] {
        measured(&["--servers", "3", "--runs", "1", "--network", network], |_, report| {
            check_run(&report["runs"][0], 3);
            let asked = report["runs"][0]["steps"]["gencsr"]["count"].as_u64();
            assert_eq!(asked, (network == "x509").then_some(3), "{report}");
        });
    }
}

#[test]
fn another_provisioner_is_compared_figure_by_figure() {
    let other = format!("{OWN} run --config {{config}} --choria-config={{choria_config}}");
    measured(&["--servers", "5", "--runs", "1", "--against", &other], |_, report| {
        check_run(&report["against"][0], 5);
        let ratio = &report["ratios"][0];
        assert_eq!(ratio["figure"], "servers a minute");
        let [ours, theirs] = ["ours", "theirs"].map(|who| ratio[who]["median"].as_f64().unwrap());
        let times = ratio["times_better"].as_f64().unwrap();
        assert!((times - ours / theirs).abs() < 1e-6, "{ratio}");
        assert_eq!(report["versions"]["against"], *other);
    });
}

#[test]
fn growing_fleets_are_drawn() {
    measured(&["--sweep", "6,3", "--runs", "1"], |dir, report| {
        let sizes: Vec<_> =
            report["sweep"].as_array().unwrap().iter().map(|one| &one["setting"]["servers"]).collect();
        assert_eq!(sizes, [3, 6]);
        let picture = std::fs::read_to_string(dir.join("quartermaster-bench.svg")).unwrap();
        assert!(
            picture.starts_with("<svg") && picture.contains("Processor time for one server"),
            "{picture}"
        );
    });
}

#[test]
fn an_interrupt_ends_every_process() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut child) = started(dir.path(), &["--servers", "5", "--helper-delay", "10m", "--runs", "1"])
    else {
        return;
    };
    let begin = Instant::now();
    while !mentions(dir.path()).iter().any(|line| line.contains("emulate")) {
        assert!(begin.elapsed() < Duration::from_mins(1), "the fleet was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(mentions(dir.path()), Vec::<String>::new());
}

#[test]
fn a_provisioner_that_cannot_know_its_files_is_refused() {
    let output = Command::new(OWN).args(["bench", "--against", "true --config {config}"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("--against: it does not say {choria_config}"), "{told}");
}
