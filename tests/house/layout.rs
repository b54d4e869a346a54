//! What files there are and what they look like.

use std::collections::BTreeSet;

use crate::code::shipped;
use crate::tree::{Offence, Tree, is_test_file};

/// Aim for four hundred; split by responsibility at this.
const MAX_LINES: usize = 500;

fn offence(file: &str, line: usize, found: impl Into<String>, rule: &'static str) -> Offence {
    Offence { file: file.to_owned(), line, found: found.into(), rule }
}

/// Offences of every line of Rust, comments and strings aside, that `bad` picks.
fn lines(tree: &Tree, rule: &'static str, bad: impl Fn(&str) -> bool) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (file, code) in tree.code() {
        for (number, line) in code.lines().enumerate() {
            if bad(line) {
                offences.push(offence(file, number + 1, line.trim(), rule));
            }
        }
    }
    offences
}

pub fn no_test_is_ignored(tree: &Tree) -> Vec<Offence> {
    let rule = "a test runs or does not exist: what cannot run here says so in one line when it runs";
    lines(tree, rule, |line| {
        let line = line.replace(' ', "");
        line.contains("#[ignore") || line.contains(",ignore")
    })
}

pub fn exceptions_have_reasons(tree: &Tree) -> Vec<Offence> {
    let rule = "an exception to a lint is written #[expect(lint, reason = \"…\")], so that it goes when its cause goes";
    let mut offences = Vec::new();
    for (file, code) in tree.code() {
        for word in ["expect(", "allow("] {
            for (at, _) in code.match_indices(word).filter(|(at, _)| is_attribute(code, *at)) {
                let whole = code[at..].find(")]").map_or("", |end| &code[at..at + end]);
                // Support that several test programs share is used in part by each, so no expectation holds in all.
                let shared = is_test_file(file) && whole.starts_with("allow(dead_code,");
                if !whole.contains("reason =") || (word == "allow(" && !shared) {
                    let line = code[..at].matches('\n').count() + 1;
                    offences.push(offence(file, line, format!("{word}…)"), rule));
                }
            }
        }
    }
    offences
}

/// True when an attribute, perhaps a conditional one, opens before this place and has not closed.
fn is_attribute(code: &str, at: usize) -> bool {
    let before = &code[..at];
    before.rfind("#[").max(before.rfind("#![")).is_some_and(|open| !before[open..].contains(']'))
}

pub fn mod_files_only_list(tree: &Tree) -> Vec<Offence> {
    let rule = "mod.rs lists and re-exports; code lives in files named for what they hold";
    let items =
        ["fn ", "struct ", "enum ", "impl ", "impl<", "trait ", "const ", "static ", "type ", "macro_rules!"];
    let mut offences = Vec::new();
    for (file, code) in tree.code().filter(|(file, _)| file.ends_with("/mod.rs") && !is_test_file(file)) {
        for (number, line) in code.lines().enumerate() {
            let item = line.trim_start();
            let item = item.strip_prefix("pub").map_or(item, |rest| {
                let rest =
                    rest.strip_prefix("(").and_then(|rest| rest.split_once(')')).map_or(rest, |(_, r)| r);
                rest.trim_start()
            });
            let item = item.strip_prefix("async ").unwrap_or(item);
            let inline = item.starts_with("mod ") && item.contains('{');
            if inline || items.iter().any(|keyword| item.starts_with(keyword)) {
                offences.push(offence(file, number + 1, line.trim(), rule));
            }
        }
    }
    offences
}

/// What an actor's folder may do without, and why.
const WITHOUT: [(&str, &str); 2] = [
    // A host's actor is held by its owner alone.
    ("host", "handle.rs"),
    // The discoverer is told by its owner and by the link's lanes, both through its slot.
    ("discovery", "handle.rs"),
];

