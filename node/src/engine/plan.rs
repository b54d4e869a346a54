//! What the engine decides: about each file of a request, and about what nobody declares any more.

use zeroize::Zeroizing;

use super::declaration::{Declaration, Declarations, DeclaredFile, Writing};
use super::disk::{Attributes, FilePath};
use super::fault::{Fault, FileCode};
use super::ledger::{Kept, Ledger, Row};
use super::managed::{self, Keys};

/// Permission bits of a sensitive file that declares none.
const PRIVATE: u32 = 0o600;
/// Permission bits of a new file that declares none.
const ORDINARY: u32 = 0o644;
/// Permission bits for others.
const OTHERS: u32 = 0o007;

/// Content for one path.
#[derive(Debug)]
pub struct Filled {
    /// Where, as the request says it.
    pub path: String,
    /// The content, or our part of a managed file; wiped when dropped.
    pub content: Zeroizing<Vec<u8>>,
    /// Its SHA-256, in hexadecimal, which was compared with the request's.
    pub sha256: String,
    /// It holds a secret.
    pub is_sensitive: bool,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// New content, mode or owner.
    Written,
    /// What was last written is there again.
    Restored,
    /// Nothing.
    Unchanged,
    /// A seed that was absent is there.
    Seeded,
    /// A seed is there and was not looked into.
    Kept,
}

impl Action {
    /// True when the file's program has to be told.
    pub const fn is_change(self) -> bool {
        matches!(self, Self::Written | Self::Restored | Self::Seeded)
    }
}

/// Finds the declared file that a filled one stands for.
///
/// # Errors
/// [`FileCode::NotDeclared`], [`FileCode::PathTaken`], and [`FileCode::PathRefused`] for a path that is none.
pub fn declared<'a>(
    declarations: &'a Declarations,
    declaration: &'a Declaration,
    filled: &Filled,
) -> Result<&'a DeclaredFile, Fault> {
    let path = FilePath::parse(&filled.path)
        .map_err(|error| Fault::new(FileCode::PathRefused, error.to_string()))?;
    let (holder, file) = declarations
        .holder(&path)
        .ok_or_else(|| Fault::new(FileCode::NotDeclared, "nobody declares this path"))?;
    if holder.module == declaration.module {
        return Ok(file);
    }
    if declaration.files.iter().flatten().any(|file| file.path == path) {
        let reason = format!("the module {} holds this path", holder.module);
        return Err(Fault::new(FileCode::PathTaken, reason));
    }
    Err(Fault::new(FileCode::NotDeclared, "the module does not declare this path"))
}

/// Attributes that a declaration asks for, as numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// The owner.
    pub user: Option<u32>,
    /// The group.
    pub group: Option<u32>,
    /// The permission bits.
    pub mode: Option<u32>,
}

impl Asked {
    /// With the bits a sensitive file gets.
    ///
    /// # Errors
    /// [`FileCode::NotDeclared`] when a sensitive file is declared open to others.
    pub fn for_content(mut self, is_sensitive: bool) -> Result<Self, Fault> {
        if is_sensitive && self.mode.is_some_and(|mode| mode & OTHERS != 0) {
            let reason = "it holds a secret, and its declared mode lets others at it";
            return Err(Fault::new(FileCode::NotDeclared, reason));
        }
        if is_sensitive {
            self.mode = self.mode.or(Some(PRIVATE));
        }
        Ok(self)
    }

    /// What the file gets: what is declared, else what it has, else what it had, else what a new file of `own` gets.
    pub fn resolved(
        self,
        found: Option<Attributes>,
        known: Option<Attributes>,
        own: (u32, u32),
    ) -> Attributes {
        let before = found.or(known);
        Attributes {
            user: self.user.or(before.map(|before| before.user)).unwrap_or(own.0),
            group: self.group.or(before.map(|before| before.group)).unwrap_or(own.1),
            mode: self.mode.or(before.map(|before| before.mode)).unwrap_or(ORDINARY),
        }
    }

    /// True when attributes are as asked, where anything is asked.
    pub fn is_met_by(self, attributes: Attributes) -> bool {
        self.user.is_none_or(|user| user == attributes.user)
            && self.group.is_none_or(|group| group == attributes.group)
            && self.mode.is_none_or(|mode| mode == attributes.mode)
    }
}

/// The row that counts for a file: one of another way of writing is none.
pub fn known<'a>(ledger: &'a Ledger, file: &DeclaredFile) -> Option<&'a Row> {
    let row = ledger.file(&file.path)?;
    row.kept.is_alike(&kept(file, Keys::new())).then_some(row)
}

/// How a row keeps this file.
pub fn kept(file: &DeclaredFile, ours: Keys) -> Kept {
    match &file.writing {
        Writing::Owned => Kept::Owned,
        Writing::Seed => Kept::Seed,
        Writing::Managed(format) => Kept::Managed { format: format.clone(), ours },
    }
}

/// The whole content of a file, and what is ours in it.
///
/// # Errors
/// [`FileCode::ManagedDamaged`].
pub fn content(
    file: &DeclaredFile,
    module: &str,
    filled: &Filled,
    target: Option<&[u8]>,
    row: Option<&Row>,
) -> Result<(Zeroizing<Vec<u8>>, Keys), Fault> {
    let Writing::Managed(format) = &file.writing else {
        return Ok((filled.content.clone(), Keys::new()));
    };
    let before = row.map(Row::ours).unwrap_or_default();
    let merged = managed::merge(format, module, target, &filled.content, &before)
        .map_err(|error| Fault::new(FileCode::ManagedDamaged, error.to_string()))?;
    Ok((merged.content, merged.ours))
}

/// What writing a file means: what was last filled is put back, or something new is there.
pub fn action(row: Option<&Row>, sha256: &str, asked: Asked) -> Action {
    match row {
        Some(row) if row.sha256 == sha256 && asked.is_met_by(row.attributes) => Action::Restored,
        _ => Action::Written,
    }
}

/// A file of the ledger that its module no longer declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Where.
    pub path: FilePath,
    /// What is known of it.
    pub row: Row,
    /// Another module writes it now, so that only our part of a managed file goes.
    pub is_handed_on: bool,
}

/// What nobody declares any more. A module whose plan cannot be read keeps everything.
pub fn removals(ledger: &Ledger, declarations: &Declarations) -> Vec<Removal> {
    let is_unreadable =
        |module: &str| declarations.of(module).is_some_and(|declaration| declaration.files.is_none());
    let removal = |(path, row): (&FilePath, &Row)| {
        let holder = declarations.holder(path).map(|(holder, _)| holder.module.as_str());
        let is_handed_on = holder.is_some_and(|holder| holder != row.module);
        let is_managed = matches!(row.kept, Kept::Managed { .. });
        let goes = holder.is_none() || (is_handed_on && is_managed);
        (goes && !is_unreadable(&row.module)).then(|| Removal {
            path: path.clone(),
            row: row.clone(),
            is_handed_on,
        })
    };
    ledger.files().filter_map(removal).collect()
}
