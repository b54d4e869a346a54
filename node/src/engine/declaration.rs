//! What may be written: the engine's own copy of each module's declaration.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use quartermaster_proto::mesh::esc;

use super::disk::FilePath;
use super::managed::Format;
use super::program::Program;

/// Who owns a file's content once its program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writing {
    /// The mesh: written whole.
    Owned,
    /// The program: written when absent.
    Seed,
    /// Both.
    Managed(Format),
}

/// One declared file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredFile {
    /// Where.
    pub path: FilePath,
    /// How.
    pub writing: Writing,
    /// Its owner's name or number; none keeps what a file has.
    pub owner: Option<String>,
    /// Its group's name or number; none keeps what a file has.
    pub group: Option<String>,
    /// Its permission bits; none keeps what a file has.
    pub mode: Option<u32>,
    /// The program that is told of a change.
    pub program: Option<Program>,
    /// It holds nothing but a secret.
    pub is_secret: bool,
}

/// One module's declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// The module.
    pub module: String,
    /// The digest of the value it was read from, as a request names it.
    pub plan: String,
    /// The revision it has in the mirror; 0 from a folder.
    pub revision: u64,
    /// Its files; none when its plan cannot be read, which is no reason to take anything away.
    pub files: Option<Vec<DeclaredFile>>,
}

/// Where a request stands to what is declared.
#[derive(Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Both mean the same.
    Same(&'a Arc<Declaration>),
    /// The module is not declared.
    Unknown,
    /// The request knows more than the engine yet does.
    Behind(u64),
    /// The engine knows more than the request.
    Stale(u64),
}

/// All of a machine's declarations, by the module's token, whose order decides who holds a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declarations {
    by_token: BTreeMap<String, Arc<Declaration>>,
    /// Which module holds a path, and the how manieth of its files it is: made once, and asked for every file of every minute.
    holders: HashMap<FilePath, (Arc<Declaration>, usize)>,
    /// They come from a folder, where only the digest says which is which.
    from_folder: bool,
    /// They are a copy of earlier, so that what is missing may only be unknown.
    is_old: bool,
}

impl Declarations {
    /// From a folder of files, by each module's token.
    pub fn from_folder(by_token: BTreeMap<String, Arc<Declaration>>) -> Self {
        Self { from_folder: true, ..Self::from_mirror(by_token) }
    }

    /// From the mirror, by each module's token.
    pub fn from_mirror(by_token: BTreeMap<String, Arc<Declaration>>) -> Self {
        let mut holders = HashMap::new();
        for declaration in by_token.values() {
            for (at, file) in declaration.files.iter().flatten().enumerate() {
                holders.entry(file.path.clone()).or_insert_with(|| (Arc::clone(declaration), at));
            }
        }
        Self { by_token, holders, from_folder: false, is_old: false }
    }

    /// As a copy of earlier: files may be written by it, but nothing is taken away.
    #[must_use]
    pub const fn not_sure(mut self) -> Self {
        self.is_old = true;
        self
    }

    /// True when what is missing here is surely not declared.
    pub const fn is_sure(&self) -> bool {
        !self.is_old
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Declaration> {
        self.by_token.values().map(|declaration| &**declaration)
    }

    /// One module's.
    pub fn of(&self, module: &str) -> Option<&Arc<Declaration>> {
        self.by_token.get(&esc(module))
    }

    /// The first module that declares a path, and the file.
    pub fn holder(&self, path: &FilePath) -> Option<(&Declaration, &DeclaredFile)> {
        let (declaration, at) = self.holders.get(path)?;
        Some((declaration, declaration.files.as_ref()?.get(*at)?))
    }

    /// Compares what a request names with what is known.
    pub fn standing(&self, module: &str, plan: &str, revision: u64) -> Standing<'_> {
        match self.of(module) {
            None => Standing::Unknown,
            Some(known) if known.plan == plan && (self.from_folder || known.revision == revision) => {
                Standing::Same(known)
            }
            Some(known) if self.from_folder || known.revision < revision => Standing::Behind(known.revision),
            Some(known) => Standing::Stale(known.revision),
        }
    }
}
