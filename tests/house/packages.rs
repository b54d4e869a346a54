//! What the manifests say.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::tree::{Offence, Tree};

/// The dependencies of each package of this workspace that are not for tests only.
pub type Packages = BTreeMap<String, Vec<String>>;

/// Packages that are a runtime, a socket, a clock or a process, by name or by the beginning of it.
const IMPURE: [&str; 12] = [
    "tokio", "actix", "async-", "futures", "rand", "rustix", "hickory", "rustls", "process", "nix",
    "tempfile", "mio",
];

pub fn of_this_repository() -> Packages {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let packages = metadata.packages.into_iter().map(|package| {
        let shipped = package.dependencies.into_iter().filter(|dep| dep.kind == DependencyKind::Normal);
        (package.name.to_string(), shipped.map(|dep| dep.name).collect())
    });
    packages.collect()
}

/// Sentences about edges that must not be.
pub fn check(packages: &Packages) -> Vec<String> {
    let mut offences = Vec::new();
    let siblings = ["quartermaster", "quartermaster-actors", "quartermaster-proto", "quartermaster-node"];
    for (package, dependencies) in packages {
        let allowed: &[&str] = match package.as_str() {
            "quartermaster" => &["quartermaster-actors", "quartermaster-proto", "quartermaster-node"],
            "quartermaster-actors" => &["quartermaster-proto"],
            "quartermaster-node" => &["quartermaster-proto", "quartermaster-actors"],
            "quartermaster-proto" => &[],
            other => {
                offences.push(format!(
                    "{other}: four packages, and a fifth only when something must be compiled alone"
                ));
                continue;
            }
        };
        for name in dependencies {
            if siblings.contains(&name.as_str()) && !allowed.contains(&name.as_str()) {
                offences.push(format!("{package} depends on {name}: packages depend downwards only"));
            }
            if package == "quartermaster-proto" && IMPURE.iter().any(|impure| name.starts_with(impure)) {
                offences.push(format!(
                    "{package} depends on {name}: proto has no runtime, socket, clock or file"
                ));
            }
        }
    }
    offences
}

pub fn versions_stand_once(tree: &Tree) -> Vec<Offence> {
    let rule =
        "versions stand once, in the root's [workspace.dependencies]; a package only says which it uses";
    let mut offences = Vec::new();
    for (file, text) in
        tree.files().filter(|(file, _)| file.ends_with("Cargo.toml") && !file.contains("fuzz"))
    {
        let mut section = "";
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']);
            }
            let shared = section.ends_with("dependencies") && section != "workspace.dependencies";
            let itself = line.contains("path = \".\"");
            let own = (line.contains("version") || line.contains("= \"")) && !itself;
            if shared && own && !line.trim_start().starts_with('#') {
                offences.push(Offence {
                    file: file.to_owned(),
                    line: number + 1,
                    found: line.to_owned(),
                    rule,
                });
            }
        }
    }
    offences
}

pub fn panics_unwind(tree: &Tree) -> Vec<Offence> {
    let rule = "a panic ends one actor and its owner must see it, so no profile aborts";
    let manifest = tree.get("Cargo.toml").unwrap_or_default();
    let aborts =
        manifest.lines().enumerate().filter(|(_, line)| line.replace(' ', "").contains("panic=\"abort\""));
    let file = || "Cargo.toml".to_owned();
    let mut offences: Vec<_> = aborts
        .map(|(number, line)| Offence { file: file(), line: number + 1, found: line.to_owned(), rule })
        .collect();
    if !manifest.contains("panic = \"unwind\"") {
        offences.push(Offence { file: file(), line: 0, found: "no profile says unwind".to_owned(), rule });
    }
    offences
}
