//! The checkers on small made-up trees: each is seen failing where it should, and only there.

use crate::code::{paths, shipped};
use crate::tree::{Offence, Tree};
use crate::{dependencies, layout, packages};

/// `expected` is what offends, as `file:line found`.
fn check(rule: impl Fn(&Tree) -> Vec<Offence>, files: &[(&str, &str)], expected: &[&str]) {
    let offences = rule(&Tree::made_up(files));
    let found: Vec<_> = offences.iter().map(|o| format!("{}:{} {}", o.file, o.line, o.found)).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn check_paths(code: &str, expected: &[&str]) {
    let found: Vec<_> = paths(&shipped(code)).into_iter().map(|(_, path)| path).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_use_list_is_written_out() {
    check_paths("use a::{b, c::{self, d as e}, f::*};", &["a::b", "a::c", "a::c::d", "a::f::*"]);
}

#[test]
fn a_path_in_the_middle_of_code_is_seen() {
    check_paths("fn f() { let x = tokio::fs::read(y)?; z::<a::B>() }", &["tokio::fs::read", "a::B"]);
}

#[test]
fn comments_and_strings_name_nothing() {
    check_paths(
        "// a::b\n/* c::d */ /// e::f\nconst X: &str = \"g::h\"; r#\"i::j \" k::l\"#; '\"'; m::n",
        &["m::n"],
    );
}

#[test]
fn an_escaped_quote_does_not_end_a_string() {
    check_paths(r#"f("a\"b::c"); d::e"#, &["d::e"]);
}

#[test]
fn a_lifetime_is_no_character() {
    check_paths("fn f<'a>(x: &'a b::C) -> &'a d::E {}", &["b::C", "d::E"]);
}

#[test]
fn test_modules_are_not_shipped() {
    check_paths(
        "use a::b;\n#[cfg(test)]\nmod tests { use c::d; fn f() { e::g() } }\nh::i!();",
        &["a::b", "h::i"],
    );
}

#[test]
fn items_of_the_feature_testing_are_not_shipped() {
    check_paths("#[cfg(feature = \"testing\")]\npub use a::b;\nuse c::d;", &["c::d"]);
}

#[test]
fn a_runtime_in_proto_offends() {
    check(
        dependencies::proto_is_pure,
        &[
            ("proto/src/a.rs", "use std::fmt;\nuse std::{fs, time::Duration};"),
            ("proto/src/b.rs", "fn f() { tokio::spawn(g()); }"),
            ("proto/src/c.rs", "use quartermaster_actors::link;"),
            ("proto/tests/d.rs", "use std::fs;"),
        ],
        &[
            "proto/src/a.rs:2 std::fs",
            "proto/src/b.rs:1 tokio::spawn",
            "proto/src/c.rs:1 quartermaster_actors::link",
        ],
    );
}

#[test]
fn a_plan_that_reads_the_clock_or_acts_offends() {
    check(
        dependencies::plans_are_plain,
        &[
            ("actors/src/host/plan.rs", "use std::time::Instant;\nfn f() { Instant::now(); }"),
            (
                "actors/src/fleet/roster.rs",
                "use actix::Addr;\nuse rand::random;\nuse crate::link::{LinkHandle, Fault};",
            ),
            ("actors/src/fleet/actor.rs", "use actix::Addr;"),
        ],
        &[
            "actors/src/fleet/roster.rs:1 actix::Addr",
            "actors/src/fleet/roster.rs:2 rand::random",
            "actors/src/fleet/roster.rs:3 crate::link::LinkHandle",
            "actors/src/host/plan.rs:2 Instant::now",
        ],
    );
}

#[test]
fn a_public_module_of_an_actor_and_a_foreign_actor_offend() {
    check(
        dependencies::actors_keep_to_themselves,
        &[
            ("actors/src/host/mod.rs", "mod plan;\npub mod actor;\n#[cfg(test)]\nmod tests;"),
            (
                "actors/src/fleet/actor.rs",
                "use crate::host::HostProvisioner;\nuse crate::vault::VaultKeeper;",
            ),
            ("actors/src/vault/handle.rs", "use crate::vault::VaultKeeper;"),
            ("actors/src/discovery/actor.rs", "use crate::link::LinkHandle;"),
        ],
        &["actors/src/host/mod.rs:2 pub mod actor;", "actors/src/fleet/actor.rs:2 crate::vault::VaultKeeper"],
    );
}

#[test]
fn the_outside_world_in_the_wrong_folder_offends() {
    check(
        dependencies::outside_world_has_keepers,
        &[
            ("actors/src/host/actor.rs", "use async_nats::Client;"),
            ("actors/src/link/nats.rs", "use async_nats::Client;"),
            ("actors/src/fleet/actor.rs", "fn f() { std::fs::read(x); tokio::process::Command::new(y); }"),
            ("actors/src/vault/files.rs", "use std::fs;"),
        ],
        &[
            "actors/src/host/actor.rs:1 async_nats::Client",
            "actors/src/fleet/actor.rs:1 tokio::process::Command::new",
            "actors/src/fleet/actor.rs:1 std::fs::read",
        ],
    );
}

#[test]
fn fakes_in_shipped_code_offend() {
    check(
        dependencies::fakes_stay_in_tests,
        &[
            ("actors/src/host/actor.rs", "use crate::testing::FakeLink;"),
            ("actors/src/host/tests.rs", "use crate::testing::FakeLink;"),
            ("src/app.rs", "use quartermaster_actors::testing::FakeLink;"),
        ],
        &[
            "actors/src/host/actor.rs:1 crate::testing::FakeLink",
            "src/app.rs:1 quartermaster_actors::testing::FakeLink",
        ],
    );
}

#[test]
fn a_node_that_knows_the_fleet_offends() {
    check(
        dependencies::node_stands_apart,
        &[("node/src/a.rs", "use quartermaster_actors::{supervise::Slot, fleet::FleetHandle};")],
        &["node/src/a.rs:1 quartermaster_actors::fleet::FleetHandle"],
    );
}

#[test]
fn a_configuration_that_knows_an_actor_offends() {
    check(
        dependencies::config_knows_no_actor,
        &[("src/config/raw.rs", "use serde::Deserialize;\nuse quartermaster_actors::vault::VaultSettings;")],
        &["src/config/raw.rs:2 quartermaster_actors::vault::VaultSettings"],
    );
}

#[test]
fn a_page_that_acts_offends() {
    check(
        dependencies::web_only_reads,
        &[("src/web/pages.rs", "use actix_web::web;\nfn f() { std::fs::write(a, b); }")],
        &["src/web/pages.rs:2 std::fs::write"],
    );
}

#[test]
fn wiring_outside_the_app_offends() {
    check(
        dependencies::one_place_wires,
        &[
            ("src/app.rs", "use quartermaster_actors::supervise::Overseer;"),
            ("src/web/state.rs", "use quartermaster_actors::supervise::{Overseer, OverseerHandle};"),
        ],
        &["src/web/state.rs:1 quartermaster_actors::supervise::Overseer"],
    );
}

#[test]
fn an_ignored_test_offends() {
    check(
        layout::no_test_is_ignored,
        &[("a.rs", "#[test]\n#[ignore]\nfn f() {}\n// #[ignore]\n#[cfg_attr(x, ignore)]")],
        &["a.rs:2 #[ignore]", "a.rs:5 #[cfg_attr(x, ignore)]"],
    );
}

#[test]
fn an_exception_without_a_reason_offends() {
    check(
        layout::exceptions_have_reasons,
        &[(
            "a.rs",
            "#[allow(dead_code, reason = \"z\")]\nfn f() { x.expect(y); }\n#[expect(dead_code)]\n#[expect(\n    dead_code,\n    reason = \"z\"\n)]\nfn g() {}",
        )],
        &["a.rs:3 expect(…)", "a.rs:1 allow(…)"],
    );
}

#[test]
fn code_in_a_mod_file_offends() {
    check(
        layout::mod_files_only_list,
        &[
            ("a/mod.rs", "//! A.\nmod b;\npub use b::{\n    C,\n};\n#[cfg(test)]\nmod tests;"),
            ("d/mod.rs", "mod e;\npub(crate) fn f() {}\nmod tests {"),
        ],
        &["d/mod.rs:2 pub(crate) fn f() {}", "d/mod.rs:3 mod tests {"],
    );
}

#[test]
fn an_actors_folder_without_messages_or_tests_offends() {
    check(
        layout::actor_folders_are_complete,
        &[
            ("actors/src/vault/mod.rs", ""),
            ("actors/src/vault/actor.rs", ""),
            ("actors/src/vault/handle.rs", ""),
            ("actors/src/link/mod.rs", ""),
            ("actors/src/link/actor.rs", ""),
            ("actors/src/link/handle.rs", ""),
            ("actors/src/link/messages.rs", ""),
            ("actors/tests/link.rs", ""),
        ],
        &["actors/src/vault/messages.rs:0 missing", "actors/src/vault/tests.rs:0 missing"],
    );
}

#[test]
fn a_long_file_offends() {
    check(
        layout::files_are_short,
        &[("a.rs", &"x\n".repeat(499)), ("b.rs", &"x\n".repeat(500)), ("c.md", &"x\n".repeat(5000))],
        &["b.rs:500 500 lines"],
    );
}

#[test]
fn a_module_without_a_purpose_offends() {
    check(
        layout::modules_say_their_purpose,
        &[("a.rs", "//! A.\n"), ("b.rs", "use c;\n"), ("d.rs", "\n//! D.\n")],
        &["b.rs:1 use c;"],
    );
}

#[test]
fn an_actor_that_is_not_on_the_map_offends() {
    check(
        layout::map_shows_every_actor,
        &[
            ("ARCHITECTURE.md", "| VaultKeeper | 64 |"),
            ("actors/src/vault/actor.rs", "impl Actor for VaultKeeper {"),
            ("actors/src/link/actor.rs", "\nimpl actix::Actor for BrokerLink {"),
        ],
        &["actors/src/link/actor.rs:2 BrokerLink"],
    );
}

#[test]
fn a_missing_page_at_the_top_offends() {
    let found = layout::top_level_is_complete(&Tree::made_up(&[("README.md", ""), ("src/main.rs", "")]));
    assert!(found.iter().any(|offence| offence.file == "ARCHITECTURE.md"));
    assert!(!found.iter().any(|offence| offence.file == "README.md" || offence.file == "src"));
}

#[test]
fn a_path_of_somebodys_machine_offends() {
    let path = format!("let x = \"/{}/me/thing\";\n/homework/ /home/me", "root");
    let expected = format!("a.rs:1 /{}/", "root");
    check(layout::no_machine_is_named, &[("a.rs", &path)], &[&expected]);
}

#[test]
fn a_version_in_a_package_offends() {
    check(
        packages::versions_stand_once,
        &[
            ("Cargo.toml", "[workspace.dependencies]\na = \"1\"\n[dependencies]\na.workspace = true"),
            (
                "proto/Cargo.toml",
                "[package]\nversion = \"1\"\n[dev-dependencies]\na = \"1\"\nb = { workspace = true }",
            ),
        ],
        &["proto/Cargo.toml:4 a = \"1\""],
    );
}

#[test]
fn a_profile_that_aborts_offends() {
    check(
        packages::panics_unwind,
        &[("Cargo.toml", "[profile.release]\npanic = \"abort\"")],
        &["Cargo.toml:2 panic = \"abort\"", "Cargo.toml:0 no profile says unwind"],
    );
}

#[test]
fn a_package_that_depends_upwards_offends() {
    let proto = vec!["serde".to_owned(), "quartermaster-actors".to_owned(), "tokio-util".to_owned()];
    let packages = [
        ("quartermaster-proto".to_owned(), proto),
        ("quartermaster-actors".to_owned(), vec!["quartermaster-proto".to_owned(), "tokio".to_owned()]),
        ("quartermaster-extra".to_owned(), vec![]),
    ];
    assert_eq!(
        packages::check(&packages.into()),
        [
            "quartermaster-extra: four packages, and a fifth only when something must be compiled alone",
            "quartermaster-proto depends on quartermaster-actors: packages depend downwards only",
            "quartermaster-proto depends on tokio-util: proto has no runtime, socket, clock or file",
        ]
    );
}
