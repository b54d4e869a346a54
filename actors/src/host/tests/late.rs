//! Requests that a host carries out long after they were given up.

use super::world::{all, cause, world};
use crate::host::{Ending, Step};

#[test]
fn a_key_that_a_late_request_replaced_is_made_again_with_all_that_was_made_of_it() {
    for step in [Step::Inventory, Step::Helper, Step::ServerToken] {
        let mut world = world(all());
        world.late_key_at = Some(step);
        let story = world.play();
        let count = |what: &str| story.asked.iter().filter(|asked| asked.starts_with(what)).count();
        assert_eq!(story.ending, Ending::Provisioned, "{step:?}");
        assert_eq!(count("choria_provision#gen25519"), 2, "{step:?}: {:?}", story.asked);
        assert_eq!(count("choria_provision#jwt"), 1, "{step:?}");
        assert_eq!(count("choria_provision#configure"), 1, "{step:?}");
    }
}

#[test]
fn a_host_that_was_configured_with_a_key_it_no_longer_has_is_configured_again_before_its_restart() {
    let mut world = world(all());
    world.late_key_at = Some(Step::Configure);
    let story = world.play();
    assert_eq!(story.ending, Ending::Provisioned);
    let order: Vec<&str> =
        story.asked.iter().rev().take(6).rev().map(|asked| asked.split(' ').next().unwrap()).collect();
    assert_eq!(
        order,
        [
            "choria_provision#gen25519",
            "rpcutil#inventory",
            "helper",
            "issue",
            "choria_provision#configure",
            "choria_provision#restart"
        ]
    );
}

#[test]
fn late_requests_without_end_end_the_cycle() {
    let mut world = world(all());
    world.late_key_at = Some(Step::Inventory);
    world.late_keys_for_ever = true;
    let story = world.play();
    assert_eq!(cause(&story), "key_proof");
    assert!(!story.asked.iter().any(|asked| asked.ends_with("#configure")));
}
