//! The ledger's file: redb tables, one transaction for everything that belongs together.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use redb::{Builder, Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::{Entry, Ledger, LedgerError, Owed};
use crate::engine::disk::FilePath;
use crate::engine::program::Program;

/// The format of what the tables hold.
const FORMAT: u64 = 1;
/// Memory for pages; everything is held in memory anyway.
const CACHE_BYTES: usize = 4 << 20;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FILES: TableDefinition<'_, &str, &str> = TableDefinition::new("files");
const FOLDERS: TableDefinition<'_, &str, ()> = TableDefinition::new("folders");
const OWED: TableDefinition<'_, (&str, &str), u64> = TableDefinition::new("owed");

/// The open file and what it holds.
pub struct Store {
    database: Database,
    ledger: Ledger,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the file at `path`, or makes it, readable by its owner alone. Every page is verified.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let file = |source| LedgerError::File { path: path.display().to_string(), source };
        OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(file)?;
        let opened = std::panic::catch_unwind(|| {
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
            Self::with(builder.create(path)?)
        });
        // The store may panic over a file that something else has written into.
        opened.unwrap_or_else(|_| Err(LedgerError::corrupt("the store could not make sense of it")))
    }

    fn with(database: Database) -> Result<Self, LedgerError> {
        let transaction = database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("format")?.map(|value| value.value());
            match found {
                None => {
                    meta.insert("format", FORMAT)?;
                }
                Some(FORMAT) => {}
                Some(other) => return Err(LedgerError::corrupt(format!("it is of format {other}"))),
            }
            transaction.open_table(FILES)?;
            transaction.open_table(FOLDERS)?;
            transaction.open_table(OWED)?;
        }
        transaction.commit()?;
        let ledger = read(&database)?;
        Ok(Self { database, ledger })
    }

    /// What is known.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Writes entries down. When this returns, they are on the disk; nothing is written for none.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing of them counts then.
    pub fn write(&mut self, entries: &[Entry]) -> Result<(), LedgerError> {
        if entries.is_empty() {
            return Ok(());
        }
        let transaction = self.database.begin_write()?;
        {
            let mut files = transaction.open_table(FILES)?;
            let mut folders = transaction.open_table(FOLDERS)?;
            let mut owed = transaction.open_table(OWED)?;
            for entry in entries {
                match entry {
                    Entry::File { path, row: Some(row) } => {
                        let text = serde_json::to_string(row)
                            .map_err(|error| LedgerError::corrupt(error.to_string()))?;
                        files.insert(path.as_str(), text.as_str())?;
                    }
                    Entry::File { path, row: None } => {
                        files.remove(path.as_str())?;
                    }
                    Entry::Folder { path, is_ours: true } => {
                        folders.insert(path.as_str(), ())?;
                    }
                    Entry::Folder { path, is_ours: false } => {
                        folders.remove(path.as_str())?;
                    }
                    Entry::Owe(change) => {
                        let program = program_text(&change.program)?;
                        owed.insert((change.module.as_str(), program.as_str()), change.number)?;
                    }
                    Entry::Told(change) => {
                        let program = program_text(&change.program)?;
                        let key = (change.module.as_str(), program.as_str());
                        let number = owed.get(key)?.map(|number| number.value());
                        if number.is_some_and(|number| number <= change.number) {
                            owed.remove(key)?;
                        }
                    }
                }
            }
        }
        transaction.commit()?;
        for entry in entries {
            self.ledger.enter(entry);
        }
        Ok(())
    }
}

fn program_text(program: &Program) -> Result<String, LedgerError> {
    serde_json::to_string(program).map_err(|error| LedgerError::corrupt(error.to_string()))
}

fn read(database: &Database) -> Result<Ledger, LedgerError> {
    let mut ledger = Ledger::default();
    let transaction = database.begin_read()?;
    for row in transaction.open_table(FILES)?.iter()? {
        let (path, text) = row?;
        let row = serde_json::from_str(text.value())
            .map_err(|error| LedgerError::corrupt(format!("the row of {}: {error}", path.value())))?;
        ledger.enter(&Entry::File { path: file_path(path.value())?, row: Some(Box::new(row)) });
    }
    for row in transaction.open_table(FOLDERS)?.iter()? {
        let (path, ()) = (row?.0, ());
        ledger.enter(&Entry::Folder { path: file_path(path.value())?, is_ours: true });
    }
    for row in transaction.open_table(OWED)?.iter()? {
        let (key, number) = row?;
        let (module, program) = key.value();
        let program = serde_json::from_str(program)
            .map_err(|error| LedgerError::corrupt(format!("a program owed by {module}: {error}")))?;
        ledger.enter(&Entry::Owe(Owed { module: module.to_owned(), program, number: number.value() }));
    }
    Ok(ledger)
}

fn file_path(text: &str) -> Result<FilePath, LedgerError> {
    FilePath::parse(text).map_err(|error| LedgerError::corrupt(format!("{text:?}: {error}")))
}
