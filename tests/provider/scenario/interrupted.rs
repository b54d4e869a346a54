//! Signals: what runs is called off, what was done is taken back.

use rustix::process::Signal;

use super::site::{Site, until};

const SLOW: &str = r#"
  action "make" "a" { name = "a" }
  action "make" "b" {
    name       = "b"
    how        = "stuck"
    depends_on = [action.make.a]
  }
  action "make" "c" {
    name       = "c"
    depends_on = [action.make.b]
  }
"#;

fn begun(site: &Site) {
    until("the second step", || site.calls().iter().any(|call| call["attrs"]["name"] == "b"));
}

#[test]
fn a_signal_calls_off_what_runs_and_takes_back_what_was_done() {
    for signal in [Signal::INT, Signal::TERM] {
        let Some(site) = Site::new(SLOW) else { return };
        site.says("more", r#"{"x_extensions":{"cancel":true}}"#);
        let running = site.start(&["apply", "steps.hcl"]);
        begun(&site);
        running.signal(signal);
        let applied = running.end().ended(9);
        applied.says(&[
            "failed action.make.b: cancelled: stopped",
            "skipped action.make.c",
            "undone action.make.a",
            "interrupted",
        ]);
        assert_eq!(site.asked("cancelled"), 1);
        assert!(site.things().is_empty());
        site.undo().ended(0).says(&["nothing is left"]);
    }
}

#[test]
fn what_was_done_can_be_kept() {
    let Some(site) = Site::new(SLOW) else { return };
    site.says("more", r#"{"x_extensions":{"cancel":true}}"#);
    let running = site.start(&["apply", "steps.hcl", "--on-interrupt", "keep"]);
    begun(&site);
    running.signal(Signal::INT);
    running.end().ended(9);
    assert_eq!(site.things(), ["id-a"]);
    site.undo().ended(0);
    assert!(site.things().is_empty());
}

#[test]
fn a_provider_that_cannot_be_told_is_replaced_and_its_step_is_unknown() {
    let Some(site) = Site::new(SLOW) else { return };
    let running = site.start(&["apply", "steps.hcl"]);
    begun(&site);
    running.signal(Signal::TERM);
    let applied = running.end().ended(9);
    applied.says(&["unknown action.make.b", "left step make.b", "undone action.make.a"]);
    assert!(site.things().is_empty());
}

#[test]
fn a_record_in_use_is_left_alone() {
    let Some(site) = Site::new(SLOW) else { return };
    let running = site.start(&["apply", "steps.hcl"]);
    begun(&site);
    site.undo().ended(4).says(&["another apply or undo works on it"]);
    drop(running);
}
