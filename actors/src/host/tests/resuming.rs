//! A cycle that goes on where an earlier one was cut off.

use super::world::{Says, Story, World, all, cause, world};
use crate::host::messages::Ending;
use crate::host::resume::Resume;
use crate::host::steps::Step;

const CONFIGURE: &str = "choria_provision#configure";
const RESTART: &str = "choria_provision#restart";

/// A cycle to whose `configure` no reply came.
fn cut_off() -> Story {
    let silence = vec![Says::Nothing; 5];
    world(all()).on(Step::Configure, silence).play()
}

fn resumed(resume: Resume, change: impl FnOnce(World) -> World) -> Story {
    change(World { resume: Some(resume), ..world(all()) }).play()
}

#[test]
fn after_a_lost_reply_the_same_is_sent_again_and_nobody_else_is_asked() {
    let first = cut_off();
    assert!(first.reply_lost);
    let second = resumed(first.unfinished.clone().unwrap(), |world| world);
    assert_eq!(second.asked, [CONFIGURE, RESTART]);
    assert_eq!(second.ending, Ending::Provisioned);
    assert_eq!(second.data[&Step::Configure], first.data[&Step::Configure]);
    assert_eq!(second.unfinished, first.unfinished);
}

#[test]
fn what_is_kept_for_it_holds_no_token_of_the_site() {
    let Some(Resume::Configure(material)) = cut_off().unfinished else { panic!("nothing to make good") };
    assert!(material.expose().contains("server.jwt.text") && !material.expose().contains("s3cret"));
    assert!(!format!("{material:?}").contains("server.jwt.text"));
}

#[test]
fn a_configured_host_is_told_to_restart_even_while_paused() {
    let restart = Resume::Restart { sent: false };
    let story = resumed(restart, |world| World { pause_at: Some(Step::Jwt), ..world });
    assert_eq!((story.asked, story.ending), (vec![RESTART.to_owned()], Ending::Provisioned));
}

#[test]
fn silence_of_a_host_that_was_never_told_to_restart_is_a_failure() {
    let silence = vec![Says::Nothing; 3];
    let story = resumed(Resume::Restart { sent: false }, |world| world.on(Step::Restart, silence));
    assert_eq!((cause(&story), story.asked.len(), story.reply_lost), ("restart", 3, true));
}

#[test]
fn silence_of_a_host_that_may_have_restarted_is_none_and_is_not_waited_for_twice() {
    let story = resumed(Resume::Restart { sent: true }, |world| world.on(Step::Restart, [Says::Nothing]));
    assert_eq!((story.asked.len(), story.ending, story.reply_lost), (1, Ending::Provisioned, true));
}

#[test]
fn a_host_that_has_restarted_into_its_new_life_is_done() {
    let refusal = [Says::Refuses("Cannot restart a server that is not in provisioning mode")];
    let story = resumed(Resume::Restart { sent: true }, |world| world.on(Step::Restart, refusal));
    assert_eq!((story.ending, story.reply_lost), (Ending::Provisioned, false));
}

#[test]
fn another_leader_bars_what_was_left_undone() {
    let story = resumed(Resume::Restart { sent: false }, |world| World { bar_at: Some(Step::Jwt), ..world });
    assert_eq!((cause(&story), story.asked.len()), ("restart", 0));
}

#[test]
fn a_try_that_never_left_takes_nothing_back_of_one_that_may_have_arrived() {
    let tries = [Says::Nothing, Says::Unsent, Says::Unsent, Says::Unsent, Says::Unsent];
    let story = world(all()).on(Step::Configure, tries).play();
    assert_eq!((cause(&story), story.reply_lost), ("configure", true));
    let never = world(all()).on(Step::Configure, vec![Says::Unsent; 5]).play();
    assert_eq!((cause(&never), never.reply_lost), ("configure", false));
}

#[test]
fn a_host_that_is_configured_stays_so_though_its_restart_never_left() {
    let story = world(all()).on(Step::Restart, vec![Says::Unsent; 3]).play();
    assert_eq!((cause(&story), story.reply_lost), ("restart", true));
    let refused = world(all()).on(Step::Restart, vec![Says::Refuses("no"); 3]).play();
    assert_eq!((cause(&refused), refused.reply_lost), ("restart", false));
}
