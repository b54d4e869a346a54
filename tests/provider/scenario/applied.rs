//! What apply does, and what it writes down.

use std::os::unix::fs::PermissionsExt as _;

use super::site::{Site, lines};

const CHAIN: &str = r#"
  action "make" "a" { name = "a" }
  action "make" "b" { name = "b-${action.make.a.id}" }
  action "make" "c" {
    name       = "c"
    depends_on = [action.make.b]
  }
  output "last" { value = action.make.b.id }
"#;

#[test]
fn steps_are_done_in_order_and_each_line_of_the_record_says_what_happened() {
    let Some(site) = Site::new(CHAIN) else { return };
    let applied = site.run(&["apply", "steps.hcl"]).ended(0);
    applied.says(&["ok action.make.a (", "ok action.make.b (", "ok action.make.c (", "last = \"id-b-id-a\""]);
    assert_eq!(site.things(), ["id-a", "id-b-id-a", "id-c"]);
    let record = site.record();
    assert_eq!(site.words(), ["run", "sent", "ok", "sent", "ok", "sent", "ok", "outputs", "end"]);
    let name = record.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("quartermaster_demo_run_20"), "{name}");
    assert_eq!(record.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let lines = lines(&record);
    let run = lines[0]["run"].as_str().unwrap();
    assert_eq!(lines[1]["key"], format!("{run}/make.a"));
    assert_eq!((&lines[1]["undo"], &lines[1]["provider"]), (&true.into(), &"things".into()));
    assert_eq!(lines[4]["outputs"]["id"], "id-b-id-a");
    assert_eq!(lines[4]["undo"]["action"], "unmake");
    assert_eq!(lines[8]["status"], "succeeded");
    // Each first member says what the line is, for people and for grep.
    assert!(site.read(name).lines().all(|line| line.starts_with("{\"t\":\"")));
}

#[test]
fn independent_steps_run_at_once_and_json_tells_each_event() {
    // Each waits for the other to have begun.
    let Some(site) = Site::new("") else { return };
    site.provider("others");
    site.steps(
        r#"scenario "demo" {
  required_providers {
    things = { source = "exec:./bin/things" }
    others = { source = "exec:./bin/others" }
  }
  action "make" "a" {
    provider = things
    name     = "a"
    touch    = "a-begun"
    after    = "b-begun"
  }
  action "make" "b" {
    provider = "others"
    name     = "b"
    touch    = "b-begun"
    after    = "a-begun"
  }
}
"#,
    );
    let applied = site.run(&["apply", "steps.hcl", "--json"]).ended(0);
    let events: Vec<serde_json::Value> =
        applied.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(words, ["record", "run", "run", "ok", "ok", "end"]);
    assert_eq!(events[5]["status"], "succeeded");
}

