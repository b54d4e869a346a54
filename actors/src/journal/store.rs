//! The journal's file: redb tables, one transaction a batch.

use std::path::Path;

use quartermaster_proto::choria::identity::Identity;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle as _};

use super::error::StoreError;
use super::journal::{Journal, Write};

/// The format of what the tables hold.
pub(super) const FORMAT: u64 = 1;
/// Memory that the store may use for pages; what is read is read once.
const CACHE_BYTES: usize = 8 << 20;
/// A file of this size is worth a look for free pages when it is opened.
const COMPACT_FROM: u64 = 16 << 20;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const CYCLES: TableDefinition<'_, (u64, u32), &str> = TableDefinition::new("cycles");
const ROSTER: TableDefinition<'_, &str, &str> = TableDefinition::new("roster");
const ATTEMPTS: TableDefinition<'_, u64, (&str, &str)> = TableDefinition::new("attempts");
const MATERIALS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("materials");
/// Records of what providers did, by host and place. Files that an earlier version began do not have it.
const STEPS: TableDefinition<'_, (&str, u32), &str> = TableDefinition::new("steps");
const PAUSE: TableDefinition<'_, (), &str> = TableDefinition::new("pause");

/// An open file.
pub(super) struct Store {
    database: Database,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store(..)")
    }
}

impl Store {
    /// Opens the file at `path`, which must exist and may be empty. Every page is verified.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        // The store may panic over a file that something else has written into.
        std::panic::catch_unwind(|| {
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
            Self::with(builder.create(path)?)
        })
        .unwrap_or_else(|_| Err(StoreError::Corrupt("the store could not make sense of it".to_owned())))
    }

    /// Takes a database: a new one gets its tables, another must be of this format.
    pub(super) fn with(mut database: Database) -> Result<Self, StoreError> {
        let transaction = database.begin_read()?;
        let is_new = transaction.list_tables()?.next().is_none();
        let has_steps = transaction.list_tables()?.any(|table| table.name() == STEPS.name());
        if !is_new {
            let meta = transaction.open_table(META)?;
            let found = meta.get("format")?.map(|value| value.value());
            match found {
                Some(FORMAT) => {}
                Some(found) => return Err(StoreError::Format { found, ours: FORMAT }),
                None => return Err(StoreError::Foreign),
            }
        }
        transaction.close()?;
        if is_new {
            let transaction = database.begin_write()?;
            transaction.open_table(META)?.insert("format", FORMAT)?;
            transaction.open_table(CYCLES)?;
            transaction.open_table(ROSTER)?;
            transaction.open_table(ATTEMPTS)?;
            transaction.open_table(MATERIALS)?;
            transaction.open_table(PAUSE)?;
            transaction.open_table(STEPS)?;
            transaction.commit()?;
        } else if !has_steps {
            let transaction = database.begin_write()?;
            transaction.open_table(STEPS)?;
            transaction.commit()?;
        } else if Self::allocated(&database)? >= COMPACT_FROM {
            database.compact()?;
        }
        Ok(Self { database })
    }

    fn allocated(database: &Database) -> Result<u64, StoreError> {
        let transaction = database.begin_write()?;
        let stats = transaction.stats()?;
        transaction.abort()?;
        Ok(stats.allocated_pages().saturating_mul(u64::try_from(stats.page_size()).unwrap_or(u64::MAX)))
    }

    /// Reads everything into `journal`.
    pub(super) fn read(&self, journal: &mut Journal) -> Result<(), StoreError> {
        let transaction = self.database.begin_read()?;
        let mut restore = |write: Write| journal.restore(write).map_err(StoreError::Corrupt);
        for row in transaction.open_table(ATTEMPTS)?.iter()? {
            let (key, value) = row?;
            let (host, text) = value.value();
            restore(Write::Attempt { cycle: key.value(), host: name(host)?, text: text.to_owned() })?;
        }
        for row in transaction.open_table(ROSTER)?.iter()? {
            let (key, value) = row?;
            restore(Write::Standing { host: name(key.value())?, text: Some(value.value().to_owned()) })?;
        }
        for row in transaction.open_table(CYCLES)?.iter()? {
            let (key, value) = row?;
            let (cycle, number) = key.value();
            restore(Write::Cycle { cycle, number, text: value.value().to_owned() })?;
        }
        for row in transaction.open_table(MATERIALS)?.iter()? {
            let (key, value) = row?;
            restore(Write::Material { host: name(key.value())?, sealed: Some(value.value().to_vec()) })?;
        }
        for row in transaction.open_table(STEPS)?.iter()? {
            let (key, value) = row?;
            let (host, number) = key.value();
            restore(Write::Step { host: name(host)?, number, text: value.value().to_owned() })?;
        }
        if let Some(pause) = transaction.open_table(PAUSE)?.get(())? {
            restore(Write::Pause(Some(pause.value().to_owned())))?;
        }
        Ok(())
    }

    /// Writes a batch. When this returns, it is on the disk.
    pub(super) fn write(&self, writes: &[Write]) -> Result<(), StoreError> {
        let transaction = self.database.begin_write()?;
        {
            let mut cycles = transaction.open_table(CYCLES)?;
            let mut roster = transaction.open_table(ROSTER)?;
            let mut attempts = transaction.open_table(ATTEMPTS)?;
            let mut materials = transaction.open_table(MATERIALS)?;
            let mut pauses = transaction.open_table(PAUSE)?;
            let mut steps = transaction.open_table(STEPS)?;
            for write in writes {
                match write {
                    Write::Cycle { cycle, number, text } => {
                        cycles.insert((*cycle, *number), text.as_str())?;
                    }
                    Write::DropCycle { cycle, entries } => {
                        for number in 0..*entries {
                            cycles.remove((*cycle, number))?;
                        }
                    }
                    Write::Standing { host, text: Some(text) } => {
                        roster.insert(host.as_str(), text.as_str())?;
                    }
                    Write::Standing { host, text: None } => {
                        roster.remove(host.as_str())?;
                    }
                    Write::Attempt { cycle, host, text } => {
                        attempts.insert(cycle, (host.as_str(), text.as_str()))?;
                    }
                    Write::DropAttempt { cycle } => {
                        attempts.remove(cycle)?;
                    }
                    Write::Material { host, sealed: Some(sealed) } => {
                        materials.insert(host.as_str(), sealed.as_slice())?;
                    }
                    Write::Material { host, sealed: None } => {
                        materials.remove(host.as_str())?;
                    }
                    Write::Step { host, number, text } => {
                        steps.insert((host.as_str(), *number), text.as_str())?;
                    }
                    Write::DropSteps { host, entries } => {
                        for number in 0..*entries {
                            steps.remove((host.as_str(), number))?;
                        }
                    }
                    Write::Pause(Some(pause)) => {
                        pauses.insert((), pause.as_str())?;
                    }
                    Write::Pause(None) => {
                        pauses.remove(())?;
                    }
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

fn name(text: &str) -> Result<Identity, StoreError> {
    Identity::parse(text).map_err(|error| StoreError::Corrupt(format!("a server's name is not one: {error}")))
}
