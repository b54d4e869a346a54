//! A tree of files, real or made up.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use crate::code::{Named, paths, shipped, without_comments_and_strings};

/// Folders that are not part of the sources.
const SKIPPED: [&str; 4] = [".git", "target", ".cache", "node_modules"];

/// Files larger than this are data.
const MAX_BYTES: u64 = 4 << 20;

/// A broken rule: where, and the rule's own sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offence {
    /// The file, from the root.
    pub file: String,
    /// Counts from 1; 0 for the file as a whole.
    pub line: usize,
    /// What offends.
    pub found: String,
    /// The sentence.
    pub rule: &'static str,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n    rule: {}", self.file, self.line, self.found, self.rule)
    }
}

/// Text files by their path from the root.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, File>,
}

/// One file, read into its parts once.
#[derive(Debug, Default)]
struct File {
    text: String,
    code: OnceLock<String>,
    named: OnceLock<Vec<Named>>,
}

impl File {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

static REPOSITORY: LazyLock<Tree> = LazyLock::new(|| {
    let mut tree = Tree::default();
    tree.walk(Path::new(env!("CARGO_MANIFEST_DIR")), "");
    assert!(tree.files.len() > 50, "the repository is here");
    tree
});

impl Tree {
    /// The tree this test was compiled from.
    pub fn of_this_repository() -> &'static Self {
        &REPOSITORY
    }

    /// A made-up tree.
    pub fn made_up(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), File::new(*text))).collect() }
    }

    fn walk(&mut self, folder: &Path, prefix: &str) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().unwrap();
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if kind.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"));
            } else if kind.is_file() && entry.metadata().unwrap().len() <= MAX_BYTES {
                // What is not text is data.
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    self.files.insert(path, File::new(text));
                }
            }
        }
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.text.as_str()))
    }

    /// The Rust files under this prefix.
    pub fn rust<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.rust_files(prefix).map(|(path, file)| (path, file.text.as_str()))
    }

    /// The Rust files, comments and the contents of strings blanked.
    pub fn code(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rust_files("").map(|(path, file)| {
            (path, file.code.get_or_init(|| without_comments_and_strings(&file.text)).as_str())
        })
    }

    /// The paths that each shipped Rust file under this prefix names.
    pub fn named<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a [Named])> {
        self.rust_files(prefix)
            .filter(|(path, _)| !is_test_file(path))
            .map(|(path, file)| (path, file.named.get_or_init(|| paths(&shipped(&file.text))).as_slice()))
    }

    fn rust_files<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a File)> {
        let all = self.files.iter().map(|(path, file)| (path.as_str(), file));
        all.filter(move |(path, _)| {
            path.starts_with(prefix) && Path::new(path).extension().is_some_and(|end| end == "rs")
        })
    }

    /// One file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.text.as_str())
    }

    /// True when something lies at or under this path.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.files().any(|(file, _)| file.starts_with(&format!("{path}/")))
    }
}

/// True for code that only tests compile.
pub fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "benches")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}
