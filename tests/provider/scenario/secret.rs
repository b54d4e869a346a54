//! A secret stands in no record, log, trace or message, and what needs it is done all the same.

use std::fs;
use std::path::{Path, PathBuf};

use super::site::Site;
use crate::support::text;

const CANARY: &str = "c4n4ry-0f-the-m1ne";

const BODY: &str = r#"
  variable "secret" {
    type      = string
    sensitive = true
  }
  provider "things" {
    token = "tok-${var.secret}"
    plain = var.secret
  }
  action "make" "a" {
    name = "a"
    pin  = var.secret
    note = "noted ${var.secret}"
  }
  action "make" "b" {
    name       = "b"
    note       = var.secret
    how        = "fail:denied"
    depends_on = [action.make.a]
  }
  output "told" { value = "x ${var.secret}" }
"#;

/// Every file of the site but those of the provider.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn nowhere(site: &Site, what: &str, said: &[&str]) {
    for said in said {
        assert!(!said.contains(CANARY), "{what} says it: {said}");
    }
    let ours = |path: &PathBuf| !path.starts_with(site.path("bin"));
    for file in files(site.dir.path()).into_iter().filter(ours) {
        let content = fs::read(&file).unwrap();
        assert!(!text(&content).contains(CANARY), "{what}: it stands in {}", file.display());
    }
}

#[test]
fn a_sensitive_variable_is_nowhere_but_where_it_belongs() {
    let Some(site) = Site::new(BODY) else { return };
    site.says("chatty", "true");
    let run = |arguments: &[&str]| {
        let mut command = site.command(arguments);
        let output = command.env("QM_VAR_secret", CANARY).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = run(&["plan", "steps.hcl"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("pin  = (sensitive)") && out.contains("told = (sensitive)"), "{out}");
    nowhere(&site, "plan", &[&out, &err]);
    for arguments in [&["--debug"][..], &["--json", "--debug", "--trace-wire", "trace"]] {
        let (code, out, err) = run(&[&["apply", "steps.hcl"], arguments].concat());
        assert_eq!(code, Some(6), "{out}{err}");
        assert!(out.contains("no: ***") && err.contains("asked for"), "{out}{err}");
        nowhere(&site, "apply", &[&out, &err]);
        // It did reach the provider.
        assert!(site.read("bin/things.json").contains(CANARY) && site.read("bin/calls").contains(CANARY));
        let record = site.record();
        let content = fs::read_to_string(&record).unwrap();
        assert!(content.contains("\"masked\":[\"secret\"]") && content.contains("x_sealed"), "{content}");
        // Its own undo needs it, which only this machine's key opens; the configuration has to be given again.
        site.undo().ended(3).says(&["the variable `secret` has no value"]);
        let (code, out, err) = run(&["undo", record.to_str().unwrap(), "--trace-wire", "trace", "--debug"]);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(site.things().is_empty());
        nowhere(&site, "undo", &[&out, &err]);
        fs::remove_file(record).unwrap();
    }
    assert!(site.read("trace").contains("\"from\":\"provider\""));
}

#[test]
fn without_the_key_an_undo_says_that_it_cannot_be_read() {
    let Some(site) = Site::new(BODY) else { return };
    let with = |arguments: &[&str]| {
        let output = site.command(arguments).env("QM_VAR_secret", CANARY).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    with(&["apply", "steps.hcl"]);
    fs::remove_file(site.path(".local/state/quartermaster/record.key")).unwrap();
    let (code, out, err) = with(&["undo", site.record().to_str().unwrap()]);
    assert_eq!(code, Some(6), "{out}{err}");
    assert!(out.contains("is not readable any more"), "{out}");
}
