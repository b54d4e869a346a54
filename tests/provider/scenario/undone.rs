//! What undo takes back, and what it says of the rest.

use super::site::{Site, lines};

const TWO: &str = r#"
  action "make" "a" { name = "a" }
  action "make" "b" { name = "b-${action.make.a.id}" }
"#;

#[test]
fn a_run_is_taken_back_newest_first_and_only_once() {
    let Some(site) = Site::new(TWO) else { return };
    site.run(&["apply", "steps.hcl"]).ended(0);
    let undone = site.undo().ended(0);
    undone.says(&[
        "undo action.make.b by unmake",
        "undone action.make.b (",
        "undone action.make.a (",
        "taken back",
    ]);
    let ids: Vec<_> = site
        .calls()
        .iter()
        .filter(|call| call["action"] == "unmake")
        .map(|call| call["attrs"]["id"].clone())
        .collect();
    assert_eq!(ids, ["id-b-id-a", "id-a"]);
    assert!(site.things().is_empty());
    assert_eq!(site.words()[7..], ["undoing", "undo_sent", "undone", "undo_sent", "undone"]);
    let before = site.calls().len();
    site.undo().ended(0).says(&["nothing is left to take back"]);
    assert_eq!(site.calls().len(), before, "nothing is started for it");
}

#[test]
fn what_is_gone_already_counts_as_undone_and_what_fails_is_told_and_tried_the_next_time() {
    let Some(site) = Site::new(TWO) else { return };
    site.run(&["apply", "steps.hcl"]).ended(0);
    site.says("things", r#"{"id-b-id-a":""}"#);
    site.says("undo_fails", "3");
    let undone = site.undo().ended(6);
    undone.says(&[
        "not undone action.make.b: failed: cannot yet",
        "undone action.make.a",
        "not all was taken back",
    ]);
    assert_eq!(site.things(), ["id-b-id-a"]);
    site.undo().ended(0).says(&["undone action.make.b"]);
    assert!(site.things().is_empty());
}

#[test]
fn a_failed_undo_is_retried() {
    let Some(site) = Site::new(TWO) else { return };
    site.run(&["apply", "steps.hcl"]).ended(0);
    site.says("undo_fails", "1");
    site.undo().ended(0);
    assert!(site.things().is_empty());
}

#[test]
fn a_provider_that_declares_something_else_is_not_used_unasked() {
    let Some(site) = Site::new(TWO) else { return };
    site.run(&["apply", "steps.hcl"]).ended(0);
    site.says("more", r#"{"version":"2.0.0"}"#);
    site.undo().ended(4).says(&["declares something else than it did (version 2.0.0, then 1.0.0)"]);
    assert_eq!(site.things().len(), 2);
    site.run(&["undo", site.record().to_str().unwrap(), "--accept-changes"]).ended(0);
    assert!(site.things().is_empty());
}

#[test]
fn a_record_that_was_cut_off_or_is_none() {
    let Some(site) = Site::new(TWO) else { return };
    site.write("empty.jsonl", "{\"t\":\"ru");
    site.run(&["undo", "empty.jsonl"]).ended(0).says(&["had not begun"]);
    site.write("other.jsonl", "{\"a\":1}\n");
    site.run(&["undo", "other.jsonl"]).ended(4).says(&["other.jsonl is no record of a run"]);
    std::fs::remove_file(site.path("empty.jsonl")).unwrap();
    std::fs::remove_file(site.path("other.jsonl")).unwrap();
    site.run(&["apply", "steps.hcl"]).ended(0);
    // The last line was cut off while it was written.
    let record = site.record();
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, format!("{text}{{\"t\":\"undoi")).unwrap();
    site.undo().ended(0);
    assert_eq!(lines(&record).last().unwrap()["t"], "undone");
    site.run(&["undo", "missing.jsonl"]).ended(4);
}

#[test]
fn an_undo_that_is_a_list_is_made_in_its_order() {
    let Some(site) = Site::new("  action \"make\" \"a\" { name = \"a\" }") else { return };
    site.run(&["apply", "steps.hcl"]).ended(0);
    let record = site.record();
    let text = std::fs::read_to_string(&record).unwrap();
    let one = r#""undo":{"action":"unmake","attrs":{"id":"id-a"}}"#;
    let two =
        r#""undo":[{"action":"silent","attrs":{"name":"first"}},{"action":"unmake","attrs":{"id":"id-a"}}]"#;
    assert!(text.contains(one), "{text}");
    std::fs::write(&record, text.replace(one, two)).unwrap();
    site.undo().ended(0);
    let actions: Vec<_> = site
        .calls()
        .iter()
        .filter(|call| call["what"] == "execute")
        .map(|call| call["action"].clone())
        .collect();
    assert_eq!(actions, ["make", "silent", "unmake"]);
}
