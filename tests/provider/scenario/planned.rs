//! What a plan says, and that it starts nothing.

use super::site::Site;

const TWO: &str = r#"
  variable "size" {
    type    = number
    default = 12345678901234567.50
  }
  action "make" "second" {
    name = "b-${action.make.first.id}"
    size = action.make.first.size
  }
  action "make" "first" {
    name = "a"
    size = var.size
    file = "data/x"
  }
  output "made" {
    value = [action.make.second.id, var.size]
  }
"#;

#[test]
fn a_plan_shows_order_and_values_and_starts_nothing_but_the_schema_question() {
    let Some(site) = Site::new(TWO) else { return };
    let plan = site.run(&["plan", "steps.hcl"]).ended(0);
    plan.says(&[
        "scenario demo: 2 actions",
        "1. action.make.first (things)",
        "2. action.make.second (things), after action.make.first",
        "name = <string>",
        "size = 12345678901234567.50",
        "made = [<string>,12345678901234567.50]",
        "taken back as the provider answers",
        &format!("file = \"{}/data/x\"", site.dir.path().canonicalize().unwrap().display()),
    ]);
    assert_eq!((site.asked("schema"), site.asked("start"), site.asked("configure")), (1, 0, 0));
    assert!(site.records().is_empty());
    let json = site.run(&["plan", "steps.hcl", "--json"]).ended(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["steps"][1]["after"][0], "make.first");
    assert_eq!(json["steps"][1]["attrs"]["name"]["unknown"], "string");
}

#[test]
fn the_schema_of_a_pinned_program_is_asked_for_once() {
    let Some(site) = Site::new("") else { return };
    let digest = {
        use sha2::Digest as _;
        hex::encode(sha2::Sha256::digest(std::fs::read(site.path("bin/things")).unwrap()))
    };
    let steps = |digest: &str| {
        format!(
            "scenario \"demo\" {{\n  required_providers {{\n    things = {{ source = \"exec:./bin/things\", sha256 = \"{digest}\" }}\n  }}\n  \
             action \"make\" \"x\" {{ name = \"x\" }}\n}}\n"
        )
    };
    site.steps(&steps(&digest));
    for _ in 0..3 {
        site.run(&["plan", "steps.hcl"]).ended(0);
    }
    assert_eq!(site.asked("schema"), 1);
    // Another program under the same name is refused, and not asked.
    std::fs::write(site.path("bin/things"), "#!/bin/sh\necho '{}'\n").unwrap();
    site.run(&["plan", "steps.hcl"]).ended(4).says(&["has the checksum"]);
}

#[test]
fn a_program_without_the_subcommand_can_be_asked_by_describe() {
    let Some(site) = Site::new(r#"  action "make" "x" { name = "x" }"#) else { return };
    site.says("no_schema", "true");
    site.run(&["plan", "steps.hcl"]).ended(4).says(&["no such subcommand"]);
    let steps = site
        .read("steps.hcl")
        .replace("\"exec:./bin/things\"", "\"exec:./bin/things\", compat = { schema_probe = \"describe\" }");
    site.steps(&steps);
    site.run(&["plan", "steps.hcl"]).ended(0).says(&["action.make.x"]);
    assert_eq!((site.asked("start"), site.asked("configure")), (1, 0));
}

#[test]
fn every_fault_is_named_with_its_line() {
    let Some(site) = Site::new("") else { return };
    site.steps(
        r#"scenario "demo" {
  required_providers {
    things = { source = "exec:./bin/things" }
  }
  provider "things" {
    token = action.make.a.id
  }
  action "make" "a" {
    nam  = "x"
    kind = "c"
  }
  action "make" "b" {
    name = action.make.a.idd
    size = [1]
    tags = var.none
  }
  action "mak" "c" {
  }
}
"#,
    );
    site.run(&["plan", "steps.hcl"]).ended(3).says(&[
        "steps.hcl:6: `action.make.a.id`: `action` cannot be used here",
        "steps.hcl:17: no provider has an action `mak`; known: make, silent, unmake",
    ]);
    let steps = site.read("steps.hcl").replace("action \"mak\"", "action \"silent\"");
    site.steps(&steps);
    let plan = site.run(&["plan", "steps.hcl"]).ended(3);
    plan.says(&[
        "steps.hcl:8: `name`: required",
        "steps.hcl:9: `nam`: no such attribute",
        "steps.hcl:10: `kind`: none of the values allowed",
        "steps.hcl:13: `action.make.a.idd`: there is no `idd`; known: id, size",
        "steps.hcl:14: `size`: number needed, list found",
        "steps.hcl:15: `var.none`: there is no variable `none`",
    ]);
    assert_eq!(site.asked("start"), 0);
}

#[test]
fn variables_come_from_arguments_files_the_environment_and_defaults_in_that_order() {
    let Some(site) = Site::new(
        r#"
  variable "a" {}
  variable "b" {}
  variable "c" {}
  variable "d" { default = "default" }
  variable "list" {
    type    = list(number)
    default = []
  }
  action "make" "x" {
    name = "${var.a} ${var.b} ${var.c} ${var.d}"
    size = var.list[0]
  }
"#,
    ) else {
        return;
    };
    site.write("values.hcl", "b = \"file\"\na = \"file\"\nlist = [7]\n");
    site.write("values.json", r#"{"b":"json"}"#);
    let run = |arguments: &[&str]| {
        let mut command = site.command(arguments);
        command.env("QM_VAR_c", "environment").env("QM_VAR_b", "environment");
        let output = command.output().unwrap();
        (output.status.code(), crate::support::text(&output.stdout), crate::support::text(&output.stderr))
    };
    let (code, out, err) = run(&[
        "plan",
        "steps.hcl",
        "--var",
        "a=argument",
        "--var-file",
        "values.hcl",
        "--var-file",
        "values.json",
    ]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("name = \"argument json environment default\"") && out.contains("size = 7"),
        "{out}"
    );
    let (code, _, err) = run(&["plan", "steps.hcl", "--var", "list=[\"x\"]"]);
    assert!(code == Some(2) && err.contains("`list` is of type list(number): `[0]`: number needed"), "{err}");
    let (code, _, err) = run(&["plan", "steps.hcl", "--var", "e=1"]);
    assert!(code == Some(2) && err.contains("there is no variable `e`"), "{err}");
    let (code, _, err) = run(&["plan", "steps.hcl", "--var", "list=[1]"]);
    assert!(code == Some(3) && err.contains("steps.hcl:6: the variable `a` has no value"), "{err}");
}