pub fn actor_folders_are_complete(tree: &Tree) -> Vec<Offence> {
    let rule = "an actor's folder holds mod.rs, actor.rs, messages.rs, handle.rs and tests (tests.rs, tests/ or \
                actors/tests)";
    let mut offences = Vec::new();
    let folders: BTreeSet<&str> = tree
        .rust("actors/src/")
        .filter_map(|(file, _)| file.strip_suffix("/actor.rs")?.strip_prefix("actors/src/"))
        .collect();
    for folder in folders {
        for name in ["mod.rs", "messages.rs", "handle.rs"] {
            let file = format!("actors/src/{folder}/{name}");
            if !tree.has(&file) && !WITHOUT.contains(&(folder, name)) {
                offences.push(offence(&file, 0, "missing", rule));
            }
        }
        let inside = ["tests.rs", "tests"].map(|name| format!("actors/src/{folder}/{name}"));
        let outside = format!("actors/tests/{folder}");
        let tested = inside.iter().any(|path| tree.has(path))
            || tree.files().any(|(file, _)| file.starts_with(&outside));
        if !tested {
            offences.push(offence(&format!("actors/src/{folder}/tests.rs"), 0, "missing", rule));
        }
    }
    offences
}

pub fn files_are_short(tree: &Tree) -> Vec<Offence> {
    let rule = "a file has fewer than 500 lines: split it by responsibility";
    let long = |(file, text): (&str, &str)| {
        let count = text.lines().count();
        (count >= MAX_LINES).then(|| offence(file, count, format!("{count} lines"), rule))
    };
    tree.rust("").filter_map(long).collect()
}

pub fn modules_say_their_purpose(tree: &Tree) -> Vec<Offence> {
    let rule = "a module opens with its purpose: //!";
    let opens =
        |text: &str| text.lines().find(|line| !line.trim().is_empty()).is_some_and(|l| l.starts_with("//!"));
    tree.rust("")
        .filter(|(file, text)| !is_test_file(file) && !file.starts_with("proto/fuzz/") && !opens(text))
        .map(|(file, text)| offence(file, 1, text.lines().next().unwrap_or("empty"), rule))
        .collect()
}

pub fn map_shows_every_actor(tree: &Tree) -> Vec<Offence> {
    let rule = "ARCHITECTURE.md shows every actor: its mailbox, bound, restart policy and what happens when it is full";
    let map = tree.get("ARCHITECTURE.md").unwrap_or_default();
    let mut offences = Vec::new();
    for (file, text) in tree.rust("actors/src/").filter(|(file, _)| !is_test_file(file)) {
        for (number, line) in shipped(text).lines().enumerate() {
            let Some((_, actor)) =
                line.split_once("Actor for ").filter(|_| line.trim_start().starts_with("impl"))
            else {
                continue;
            };
            let actor = actor.trim_end_matches(['{', ' ']).split('<').next().unwrap_or(actor);
            if !file.starts_with("actors/src/testing/") && !map.contains(actor) {
                offences.push(offence(file, number + 1, actor, rule));
            }
        }
    }
    offences
}

const TOP_LEVEL: [&str; 20] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "clippy.toml",
    "deny.toml",
    "rustfmt.toml",
    "rust-toolchain.toml",
    ".ci/run",
    "src",
    "actors",
    "proto",
    "node",
    "tests",
    "benches",
    "docs",
];

pub fn top_level_is_complete(tree: &Tree) -> Vec<Offence> {
    let rule = "a newcomer finds the same things at the top level as everywhere in this house";
    TOP_LEVEL.iter().filter(|name| !tree.has(name)).map(|name| offence(name, 0, "missing", rule)).collect()
}

pub fn no_machine_is_named(tree: &Tree) -> Vec<Offence> {
    let rule = "no file names the machine it was written on";
    // Put together here, so that this file does not offend.
    let homes = ["work", "root"].map(|home| format!("/{home}/"));
    let mut offences = Vec::new();
    for (file, text) in tree.files() {
        let is_data = ["proto/tests/vectors/", "Cargo.lock"].iter().any(|data| file.starts_with(data));
        for (number, line) in text.lines().enumerate() {
            let named = homes.iter().find(|home| {
                line.split(['"', '\'', ' ', '=', '(', '`', ':']).any(|word| word.starts_with(home.as_str()))
            });
            if let Some(home) = named.filter(|_| !is_data) {
                offences.push(offence(file, number + 1, home, rule));
            }
        }
    }
    offences
}
