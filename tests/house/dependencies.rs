//! Which folder may name what.

use crate::code::{shipped, within};
use crate::tree::{Offence, Tree, is_test_file};

/// Offences of every shipped file under these prefixes that names a path for which `banned` is true.
fn names(tree: &Tree, prefix: &str, rule: &'static str, banned: impl Fn(&str, &str) -> bool) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (file, named) in tree.named(prefix) {
        for (line, path) in named.iter().filter(|(_, path)| banned(file, path)) {
            offences.push(Offence { file: file.to_owned(), line: *line, found: path.clone(), rule });
        }
    }
    offences
}

fn any(path: &str, banned: &[&str]) -> bool {
    banned.iter().any(|banned| within(path, banned))
}

/// Everything that is a runtime, a socket, a clock, a file or a process.
const IMPURE: [&str; 17] = [
    "tokio",
    "tokio_util",
    "actix",
    "actix_rt",
    "actix_web",
    "async_nats",
    "std::fs",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
    "std::process",
    "std::thread",
    "std::env",
    "std::time::SystemTime",
    "std::time::Instant",
    "rand",
];

pub fn proto_is_pure(tree: &Tree) -> Vec<Offence> {
    let rule =
        "proto holds wire shapes and pure encoders: no runtime, socket, clock, file or sibling package";
    names(tree, "proto/src/", rule, |_, path| {
        any(path, &IMPURE)
            || any(path, &["quartermaster_actors", "quartermaster_node", "quartermaster"])
            || path.ends_with("Instant::now")
            || path.ends_with("SystemTime::now")
    })
}

pub fn plans_are_plain(tree: &Tree) -> Vec<Offence> {
    let rule = "plan.rs, roster.rs and journal.rs decide in plain code: proto and std; time arrives as an argument, \
                randomness as a value";
    let plan = ["plan.rs", "roster.rs", "journal.rs", "policy.rs"];
    let impure = |path: &str| any(path, &IMPURE) && !within(path, "std::time::Instant");
    // The words of another folder are data; its handle and its facts are doing.
    names(tree, "", rule, |file, path| {
        (plan.iter().any(|name| file.ends_with(&format!("/{name}")))
            || file.contains("/fleet/roster/")
            || file.contains("/host/plan/"))
            && (impure(path)
                || any(path, &["tracing", "crate::metrics"])
                || (within(path, "crate") && path.ends_with("Handle"))
                || path.ends_with("Instant::now"))
    })
}

/// The folder of an actor file, `host` for `actors/src/host/plan.rs`.
fn folder(file: &str) -> Option<&str> {
    file.strip_prefix("actors/src/")?.split_once('/').map(|(folder, _)| folder)
}

pub fn actors_keep_to_themselves(tree: &Tree) -> Vec<Offence> {
    let rule = "an actor's folder shows handles and messages only: its modules are private, and mod.rs re-exports what \
                others may name";
    let mut offences = Vec::new();
    for (file, text) in tree.rust("actors/src/").filter(|(file, _)| file.ends_with("/mod.rs")) {
        if folder(file).is_none_or(|folder| folder == "testing") || is_test_file(file) {
            continue;
        }
        for (number, line) in shipped(text).lines().enumerate() {
            if line.trim_start().starts_with("pub mod ") {
                let found = line.trim().to_owned();
                offences.push(Offence { file: file.to_owned(), line: number + 1, found, rule });
            }
        }
    }
    // One actor's struct is wired into another's only by the owner; everybody else holds a handle.
    let agents = ["Keeper", "Runner", "Provisioner", "Discoverer", "Controller", "BrokerLink"];
    offences.extend(names(tree, "actors/src/", rule, |file, path| {
        let last = path.rsplit("::").next().unwrap_or(path);
        let Some(other) = path.strip_prefix("crate::").and_then(|rest| rest.split("::").next()) else {
            return false;
        };
        let own = folder(file) == Some(other);
        let owner = folder(file) == Some("fleet") && other == "host";
        agents.iter().any(|agent| last.ends_with(agent)) && !own && !owner
    }));
    offences
}

