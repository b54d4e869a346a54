//! The ledger in memory: a fold over its entries.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Owed, Row};
use crate::engine::disk::FilePath;
use crate::engine::program::Program;

/// Everything the engine knows of its work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    files: BTreeMap<FilePath, Row>,
    folders: BTreeSet<FilePath>,
    owed: BTreeMap<(String, Program), u64>,
}

impl Ledger {
    /// Takes an entry in.
    pub fn enter(&mut self, entry: &Entry) {
        match entry {
            Entry::File { path, row: Some(row) } => {
                self.files.insert(path.clone(), (**row).clone());
            }
            Entry::File { path, row: None } => {
                self.files.remove(path);
            }
            Entry::Folder { path, is_ours: true } => {
                self.folders.insert(path.clone());
            }
            Entry::Folder { path, is_ours: false } => {
                self.folders.remove(path);
            }
            Entry::Owe(owed) => {
                self.owed.insert((owed.module.clone(), owed.program.clone()), owed.number);
            }
            Entry::Told(told) => {
                let key = (told.module.clone(), told.program.clone());
                if self.owed.get(&key).is_some_and(|number| *number <= told.number) {
                    self.owed.remove(&key);
                }
            }
        }
    }

    /// The row of a file.
    pub fn file(&self, path: &FilePath) -> Option<&Row> {
        self.files.get(path)
    }

    /// Every file, in the order of the paths.
    pub fn files(&self) -> impl Iterator<Item = (&FilePath, &Row)> {
        self.files.iter()
    }

    /// Folders that the engine made, deepest first.
    pub fn folders(&self) -> impl Iterator<Item = &FilePath> {
        self.folders.iter().rev()
    }

    /// True when one of the files lies in or below this folder.
    pub fn is_used(&self, folder: &FilePath) -> bool {
        let below = |path: &FilePath| {
            path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.files.keys().any(below)
    }

    /// What a module's programs have yet to be told.
    pub fn owed_by(&self, module: &str) -> Vec<Owed> {
        let owed = self.owed.iter().filter(|((owner, _), _)| owner == module);
        owed.map(|((module, program), number)| Owed {
            module: module.clone(),
            program: program.clone(),
            number: *number,
        })
        .collect()
    }

    /// Every module with something owed.
    pub fn debtors(&self) -> BTreeSet<&str> {
        self.owed.keys().map(|(module, _)| module.as_str()).collect()
    }

    /// The number of the next change.
    pub fn next_number(&self) -> u64 {
        self.owed.values().max().map_or(1, |number| number.saturating_add(1))
    }
}
