//! Steps of which nobody knows whether they were done.

use super::site::Site;

const DIES: &str = "  action \"make\" \"a\" {\n    name = \"a\"\n    how  = \"die-after\"\n  }";

#[test]
fn without_a_way_to_learn_it_an_operator_has_to_tell() {
    let Some(site) = Site::new(DIES) else { return };
    let applied = site.run(&["apply", "steps.hcl"]).ended(6);
    applied.says(&["unknown action.make.a: "]);
    assert_eq!((site.asked("execute"), site.things().len()), (1, 1), "it is not repeated by itself");
    let undone = site.undo().ended(6);
    undone.says(&["left step make.a: whether things did make is unknown", "--decided"]);
    assert_eq!(site.asked("execute"), 1);
    let record = site.record();
    site.run(&["undo", record.to_str().unwrap(), "--decided"]).ended(0);
    site.undo().ended(0).says(&["nothing is left"]);
}

#[test]
fn a_provider_that_can_be_asked_settles_it_at_once() {
    let Some(site) = Site::new(DIES) else { return };
    site.says("more", r#"{"x_extensions":{"lookup":true,"call_context":true}}"#);
    site.run(&["apply", "steps.hcl"]).ended(0).says(&["ok action.make.a"]);
    assert_eq!((site.asked("execute"), site.asked("lookup")), (1, 1));
    site.undo().ended(0);
    assert!(site.things().is_empty());
}

#[test]
fn an_action_that_is_safe_to_repeat_is_repeated() {
    let Some(site) = Site::new(DIES) else { return };
    site.says("more", r#"{"actions":{"make":{"x_idempotent":true}}}"#);
    site.run(&["apply", "steps.hcl"]).ended(0);
    assert_eq!(site.asked("execute"), 2);
    assert_eq!(site.words(), ["run", "sent", "sent", "ok", "outputs", "end"]);
    site.undo().ended(0);
    assert!(site.things().is_empty());
}