/// The keepers of the outside world: what may be named, and under which folders.
const KEEPERS: [(&str, &[&str], &str); 7] = [
    ("async_nats", &["actors/src/link/"], "the broker belongs to link: nobody else speaks to it"),
    ("tokio::net", &["actors/src/link/", "actors/src/child/"], "sockets belong to link, pipes to child"),
    ("std::net::TcpStream", &["actors/src/link/"], "sockets belong to link"),
    (
        "tokio::process",
        &["actors/src/child/", "actors/src/helper/", "actors/src/provider/"],
        "processes belong to child, and to helper and provider, which have them started",
    ),
    (
        "std::process",
        &["actors/src/child/", "actors/src/helper/", "actors/src/provider/"],
        "processes belong to child, and to helper and provider, which have them started",
    ),
    ("tokio::fs", &["actors/src/vault/"], "files belong to the vault"),
    (
        "std::fs",
        // Two read what the kernel says of processes, which is no file of anybody's; one a program before it is
        // started; and one builtin provider is there to write files.
        &[
            "actors/src/vault/",
            "actors/src/journal/",
            "actors/src/child/procfs.rs",
            "actors/src/metrics/process.rs",
            "actors/src/provider/pin.rs",
            "actors/src/builtin/folder.rs",
        ],
        "files belong to the vault, the state folder to the journal",
    ),
];

pub fn outside_world_has_keepers(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (what, places, rule) in KEEPERS {
        offences.extend(names(tree, "actors/src/", rule, |file, path| {
            within(path, what)
                && !places.iter().any(|place| file.starts_with(place))
                && !file.starts_with("actors/src/testing/")
        }));
    }
    offences
}

pub fn fakes_stay_in_tests(tree: &Tree) -> Vec<Offence> {
    let rule = "actors/src/testing may use anything, and shipped code never uses it";
    names(tree, "", rule, |file, path| {
        !file.starts_with("actors/src/testing/")
            && any(path, &["crate::testing", "quartermaster_actors::testing"])
            && !(file.starts_with("src/") && path == "crate::testing")
    })
}

pub fn node_stands_apart(tree: &Tree) -> Vec<Offence> {
    let rule = "node uses proto, async-nats and the file system; of actors only supervise and link";
    names(tree, "node/src/", rule, |_, path| {
        within(path, "quartermaster_actors")
            && !any(path, &["quartermaster_actors::supervise", "quartermaster_actors::link"])
            && path != "quartermaster_actors::supervised"
    })
}

pub fn config_knows_no_actor(tree: &Tree) -> Vec<Offence> {
    let rule = "src/config uses serde, a YAML reader and plain types; it knows no actor";
    names(tree, "src/config/", rule, |_, path| {
        any(path, &["quartermaster_actors", "actix", "actix_rt", "actix_web", "async_nats"])
            || any(path, &["crate::app", "crate::web"])
            || within(path, "tokio")
    })
}

pub fn web_only_reads(tree: &Tree) -> Vec<Offence> {
    let rule = "src/web uses actix-web, handles and snapshots; it decides nothing and touches nothing";
    names(tree, "src/web/", rule, |_, path| {
        any(path, &["async_nats", "actix::Addr", "std::fs", "std::process", "tokio::process", "tokio::fs"])
            || any(path, &["crate::app", "crate::emulate", "crate::demo", "quartermaster_proto::choria"])
    })
}

pub fn one_place_wires(tree: &Tree) -> Vec<Offence> {
    let rule = "src/app.rs is the one place that wires actors";
    // A run of one helper for its author needs the runner alone, and no system around it.
    let wiring = ["src/app.rs", "src/app/", "src/helper_test.rs"];
    let agents = ["Overseer", "Owned", "Keeper", "Runner", "Controller", "Discoverer", "BrokerLink"];
    names(tree, "src/", rule, |file, path| {
        let last = path.rsplit("::").next().unwrap_or(path);
        within(path, "quartermaster_actors")
            && agents.iter().any(|agent| last.ends_with(agent))
            && !wiring.iter().any(|place| file.starts_with(place))
    })
}
