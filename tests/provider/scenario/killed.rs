//! SIGKILL at every point of apply and of undo: the record says what is left, and undo takes it back.

use rustix::process::Signal;

use super::site::{Running, Site, lines, until};

const THREE: &str = r#"
  action "make" "a" { name = "a" }
  action "make" "b" { name = "b-${action.make.a.id}" }
  action "make" "c" { name = "c-${action.make.b.id}" }
"#;
/// The provider can be asked what became of a step, and its undo may be repeated.
const MORE: &str =
    r#"{"x_extensions":{"lookup":true,"call_context":true},"actions":{"unmake":{"x_idempotent":true}}}"#;

fn site() -> Option<Site> {
    let site = Site::new(THREE)?;
    site.says("more", MORE);
    Some(site)
}

/// Kills it once the record has so many lines; false when it ended before.
fn kill_at(site: &Site, mut running: Running, count: usize) -> bool {
    let mut killed = false;
    until("the end", || {
        let written = site.records().first().map_or(0, |record| lines(record).len());
        if written >= count && !running.has_ended() {
            running.signal(Signal::KILL);
            killed = true;
        }
        killed || running.has_ended()
    });
    running.end();
    killed
}

/// No step was sent twice, and what is there is what the record says.
fn nothing_was_done_twice(site: &Site) {
    let calls = site.calls();
    let mut made: Vec<&str> = calls
        .iter()
        .filter(|call| call["action"] == "make" && call["what"] == "execute")
        .filter_map(|call| call["attrs"]["name"].as_str())
        .collect();
    let count = made.len();
    made.dedup();
    assert_eq!(made.len(), count, "{made:?}");
}

#[test]
fn apply_killed_at_every_line_of_its_record_is_taken_back() {
    for count in 1..=8 {
        let Some(site) = site() else { return };
        let running = site.start(&["apply", "steps.hcl"]);
        kill_at(&site, running, count);
        site.undo().ended(0);
        assert!(site.things().is_empty(), "after {count} lines: {:?}", site.things());
        nothing_was_done_twice(&site);
    }
}

#[test]
fn apply_killed_while_each_step_is_being_done_is_taken_back() {
    for name in ["a", "b-id-a", "c-id-b-id-a"] {
        let Some(site) = site() else { return };
        let running = site.start(&["apply", "steps.hcl"]);
        until("the step", || {
            site.calls().iter().any(|call| call["what"] == "execute" && call["attrs"]["name"] == name)
        });
        running.signal(Signal::KILL);
        running.end();
        site.undo().ended(0);
        assert!(site.things().is_empty(), "{name}: {:?}", site.things());
        nothing_was_done_twice(&site);
    }
}

#[test]
fn undo_killed_at_every_line_it_adds_goes_on() {
    for count in 1..=7 {
        let Some(site) = site() else { return };
        site.run(&["apply", "steps.hcl"]).ended(0);
        let before = lines(&site.record()).len();
        let running = site.start(&["undo", site.record().to_str().unwrap()]);
        kill_at(&site, running, before + count);
        site.undo().ended(0);
        assert!(site.things().is_empty(), "after {count} lines: {:?}", site.things());
    }
}
