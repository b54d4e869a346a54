//! docs/protocols.md lists every module of the wire with a fingerprint of its shapes, so that a change of what we write or
//! read touches the page that says who speaks what.
#![cfg(test)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below `folder` but tests, sorted.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The items of a source that decide bytes: what derives serde, what reads keys, and constants of text. Comments do not
/// count, nor does anything after the tests begin.
fn shapes(source: &str) -> String {
    let lines: Vec<&str> = source
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let mut shapes = String::new();
    let mut taking = false;
    for line in lines {
        let derives =
            line.starts_with("#[derive(") && (line.contains("Serialize") || line.contains("Deserialize"));
        if derives || line.starts_with("impl Output for") {
            taking = true;
        }
        let constant = !line.starts_with(' ') && line.contains("const ") && line.contains(": &str =");
        let reads_a_key = line.contains("(\"") && line.ends_with("?,");
        if taking || constant || reads_a_key {
            shapes.push_str(line.trim());
            shapes.push('\n');
        }
        // An item at the left margin ends with its brace there, or on one line.
        let ends = line == "}" || (line.ends_with(';') && !line.starts_with(' '));
        taking &= !ends;
    }
    shapes
}

/// Module path and fingerprint of its shapes, `none` when it has none.
fn modules() -> BTreeMap<String, String> {
    let root = package().join("src");
    let mut found = Vec::new();
    for folder in ["choria", "helper", "mesh", "provider"] {
        sources(&root.join(folder), &mut found);
    }
    found
        .into_iter()
        .filter(|path| !path.ends_with("mod.rs"))
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().with_extension("");
            let name = name.iter().map(|part| part.to_str().unwrap()).collect::<Vec<_>>().join("::");
            let shapes = shapes(&fs::read_to_string(&path).unwrap());
            let fingerprint = match shapes.as_str() {
                "" => "none".to_owned(),
                text => hex::encode(&Sha256::digest(text)[..4]),
            };
            (name, fingerprint)
        })
        .collect()
}

/// The table of the page: module → fingerprint.
fn listed() -> BTreeMap<String, String> {
    let page = fs::read_to_string(package().join("../docs/protocols.md")).unwrap();
    page.lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[0].trim_end_matches('`').to_owned(), cells[2].trim_matches('`').to_owned())
        })
        .collect()
}

#[test]
fn the_page_lists_every_module_with_the_fingerprint_of_its_shapes() {
    let (modules, listed) = (modules(), listed());
    assert!(modules.len() > 15, "the sources were found");
    let stale: Vec<String> = modules
        .iter()
        .filter(|(module, fingerprint)| listed.get(*module) != Some(fingerprint))
        .map(|(module, fingerprint)| format!("{module}: `{fingerprint}`"))
        .collect();
    let gone: Vec<&String> = listed.keys().filter(|module| !modules.contains_key(*module)).collect();
    assert!(
        stale.is_empty() && gone.is_empty(),
        "read docs/protocols.md again, say there what changed on the wire, then set the fingerprints:\n{}\nno longer there: {gone:?}",
        stale.join("\n")
    );
}

#[test]
fn a_change_of_a_shape_changes_its_fingerprint_and_a_comment_does_not() {
    let source = "//! Doc.\n#[derive(Debug, Serialize)]\nstruct A {\n    b: u8,\n}\n\nfn c() {}\n";
    assert_eq!(shapes(source), "#[derive(Debug, Serialize)]\nstruct A {\nb: u8,\n}\n");
    assert_ne!(shapes(source), shapes(&source.replace("b: u8", "b: u16")));
    assert_eq!(shapes(source), shapes(&source.replace("    b", "    /// Why.\n    b")));
    assert_eq!(shapes(source), shapes(&source.replace("fn c() {}", "fn c() { d() }")));
    assert_eq!(shapes("const A: &str = \"x\";\nfn b() {}\n"), "const A: &str = \"x\";\n");
}
