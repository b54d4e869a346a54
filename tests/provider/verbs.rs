//! check, schema and lock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::support::{have, program, quartermaster, sample, skip, text};

/// Every case of the check, by name, with its verdict.
#[track_caller]
fn check(program: &Path, arguments: &[&str]) -> (Vec<(String, String)>, i32, String) {
    let mut all = vec!["check", program.to_str().unwrap(), "--json"];
    all.extend_from_slice(arguments);
    if !arguments.contains(&"--timeout") {
        // Interpreters start slowly on a machine that is busy with everything else.
        all.extend_from_slice(&["--timeout", "60"]);
    }
    let output = quartermaster(&all);
    let shown = text(&output.stdout) + &text(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"));
    let word = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let cases = report["cases"].as_array().unwrap();
    let cases = cases.iter().map(|case| (word(case, "case"), word(case, "verdict"))).collect();
    (cases, output.status.code().unwrap(), shown)
}

#[track_caller]
pub fn check_good(program: &Path, arguments: &[&str], untried: usize) {
    let (cases, code, shown) = check(program, arguments);
    assert_eq!(code, 0, "{shown}");
    assert!(cases.len() >= 18, "{shown}");
    let count = |verdict: &str| cases.iter().filter(|(_, found)| found == verdict).count();
    assert_eq!((count("bad"), count("odd"), count("skipped")), (0, 0, untried), "{shown}");
}

/// A sample has fewer than sixty lines.
#[track_caller]
fn check_short(file: &str) {
    let lines = fs::read_to_string(sample(file)).unwrap().lines().count();
    assert!(lines < 60, "{file} has {lines} lines");
}

#[test]
fn the_python_sample_is_a_good_provider() {
    check_short("python/dns.py");
    if !have(&["python3"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    let config = format!(r#"{{"file":"{}"}}"#, folder.path().join("records.json").display());
    let attempt = r#"record_create={"zone":"example.test","name":"www"}"#;
    check_good(&sample("python/dns.py"), &["--config", &config, "--try", attempt], 5);
    assert_eq!(fs::read_to_string(folder.path().join("records.json")).unwrap(), "{}", "taken back");
}

#[test]
fn the_go_sample_is_a_good_provider() {
    check_short("go/main.go");
    if !have(&["go"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    let binary = folder.path().join("names");
    let built = Command::new("go")
        .args(["build", "-o", binary.to_str().unwrap(), "."])
        .current_dir(sample("go"))
        .env("GOFLAGS", "-mod=mod")
        .env("GOTOOLCHAIN", "local")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    check_good(&binary, &["--try", r#"reserve={"role":"web"}"#], 5);
}

#[test]
fn the_rust_sample_is_a_good_provider() {
    check_short("rust/provider.rs");
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_quartermaster"));
    let binary = beside.with_file_name("examples").join("counter-provider");
    if !binary.is_file() {
        skip("the examples are not built: cargo build --examples");
        return;
    }
    check_good(&binary, &["--try", r#"add={"name":"a","by":2}"#], 5);
}

#[test]
fn a_program_that_is_no_provider_and_one_that_is_a_bad_one_are_told_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let none = program(folder.path(), "none", "#!/bin/sh\necho hello\n");
    let (cases, code, shown) = check(&none, &[]);
    assert_eq!((code, cases.len()), (6, 2), "{shown}");
    assert!(shown.contains("hello"), "the line is shown: {shown}");

    // It answers everything with the same id, knows every action, and never leaves.
    let bad = r#"#!/bin/sh
schema='{"name":"bad","protocol":"1","actions":{}}'
[ "$1" = schema ] && { echo "$schema"; exit 0; }
trap '' TERM
n=0
while read -r line; do
  n=$((n+1))
  [ $n = 1 ] && echo "{\"id\":1,\"result\":{\"schema\":$schema}}" || echo "{\"id\":$n,\"result\":{}}"
done
sleep 600
"#;
    let bad = program(folder.path(), "bad", bad);
    let (cases, code, shown) = check(&bad, &["--timeout", "2"]);
    assert_eq!(code, 6, "{shown}");
    let bad: Vec<&str> =
        cases.iter().filter(|(_, verdict)| verdict == "bad").map(|(case, _)| case.as_str()).collect();
    assert_eq!(
        bad,
        [
            "unknown method",
            "unknown action",
            "not configured",
            "white space",
            "pieces",
            "large request",
            "large id",
            "more members",
            "text",
            "shutdown",
            "end of input"
        ],
        "{shown}"
    );
    let table = text(&quartermaster(&["check", none.to_str().unwrap()]).stdout);
    assert!(table.contains("BAD") && table.contains("2 bad"), "{table}");
}

#[test]
fn wrong_arguments_have_their_exit_codes() {
    for (arguments, code) in [
        (vec!["check", "missing"], 4),
        (vec!["check", "/bin/sh", "--config", "[1]"], 2),
        (vec!["check", "/bin/sh", "--config", "@missing"], 4),
        (vec!["schema", "missing"], 4),
        (vec!["lock", "missing"], 4),
        (vec!["lock"], 2),
    ] {
        assert_eq!(quartermaster(&arguments).status.code(), Some(code), "{arguments:?}");
    }
}

const PLAIN: &str = "#!/bin/sh\necho '{\"name\":\"p\",\"version\":\"VERSION\",\"protocol\":\"1\",\"config\":{},\"actions\":{\"act\":{\"attrs\":{\"zone\":{\"type\":\"list( string )\",\"required\":true}}}}}'\n";

#[test]
fn a_schema_is_shown_to_people_and_as_json() {
    let folder = TempDir::new().unwrap();
    let plain = program(folder.path(), "p", &PLAIN.replace("VERSION", "1.2"));
    let shown = text(&quartermaster(&["schema", plain.to_str().unwrap()]).stdout);
    assert!(shown.starts_with("p 1.2 (protocol 1)") && shown.contains("list(string) (required)"), "{shown}");
    let json = quartermaster(&["schema", plain.to_str().unwrap(), "--json"]);
    let schema: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(schema["actions"]["act"]["attrs"]["zone"]["type"], "list(string)");
}

#[test]
fn a_lock_notices_another_program_and_other_declarations() {
    let folder = TempDir::new().unwrap();
    let plain = program(folder.path(), "p", &PLAIN.replace("VERSION", "1.2"));
    let (name, lock) = (plain.to_str().unwrap(), folder.path().join("providers.lock.json"));
    let file = ["--file", lock.to_str().unwrap()];
    let run = |arguments: &[&str]| {
        let output = quartermaster(&[&["lock"], arguments, &file].concat());
        (output.status.code().unwrap(), text(&output.stdout))
    };
    assert_eq!(run(&["--check", name]).0, 6, "not in the file yet");
    assert_eq!(run(&[name]).0, 0);
    let locked: Value = serde_json::from_slice(&fs::read(&lock).unwrap()).unwrap();
    assert_eq!(locked["providers"][name]["version"], "1.2");
    assert_eq!(locked["providers"][name]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(run(&["--check", name]).0, 0);
    program(folder.path(), "p", &(PLAIN.replace("VERSION", "1.2") + "# another\n"));
    let (code, said) = run(&["--check", name]);
    assert!(code == 6 && said.contains("another program that declares the same"), "{said}");
    program(folder.path(), "p", &PLAIN.replace("VERSION", "1.3"));
    let (code, said) = run(&["--check", name]);
    assert!(code == 6 && said.contains("declares something else: p 1.3, locked was p 1.2"), "{said}");
}
