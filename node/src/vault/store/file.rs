//! The redb file: every change is one transaction, head row included.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use redb::{
    Builder, Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition, WriteTransaction,
};

use super::head::{self, Mark, Marks};
use super::{Held, Listed, Notice, StoreError, Value};
use crate::vault::key::StoreKey;
use crate::vault::seal;

/// The format of what the tables hold.
const FORMAT: u64 = 1;
/// Memory for pages.
const CACHE_BYTES: usize = 8 << 20;
/// The name under which the head row is sealed; no value has it.
const HEAD_NAME: &str = "";

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const HEAD: TableDefinition<'_, (), (u64, &[u8])> = TableDefinition::new("head");
const VALUES: TableDefinition<'_, &str, (u64, Option<&[u8]>)> = TableDefinition::new("values");
const OUTBOX: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("outbox");

/// The open store. Values stay sealed on the disk until they are asked for.
pub struct Store {
    database: Database,
    key: StoreKey,
    changes: u64,
    marks: Marks,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("changes", &self.changes)
            .field("names", &self.marks.len())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at `path`, or makes an empty one, readable by its owner alone. Every row is opened once, so that
    /// one that was moved, changed or set back is found before anything is served.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, key: StoreKey) -> Result<Self, StoreError> {
        let file = |source| StoreError::File { path: path.display().to_string(), source };
        OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(file)?;
        let opened = std::panic::catch_unwind(|| {
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
            Self::with(builder.create(path)?, key)
        });
        // redb may panic over a file that something else has written into.
        opened.unwrap_or_else(|_| {
            Err(StoreError::Corrupt { detail: "the store could not make sense of it".to_owned() })
        })
    }

    fn with(database: Database, key: StoreKey) -> Result<Self, StoreError> {
        let transaction = database.begin_write()?;
        let is_new = {
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("format")?.map(|value| value.value());
            match found {
                None => meta.insert("format", FORMAT)?.is_none(),
                Some(FORMAT) => false,
                Some(other) => {
                    return Err(StoreError::Corrupt { detail: format!("it is of format {other}") });
                }
            }
        };
        transaction.open_table(VALUES)?;
        transaction.open_table(OUTBOX)?;
        let mut store = Self { database, key, changes: 0, marks: Marks::new() };
        if is_new {
            store.write_head(&transaction, 0, &Marks::new())?;
        }
        transaction.commit()?;
        (store.changes, store.marks) = store.verified()?;
        Ok(store)
    }

    /// Reads the head and every row, and compares the two.
    fn verified(&self) -> Result<(u64, Marks), StoreError> {
        let transaction = self.database.begin_read()?;
        let head = transaction.open_table(HEAD)?;
        let Some(row) = head.get(())? else { return Err(StoreError::tampered("the head row is missing")) };
        let (changes, sealed) = row.value();
        let expected = seal::open(&self.key, HEAD_NAME, changes, sealed)
            .map_err(|error| StoreError::sealing("the head row", error))?;
        let mut marks = Marks::new();
        for row in transaction.open_table(VALUES)?.iter()? {
            let (name, row) = row?;
            let (name, (version, sealed)) = (name.value(), row.value());
            if let Some(sealed) = sealed {
                seal::open(&self.key, name, version, sealed)
                    .map_err(|error| StoreError::sealing(&format!("the row of {name}"), error))?;
            }
            marks.insert(name.to_owned(), Mark { version, is_there: sealed.is_some() });
        }
        if head::content(changes, &marks) != expected.as_slice() {
            return Err(StoreError::tampered("a row is missing, or older than it was"));
        }
        Ok((changes, marks))
    }

    fn write_head(
        &self,
        transaction: &WriteTransaction,
        changes: u64,
        marks: &Marks,
    ) -> Result<(), StoreError> {
        let content = head::content(changes, marks);
        let sealed = seal::seal(&self.key, HEAD_NAME, changes, &content)
            .map_err(|error| StoreError::sealing("the head row", error))?;
        transaction.open_table(HEAD)?.insert((), (changes, sealed.as_slice()))?;
        Ok(())
    }

    /// A value, if it is held.
    ///
    /// # Errors
    /// [`StoreError::Tampered`] when the row was changed since the store was opened.
    pub fn get(&self, name: &str) -> Result<Option<Held>, StoreError> {
        let Some(mark) = self.marks.get(name).filter(|mark| mark.is_there) else { return Ok(None) };
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(VALUES)?;
        let row = table.get(name)?;
        let sealed = row.as_ref().and_then(|row| row.value().1);
        let sealed = sealed.ok_or_else(|| StoreError::tampered(format!("the row of {name} is gone")))?;
        let value = seal::open(&self.key, name, mark.version, sealed)
            .map_err(|error| StoreError::sealing(&format!("the row of {name}"), error))?;
        Ok(Some(Held { value: Value::new(value), version: mark.version }))
    }

    /// The highest number of a change that concerned one of these names, deletions included.
    pub fn version_among(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.marks.get(*name)).map(|mark| mark.version).max().unwrap_or(0)
    }

    /// The number that the next change will have.
    pub const fn next_change(&self) -> u64 {
        self.changes.saturating_add(1)
    }

    /// Every name that has a value, with its version.
    pub fn list(&self) -> Vec<Listed> {
        let there = self.marks.iter().filter(|(_, mark)| mark.is_there);
        there.map(|(name, mark)| Listed { name: name.clone(), version: mark.version }).collect()
    }

    /// Stores a value, and what is to be said about it, in one transaction; answers its version.
    ///
    /// # Errors
    /// [`StoreError`]; nothing has changed then.
    pub fn put(&mut self, name: &str, value: &Value, notices: &[Notice]) -> Result<u64, StoreError> {
        self.change(name, Some(value), notices)
    }

    /// Forgets a value, and says so; false when there was none.
    ///
    /// # Errors
    /// [`StoreError`]; nothing has changed then.
    pub fn delete(&mut self, name: &str, notices: &[Notice]) -> Result<bool, StoreError> {
        if !self.marks.get(name).is_some_and(|mark| mark.is_there) {
            return Ok(false);
        }
        self.change(name, None, notices).map(|_| true)
    }

    fn change(&mut self, name: &str, value: Option<&Value>, notices: &[Notice]) -> Result<u64, StoreError> {
        if name == HEAD_NAME {
            return Err(StoreError::tampered("a value without a name"));
        }
        let version = self.next_change();
        let sealed = value
            .map(|value| seal::seal(&self.key, name, version, value.expose()))
            .transpose()
            .map_err(|error| StoreError::sealing(name, error))?;
        let mut marks = self.marks.clone();
        marks.insert(name.to_owned(), Mark { version, is_there: sealed.is_some() });
        let transaction = self.database.begin_write()?;
        transaction.open_table(VALUES)?.insert(name, (version, sealed.as_deref()))?;
        {
            let mut outbox = transaction.open_table(OUTBOX)?;
            for notice in notices {
                outbox.insert(notice.subject.as_str(), (version, notice.payload.as_slice()))?;
            }
        }
        self.write_head(&transaction, version, &marks)?;
        transaction.commit()?;
        (self.changes, self.marks) = (version, marks);
        Ok(version)
    }

    /// What has yet to be said, each with the number of its change; at most this many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn unsent(&self, most: usize) -> Result<Vec<(u64, Notice)>, StoreError> {
        self.unsent_from("", most)
    }

    /// The same of subjects that begin so.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn unsent_from(&self, prefix: &str, most: usize) -> Result<Vec<(u64, Notice)>, StoreError> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(OUTBOX)?;
        let mut unsent = Vec::new();
        for row in table.range(prefix..)?.take(most) {
            let (subject, row) = row?;
            if !subject.value().starts_with(prefix) {
                break;
            }
            let (change, payload) = row.value();
            unsent.push((change, Notice { subject: subject.value().to_owned(), payload: payload.to_vec() }));
        }
        Ok(unsent)
    }

    /// How much has yet to be said.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn count_unsent(&self) -> Result<u64, StoreError> {
        Ok(self.database.begin_read()?.open_table(OUTBOX)?.len()?)
    }

    /// What was written down as `subject` about this change is said to these instead, in one transaction; whoever is to hear of a
    /// newer change already hears of that one.
    ///
    /// # Errors
    /// [`StoreError`]; nothing has changed then.
    pub fn address(&mut self, subject: &str, change: u64, notices: &[Notice]) -> Result<(), StoreError> {
        let transaction = self.database.begin_write()?;
        {
            let mut outbox = transaction.open_table(OUTBOX)?;
            for notice in notices {
                let is_newer = outbox.get(notice.subject.as_str())?.is_some_and(|row| row.value().0 > change);
                if !is_newer {
                    outbox.insert(notice.subject.as_str(), (change, notice.payload.as_slice()))?;
                }
            }
            outbox.remove(subject)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The broker has what was said there about this change; a newer change is still to be said.
    ///
    /// # Errors
    /// [`StoreError`]; it will be said once more then.
    pub fn sent(&mut self, subject: &str, change: u64) -> Result<(), StoreError> {
        let transaction = self.database.begin_write()?;
        {
            let mut outbox = transaction.open_table(OUTBOX)?;
            let is_it = outbox.get(subject)?.is_some_and(|row| row.value().0 <= change);
            if is_it {
                outbox.remove(subject)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Seals every row with another key, in one transaction; versions stay.
    ///
    /// # Errors
    /// [`StoreError`]; the old key stays in use then.
    pub fn rekey(&mut self, key: StoreKey) -> Result<(), StoreError> {
        let old = std::mem::replace(&mut self.key, key);
        let done = self.sealed_anew(&old);
        if done.is_err() {
            self.key = old;
        }
        done
    }

    fn sealed_anew(&self, old: &StoreKey) -> Result<(), StoreError> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(VALUES)?;
            for (name, mark) in self.marks.iter().filter(|(_, mark)| mark.is_there) {
                let sealing = |error| StoreError::sealing(&format!("the row of {name}"), error);
                let row = table.get(name.as_str())?.and_then(|row| row.value().1.map(<[u8]>::to_vec));
                let row = row.ok_or_else(|| StoreError::tampered(format!("the row of {name} is gone")))?;
                let value = seal::open(old, name, mark.version, &row).map_err(sealing)?;
                let sealed = seal::seal(&self.key, name, mark.version, &value).map_err(sealing)?;
                table.insert(name.as_str(), (mark.version, Some(sealed.as_slice())))?;
            }
        }
        self.write_head(&transaction, self.changes, &self.marks)?;
        transaction.commit()?;
        Ok(())
    }

    #[cfg(test)]
    pub(super) const fn database(&self) -> &Database {
        &self.database
    }
}

#[cfg(test)]
pub(super) const VALUES_FOR_TESTS: TableDefinition<'_, &str, (u64, Option<&[u8]>)> = VALUES;
