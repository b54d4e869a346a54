//! What nobody declares any more is taken away.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::declaration::Declarations;
use super::disk::{Folder, Found, RemoveEffect, Unsynced, remove_file, remove_folder};
use super::fault::{Fault, FileCode};
use super::keeper::{Keeper, digest};
use super::ledger::{Entry, Kept, LedgerError, Row};
use super::managed;
use super::plan::{self, Removal};

/// What was taken away, or why it was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Where.
    pub path: String,
    /// The module it belonged to.
    pub module: String,
    /// What came of it.
    pub done: Result<TakenHow, Fault>,
}

/// How a file was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenHow {
    /// The file is gone.
    Removed,
    /// Our part is out of it, the rest stays.
    Withdrawn,
    /// It is no longer as it was seeded, so that it stays as its program's own.
    Left,
    /// It was not there any more.
    Absent,
}

impl Keeper {
    /// Takes away what nobody declares any more, folders of our own that are empty then included. Nobody is told.
    ///
    /// # Errors
    /// [`LedgerError`]: what was taken away is taken away once more the next time, which changes nothing.
    pub fn take_away(&mut self, declarations: &Declarations) -> Result<Vec<Taken>, LedgerError> {
        let (mut taken, mut entries) = (Vec::new(), Vec::new());
        for removal in plan::removals(self.ledger(), declarations) {
            let done = self.remove(&removal);
            if done.is_ok() {
                entries.push(Entry::File { path: removal.path.clone(), row: None });
            }
            let (path, module) = (removal.path.to_string(), removal.row.module);
            taken.push(Taken { path, module, done });
        }
        for module in self.ledger().debtors() {
            if declarations.of(module).is_none() {
                entries.extend(self.owed_by(module).into_iter().map(Entry::Told));
            }
        }
        self.store.write(&entries)?;
        if !taken.is_empty() {
            self.remove_folders()?;
        }
        Ok(taken)
    }

    fn remove(&self, removal: &Removal) -> Result<TakenHow, Fault> {
        self.roots.admit(&removal.path)?;
        match &removal.row.kept {
            Kept::Owned => Ok(taken(remove_file(&removal.path)?)),
            Kept::Seed => {
                let Some(content) = read(removal)? else { return Ok(TakenHow::Absent) };
                if digest(&content.1) != removal.row.sha256 {
                    return Ok(TakenHow::Left);
                }
                Ok(taken(remove_file(&removal.path)?))
            }
            Kept::Managed { format, ours } => {
                let Some((folder, content, row)) =
                    read(removal)?.map(|(folder, content)| (folder, content, &removal.row))
                else {
                    return Ok(TakenHow::Absent);
                };
                let left = managed::withdraw(format, &row.module, &content, ours)
                    .map_err(|error| Fault::new(FileCode::ManagedDamaged, error.to_string()))?;
                if row.created && !removal.is_handed_on && managed::is_blank(format, &left) {
                    return Ok(taken(remove_file(&removal.path)?));
                }
                if left != content {
                    replace(&folder, removal, &left, row)?;
                }
                Ok(TakenHow::Withdrawn)
            }
        }
    }

    fn remove_folders(&mut self) -> Result<(), LedgerError> {
        let mut entries = Vec::new();
        let unused = self.ledger().folders().filter(|folder| !self.ledger().is_used(folder));
        for folder in unused {
            match remove_folder(folder) {
                Ok(RemoveEffect::Removed | RemoveEffect::Absent) => {
                    entries.push(Entry::Folder { path: folder.clone(), is_ours: false });
                }
                Ok(RemoveEffect::NotEmpty) => {}
                Err(fault) => tracing::warn!(%folder, %fault, "cannot remove a folder that the engine made"),
            }
        }
        self.store.write(&entries)
    }
}

const fn taken(effect: RemoveEffect) -> TakenHow {
    match effect {
        RemoveEffect::Absent => TakenHow::Absent,
        RemoveEffect::Removed | RemoveEffect::NotEmpty => TakenHow::Removed,
    }
}

/// A file's folder and content, if it is there.
type Present = Option<(Arc<Folder>, Zeroizing<Vec<u8>>)>;

fn read(removal: &Removal) -> Result<Present, Fault> {
    let Some(folder) = Folder::open(&removal.path)? else { return Ok(None) };
    let name = removal.path.name();
    let Some(found) = Found::look(&folder, name)? else { return Ok(None) };
    let content = found.read(name)?;
    Ok(Some((Arc::new(folder), content)))
}

fn replace(folder: &Arc<Folder>, removal: &Removal, content: &[u8], row: &Row) -> Result<(), Fault> {
    let had = Found::look(folder, removal.path.name())?.map(|found| found.attributes);
    Unsynced::write(folder, &removal.path, content, had.unwrap_or(row.attributes))?.sync()?.replace()?;
    folder.sync()
}
