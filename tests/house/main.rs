//! The rules of the house, checked against the tree itself. A broken rule fails with its own sentence; the checkers are
//! tested on small made-up trees, so that each has been seen failing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod code;
mod dependencies;
mod layout;
mod made_up;
mod packages;
mod tree;

use tree::{Offence, Tree};

/// Fails with every offence, each with the sentence of its rule.
fn check(rule: impl Fn(&Tree) -> Vec<Offence>) {
    let offences = rule(Tree::of_this_repository());
    let lines: Vec<_> = offences.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn the_wire_package_is_pure() {
    check(dependencies::proto_is_pure);
}

#[test]
fn plans_decide_in_plain_code() {
    check(dependencies::plans_are_plain);
}

#[test]
fn actors_reach_one_another_through_handles_and_messages_only() {
    check(dependencies::actors_keep_to_themselves);
}

#[test]
fn each_part_of_the_outside_world_has_one_keeper() {
    check(dependencies::outside_world_has_keepers);
}

#[test]
fn shipped_code_never_uses_the_fakes() {
    check(dependencies::fakes_stay_in_tests);
}

#[test]
fn the_node_package_uses_supervision_and_the_link_only() {
    check(dependencies::node_stands_apart);
}

#[test]
fn the_configuration_knows_no_actor() {
    check(dependencies::config_knows_no_actor);
}

#[test]
fn the_web_pages_only_read() {
    check(dependencies::web_only_reads);
}

#[test]
fn actors_are_wired_in_one_place() {
    check(dependencies::one_place_wires);
}

#[test]
fn no_test_is_switched_off() {
    check(layout::no_test_is_ignored);
}

#[test]
fn exceptions_to_lints_carry_their_reason() {
    check(layout::exceptions_have_reasons);
}

#[test]
fn a_mod_file_only_lists() {
    check(layout::mod_files_only_list);
}

#[test]
fn an_actors_folder_holds_its_files() {
    check(layout::actor_folders_are_complete);
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    check(layout::files_are_short);
}

#[test]
fn every_module_opens_with_its_purpose() {
    check(layout::modules_say_their_purpose);
}

#[test]
fn the_map_shows_every_actor() {
    check(layout::map_shows_every_actor);
}

#[test]
fn the_top_level_is_complete() {
    check(layout::top_level_is_complete);
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    check(layout::no_machine_is_named);
}

#[test]
fn versions_stand_in_one_table() {
    check(packages::versions_stand_once);
}

#[test]
fn the_packages_depend_on_one_another_as_the_table_says() {
    let offences = packages::check(&packages::of_this_repository());
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn a_panic_unwinds_in_every_profile() {
    check(packages::panics_unwind);
}
