//! Providers' steps in a cycle: where they stand, what they see, and when what they did is taken back.

use std::time::Duration;

use super::world::{Says, World, all, cause, error, plain, world};
use crate::host::messages::Ending;
use crate::host::resume::{Material, Resume};
use crate::host::steps::{Features, Step};
use crate::steps::{Ended, Left, LeftWhy};

fn with_steps() -> World {
    world(Features { steps: true, ..plain() })
}

fn failed(step: &str, unknown: bool) -> Ended {
    Ended::Failed { step: step.to_owned(), error: "denied: no".to_owned(), unknown }
}

fn left(why: LeftWhy) -> Left {
    Left { step: "dns".into(), provider: "p".into(), action: "drop".into(), key: "r/dns".into(), why }
}

#[test]
fn steps_stand_around_configure_and_see_the_server_and_the_decision() {
    let story = world(Features { steps: true, ..all() }).play();
    assert_eq!(story.ending, Ending::Provisioned);
    let at = |what: &str| story.asked.iter().position(|asked| asked.contains(what)).unwrap();
    assert!(at("issue for") < at("steps_before"), "{:?}", story.asked);
    assert!(at("steps_before") < at("#configure") && at("#configure") < at("steps_after"));
    assert!(at("steps_after") < at("#restart"));
    let roots = &story.data[&Step::Before];
    assert_eq!(roots["server"]["identity"], "web1.example.net");
    assert!(roots["server"]["facts"].is_object() && roots["server"]["jwt"].is_object());
    assert!(roots["server"]["ed25519_pubkey"]["public_key"].is_string());
    assert_eq!(roots["helper"]["configuration"]["plugin.choria.server.provision"], "false");
    assert_eq!(&story.data[&Step::After], roots);
}

#[test]
fn without_steps_nothing_is_different() {
    let story = world(plain()).play();
    assert!(!story.asked.iter().any(|asked| asked.contains("steps") || asked.contains("take back")));
}

#[test]
fn whatever_fails_later_what_was_done_is_taken_back_and_then_the_cycle_fails() {
    let mut world = with_steps();
    world.steps_end.insert(Step::After, failed("cmdb", false));
    let story = world.play();
    assert_eq!(story.asked.last().unwrap(), "take back: step cmdb failed: denied: no");
    assert_eq!((cause(&story), error(&story)), ("step", "step cmdb failed: denied: no"));
    assert!(!story.asked.iter().any(|asked| asked.contains("#restart")));

    for (step, says) in [(Step::Configure, Says::Refuses("no")), (Step::Restart, Says::Refuses("no"))] {
        let mut world = with_steps();
        world.says.insert(step, vec![says; 10]);
        let story = world.play();
        assert!(story.asked.last().unwrap().starts_with("take back: "), "{:?}", story.asked);
        assert_eq!(cause(&story), step.name());
    }
}

#[test]
fn a_cycle_that_the_next_one_goes_on_with_takes_nothing_back() {
    for step in [Step::Configure, Step::Restart] {
        let mut world = with_steps();
        world.says.insert(step, vec![Says::Nothing; 10]);
        let story = world.play();
        assert!(story.reply_lost, "its reply may be lost");
        assert!(!story.asked.iter().any(|asked| asked.contains("take back")), "{:?}", story.asked);
    }
}

#[test]
fn a_pause_between_steps_takes_back_and_leaves_the_host_as_it_was() {
    let mut world = with_steps();
    world.steps_end.insert(Step::Before, Ended::Stopped);
    let story = world.play();
    assert_eq!(story.asked.last().unwrap(), "take back: interrupted");
    assert_eq!(story.ending, Ending::Interrupted);
}

#[test]
fn what_cannot_be_taken_back_is_the_failure() {
    let cases = [
        (LeftWhy::Failed(Some("unavailable: later".into())), "take_back"),
        (LeftWhy::Unknown, "step_unknown"),
        (LeftWhy::UndoUnknown, "step_unknown"),
        (LeftWhy::Lost, "step_unknown"),
    ];
    for (why, expected) in cases {
        let mut world = with_steps();
        world.steps_end.insert(Step::After, failed("cmdb", false));
        world.left = vec![left(why)];
        let story = world.play();
        assert_eq!(cause(&story), expected);
        assert!(error(&story).starts_with("step cmdb failed: denied: no; not taken back: step dns: "));
    }
    let mut world = with_steps();
    world.steps_end.insert(Step::Before, failed("cmdb", true));
    assert_eq!(cause(&world.play()), "step_unknown");
}

#[test]
fn a_host_with_something_to_take_back_gets_nothing_else() {
    let mut world = with_steps();
    world.resume = Some(Resume::TakeBack);
    world.steps_open = true;
    let story = world.play();
    assert_eq!(story.asked, ["take back: taken_back"]);
    assert_eq!(story.ending, Ending::TakenBack);
}

#[test]
fn a_cycle_that_goes_on_does_the_steps_that_are_left() {
    let mut world = with_steps();
    world.resume = Some(Resume::Restart { sent: false });
    world.steps_open = true;
    let story = world.play();
    assert_eq!(story.asked, ["steps_after", "choria_provision#restart"]);
    assert!(story.data[&Step::After].is_null(), "what they refer to was kept");

    let mut world = with_steps();
    world.resume = Some(Resume::Restart { sent: true });
    world.steps_open = true;
    assert_eq!(world.play().asked, ["choria_provision#restart"]);

    let material = Material::new(zeroize::Zeroizing::new(r#"{"token":"","config":"{}"}"#.to_owned()));
    let mut world = with_steps();
    world.resume = Some(Resume::Configure(material));
    world.steps_open = true;
    let story = world.play();
    assert_eq!(story.asked, ["choria_provision#configure", "steps_after", "choria_provision#restart"]);
}

#[test]
fn a_key_that_is_replaced_after_steps_ends_the_cycle() {
    let mut world = world(Features { steps: true, ..all() });
    world.late_key_at = Some(Step::Configure);
    let story = world.play();
    assert_eq!(cause(&story), "key_proof");
    assert!(story.asked.last().unwrap().starts_with("take back: "));
    assert!(story.waits.iter().all(|wait| *wait < Duration::from_mins(1)));
}

#[test]
fn whoever_may_do_nothing_any_more_leaves_the_taking_back_for_later() {
    let mut world = with_steps();
    world.bar_at = Some(Step::Configure);
    let story = world.play();
    assert!(!story.asked.iter().any(|asked| asked.contains("take back")), "{:?}", story.asked);
}