#[test]
fn how_far_a_step_is_is_told() {
    let Some(site) = Site::new("  action \"make\" \"a\" {\n    name = \"a\"\n    how  = \"progress\"\n  }")
    else {
        return;
    };
    site.says("more", r#"{"x_extensions":{"progress":true}}"#);
    let applied = site.run(&["apply", "steps.hcl", "--json"]).ended(0);
    applied.says(&[r#"{"event":"progress","step":"make.a","done":1,"total":2,"message":"half of it"}"#]);
}

#[test]
fn a_failure_stops_what_depends_on_it_and_by_default_everything_new() {
    let body = r#"
  action "make" "bad" {
    name = "bad"
    how  = "fail:denied"
  }
  action "make" "later" {
    name       = "later"
    depends_on = [action.make.bad]
  }
  action "make" "runs" { name = "runs" }
  action "make" "other" {
    name       = "other"
    depends_on = [action.make.runs]
  }
"#;
    for (arguments, things, words) in [
        // What was begun beside it may end.
        (&["--on-failure", "stop"][..], &["id-runs"][..], "failed"),
        (&["--on-failure", "continue"], &["id-other", "id-runs"], "failed"),
        (&["--on-failure", "undo"], &[], "failed"),
    ] {
        let Some(site) = Site::new(body) else { return };
        let applied = site.run(&[&["apply", "steps.hcl"], arguments].concat()).ended(6);
        applied.says(&["failed action.make.bad: denied: no", "skipped action.make.later"]);
        assert_eq!(site.things(), things, "{arguments:?}");
        assert_eq!(lines(&site.record()).last().unwrap()["status"], words);
    }
}

#[test]
fn a_step_is_tried_again_only_when_it_says_so_and_nothing_was_done() {
    let body = |retry: &str| {
        format!("  action \"make\" \"a\" {{\n    name = \"a\"\n    how  = \"once\"\n    {retry}\n  }}\n")
    };
    let Some(site) = Site::new(&body("")) else { return };
    site.run(&["apply", "steps.hcl"]).ended(6).says(&["unavailable: not now"]);
    let Some(site) = Site::new(&body("lifecycle {\n      retry { attempts = 2 }\n    }")) else { return };
    site.run(&["apply", "steps.hcl"]).ended(0).says(&["again action.make.a: unavailable"]);
    assert_eq!(site.words(), ["run", "sent", "failed", "sent", "ok", "outputs", "end"]);
    // Codes that are named go before those that are so by themselves.
    let named = |codes: &str| {
        body(&format!(
            "lifecycle {{\n      retry {{\n        attempts = 2\n        codes = [{codes}]\n        max = \"1s\"\n      }}\n    }}"
        ))
    };
    let Some(site) = Site::new(&named("\"busy\"")) else { return };
    site.run(&["apply", "steps.hcl"]).ended(6).says(&["unavailable: not now"]);
    let Some(site) = Site::new(&named("\"unavailable\", \"busy\"").replace("\"once\"", "\"fail:busy\""))
    else {
        return;
    };
    site.run(&["apply", "steps.hcl"])
        .ended(6)
        .says(&["again action.make.a: busy", "failed action.make.a: busy"]);
    assert_eq!(site.asked("execute"), 2);
}

#[test]
fn a_provider_that_does_not_know_undo_is_told_of_the_setting() {
    let Some(site) = Site::new("  action \"make\" \"a\" {\n    name = \"a\"\n    how  = \"old\"\n  }") else {
        return;
    };
    let applied = site.run(&["apply", "steps.hcl"]).ended(6);
    applied.says(&["invalid_request: unknown member undo", "set `compat.undo: never`"]);
    assert_eq!(site.asked("execute"), 1, "it is never repeated by itself");
    let steps = site.read("steps.hcl").replace("bin/things\"", "bin/things\", compat = { undo = \"never\" }");
    site.steps(&steps);
    site.run(&["apply", "steps.hcl"]).ended(0);
    assert_eq!(site.calls().last().unwrap()["undo"], serde_json::Value::Null);
}

#[test]
fn undos_are_asked_for_only_when_they_are_recorded_and_nothing_else_takes_the_step_back() {
    let body = r#"
  action "make" "a" { name = "a" }
  action "make" "b" {
    name = "b"
    lifecycle {
      teardown "unmake" { id = self.id }
    }
  }
"#;
    let undo_of = |site: &Site, name: &str| {
        let calls = site.calls();
        calls.iter().find(|call| call["attrs"]["name"] == name).unwrap()["undo"].clone()
    };
    let Some(site) = Site::new(body) else { return };
    site.run(&["apply", "steps.hcl"]).ended(0);
    assert_eq!((undo_of(&site, "a"), undo_of(&site, "b")), (true.into(), serde_json::Value::Null));
    site.undo().ended(0);
    assert!(site.things().is_empty());
    let Some(site) = Site::new(body) else { return };
    site.run(&["apply", "steps.hcl", "--no-record"]).ended(0);
    assert_eq!(undo_of(&site, "a"), serde_json::Value::Null);
    assert!(site.records().is_empty());
}

#[test]
fn providers_that_can_tell_are_asked_before_anything_is_done() {
    let body = "  action \"make\" \"a\" { name = \"a\" }\n  action \"make\" \"b\" {\n    name = action.make.a.id\n    size = 5\n  }";
    let Some(site) = Site::new(body) else { return };
    site.says("more", r#"{"x_extensions":{"validate":true}}"#);
    site.says("diagnostics", r#"[{"severity":"error","path":["size"],"message":"too small"}]"#);
    site.run(&["apply", "steps.hcl"]).ended(3).says(&[
        "steps.hcl:8: action.make.b: `size`: too small",
        // The first one has no size of its own, so its own line is told.
        "steps.hcl:5: action.make.a: `size`: too small",
    ]);
    assert_eq!((site.asked("validate"), site.asked("execute")), (2, 0));
    let calls = site.calls();
    let asked = calls.iter().rfind(|call| call["what"] == "validate").unwrap();
    assert_eq!(
        (&asked["attrs"]["name"], &asked["unknown"]),
        (&serde_json::Value::Null, &serde_json::json!([["name"]]))
    );
    assert!(site.records().is_empty());
    site.says("diagnostics", r#"[{"severity":"warning","path":[],"message":"odd"}]"#);
    site.run(&["apply", "steps.hcl"]).ended(0).says(&["warning: action.make.a: odd"]);
}
