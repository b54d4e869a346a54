//! Files written, put back and taken away: the decisions of `plan.rs`, carried out on the disk and in the ledger.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::declaration::{Declaration, Declarations, DeclaredFile, Writing};
use super::disk::{
    Accounts, FilePath, Folder, Found, NewFolder, Placed, Roots, Staged, Unsynced, sweep, sync_all,
};
use super::fault::{Fault, FileCode};
use super::ledger::{Entry, Ledger, LedgerError, Owed, Row, Store};
use super::plan::{self, Action, Asked, Filled};
use super::program::Program;
use super::round::Round;

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Where, as the request said it.
    pub path: String,
    /// What was done, or why it was not.
    pub done: Result<Done, Fault>,
}

/// What was done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// What.
    pub action: Action,
    /// SHA-256 of the whole file as it lies on the disk now, in hexadecimal; none of a seed that was kept.
    pub sha256: Option<String>,
}

/// Writes files and remembers what it wrote.
#[derive(Debug)]
pub struct Keeper {
    pub(super) store: Store,
    pub(super) roots: Roots,
    pub(super) accounts: Accounts,
}

/// A file on its way.
struct Job<'a> {
    at: usize,
    file: &'a DeclaredFile,
    unsynced: Option<Unsynced>,
    staged: Option<Staged>,
    folder: Option<Arc<Folder>>,
    row: Row,
    previous: Option<Row>,
    action: Action,
    was_to_change: bool,
    /// Its content has taken the target's place, whether that is on the disk for sure or not.
    is_placed: bool,
    sha256: String,
}

impl Keeper {
    /// A keeper with this ledger, bounded by these roots.
    pub const fn new(store: Store, roots: Roots, accounts: Accounts) -> Self {
        Self { store, roots, accounts }
    }

    /// What it knows of its work.
    pub const fn ledger(&self) -> &Ledger {
        self.store.ledger()
    }

    /// Removes what a killed life of the engine left beside its targets; answers how many.
    pub fn sweep(&self) -> usize {
        let mut swept = 0;
        let mut seen = BTreeSet::new();
        for (path, _) in self.ledger().files() {
            if seen.insert(path.folder_parts()) {
                match sweep(path) {
                    Ok(count) => swept += count,
                    Err(fault) => tracing::warn!(%path, %fault, "cannot look for leftovers beside a file"),
                }
            }
        }
        swept
    }

    /// Writes the files of one module that a request filled, in its order; answers what became of each.
    ///
    /// Everything is staged before anything takes its place. When one of them cannot be staged, no new content of this
    /// request is placed, so that no module is half of one version and half of another; what was there before and was
    /// changed by somebody else is put back all the same.
    ///
    /// # Errors
    /// [`LedgerError`]: nothing was placed that is not written down.
    pub fn write(
        &mut self,
        declarations: &Declarations,
        declaration: &Declaration,
        request: &[Filled],
    ) -> Result<Vec<Outcome>, LedgerError> {
        let mut faults: Vec<(usize, Fault)> = Vec::new();
        let mut jobs: Vec<Job<'_>> = Vec::new();
        // Folders that were made for what is held back are ours all the same.
        let mut made: Vec<Entry> = Vec::new();
        let mut round = Round::new(&self.accounts);
        for (at, filled) in request.iter().enumerate() {
            match self.stage(&mut round, declarations, declaration, filled, at) {
                Ok(job) => jobs.push(job),
                Err(fault) => faults.push((at, fault)),
            }
        }
        drop(round);
        let mut jobs = sync(jobs, &mut faults);
        faults.sort_by_key(|(at, _)| *at);
        if let Some((first, _)) = faults.first() {
            let culprit = request.get(*first).map_or("", |filled| filled.path.as_str());
            let reason = format!("held back, because {culprit} of the same request cannot be written");
            let (held, rest): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_new);
            jobs = rest;
            let paths: BTreeSet<FilePath> = held.iter().flat_map(Job::made).collect();
            made = paths.into_iter().map(ours).collect();
            faults.extend(held.iter().map(|job| (job.at, Fault::new(FileCode::Io, reason.clone()))));
        }
        let owing = self.note(&declaration.module, &jobs)?;
        let mut outcomes: Vec<(usize, Result<Done, Fault>)> =
            faults.into_iter().map(|(at, fault)| (at, Err(fault))).collect();
        let (mut undone, mut needed) = (Vec::new(), BTreeSet::new());
        for (mut job, done) in place(jobs) {
            if job.is_placed || done.as_ref().is_ok_and(|done| done.action.is_change()) {
                // Also where its folder could not be synced: a program reads what is there.
                needed.extend(&job.file.program);
            } else if self.ledger().file(&job.file.path) != job.previous.as_ref() && job.was_to_change {
                undone.push(Entry::File {
                    path: job.file.path.clone(),
                    row: job.previous.take().map(Box::new),
                });
            }
            outcomes.push((job.at, done));
        }
        let needless = owing.into_iter().filter(|owed| !needed.contains(&owed.program));
        undone.extend(needless.map(Entry::Told));
        undone.extend(made);
        self.store.write(&undone)?;
        outcomes.sort_by_key(|(at, _)| *at);
        let named = outcomes
            .into_iter()
            .filter_map(|(at, done)| Some(Outcome { path: request.get(at)?.path.clone(), done }));
        Ok(named.collect())
    }

    /// Looks at one file and puts what it is to hold beside it, where it does not hold it yet.
    fn stage<'a: 'r, 'r>(
        &self,
        round: &mut Round<'r>,
        declarations: &'a Declarations,
        declaration: &'a Declaration,
        filled: &Filled,
        at: usize,
    ) -> Result<Job<'a>, Fault> {
        if digest(&filled.content) != filled.sha256 {
            return Err(Fault::new(FileCode::HashMismatch, "the content is not what its hash says"));
        }
        let file = plan::declared(declarations, declaration, filled)?;
        self.roots.admit(&file.path)?;
        let asked = asked(round, file, filled)?;
        let known = plan::known(self.ledger(), file);
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let name = file.path.name();
        let folder = round.folder(&file.path)?;
        let found = match &folder {
            Some(folder) => Found::look(folder, name)?,
            None => None,
        };
        let had = found.as_ref().map(|found| found.attributes);
        let attributes = asked.resolved(had, known.map(|row| row.attributes), own);
        let mut job = Job {
            at,
            file,
            unsynced: None,
            staged: None,
            folder: None,
            row: Row {
                module: declaration.module.clone(),
                kept: plan::kept(file, known.map(Row::ours).unwrap_or_default()),
                sha256: filled.sha256.clone(),
                attributes,
                created: known.map_or(had.is_none(), |row| row.created),
            },
            previous: self.ledger().file(&file.path).cloned(),
            action: Action::Unchanged,
            was_to_change: false,
            is_placed: false,
            sha256: String::new(),
        };
        let whole = match (&file.writing, found) {
            (Writing::Seed, Some(_)) => {
                job.action = Action::Kept;
                if let Some(row) = known {
                    job.row = row.clone();
                }
                return Ok(job);
            }
            (Writing::Seed | Writing::Owned, None) => filled.content.clone(),
            (Writing::Owned, Some(found)) => {
                job.sha256.clone_from(&filled.sha256);
                if had == Some(attributes) && found.holds(name, &filled.content)? {
                    return Ok(job);
                }
                filled.content.clone()
            }
            (Writing::Managed(_), found) => {
                if found.as_ref().is_some_and(|found| found.links > 1) {
                    let reason = format!("{name} has several names, so that what is in it may be another's");
                    return Err(Fault::new(FileCode::PathRefused, reason));
                }
                let target = found.map(|found| found.read(name)).transpose()?;
                let bytes = target.as_ref().map(|target| target.as_slice());
                let (whole, ours) = plan::content(file, &declaration.module, filled, bytes, known)?;
                job.row.kept = plan::kept(file, ours);
                job.sha256 = digest(&whole);
                if had == Some(attributes) && bytes == Some(whole.as_slice()) {
                    return Ok(job);
                }
                whole
            }
        };
        job.sha256 = digest(&whole);
        job.action = match file.writing {
            Writing::Seed => Action::Seeded,
            Writing::Owned | Writing::Managed(_) => plan::action(known, &filled.sha256, asked),
        };
        job.was_to_change = true;
        let is_private = filled.is_sensitive || file.is_secret;
        let new = NewFolder {
            user: attributes.user,
            group: attributes.group,
            mode: if is_private { 0o700 } else { 0o750 },
        };
        let folder = match folder {
            Some(folder) => folder,
            None => round.folder_or_make(&file.path, new)?,
        };
        job.unsynced = Some(Unsynced::write(&folder, &file.path, &whole, attributes)?);
        job.folder = Some(folder);
        Ok(job)
    }

    /// Writes down what is about to be placed, and whom it concerns, in one transaction; answers what is owed by it and was
    /// not before.
    fn note(&mut self, module: &str, jobs: &[Job<'_>]) -> Result<Vec<Owed>, LedgerError> {
        let mut entries = Vec::new();
        let mut owed: BTreeSet<&Program> = BTreeSet::new();
        let mut made = BTreeSet::new();
        for job in jobs {
            let is_news = self.ledger().file(&job.file.path) != Some(&job.row);
            // A seed that was there before we came is the program's alone.
            let is_theirs = job.action == Action::Kept;
            if is_news && !is_theirs {
                entries
                    .push(Entry::File { path: job.file.path.clone(), row: Some(Box::new(job.row.clone())) });
            }
            made.extend(job.made());
            if job.action.is_change() {
                owed.extend(&job.file.program);
            }
        }
        entries.extend(made.into_iter().map(ours));
        let number = self.ledger().next_number();
        let before: BTreeSet<Program> = self.owed_by(module).into_iter().map(|owed| owed.program).collect();
        let owe = |program: &Program| Owed { module: module.to_owned(), program: program.clone(), number };
        let new =
            owed.iter().filter(|program| !before.contains(**program)).map(|program| owe(program)).collect();
        entries.extend(owed.into_iter().map(|program| Entry::Owe(owe(program))));
        self.store.write(&entries)?;
        Ok(new)
    }

    /// What a module's programs have yet to be told.
    pub fn owed_by(&self, module: &str) -> Vec<Owed> {
        self.ledger().owed_by(module)
    }

    /// A program was told.
    ///
    /// # Errors
    /// [`LedgerError`]; it will be told once more then.
    pub fn told(&mut self, owed: Vec<Owed>) -> Result<(), LedgerError> {
        self.store.write(&owed.into_iter().map(Entry::Told).collect::<Vec<_>>())
    }
}

impl Job<'_> {
    /// The folders that had to be made for it.
    fn made(&self) -> impl Iterator<Item = FilePath> {
        let made = self.folder.iter().flat_map(|folder| folder.made());
        made.filter_map(|made| FilePath::parse(made).ok())
    }

    /// True when it brings something that was not there before.
    fn is_new(&self) -> bool {
        matches!(self.action, Action::Written | Action::Seeded)
    }

    /// Has what was staged take its place, which is on the disk for sure once the folder is.
    fn place(&mut self) -> Result<(), Fault> {
        let Some(staged) = self.staged.take() else {
            self.folder = None;
            return Ok(());
        };
        let placed = match self.file.writing {
            Writing::Seed => staged.place_if_absent()?,
            Writing::Owned | Writing::Managed(_) => staged.replace()?,
        };
        self.is_placed = placed == Placed::There;
        if placed == Placed::Taken {
            self.action = Action::Kept;
            self.folder = None;
        }
        Ok(())
    }

    fn done(&self) -> Done {
        let sha256 = (self.action != Action::Kept).then(|| self.sha256.clone());
        Done { action: self.action, sha256 }
    }
}

/// Puts everything that is new onto the disk, all of it together; what cannot be is no job any more, but a fault.
fn sync<'a>(jobs: Vec<Job<'a>>, faults: &mut Vec<(usize, Fault)>) -> Vec<Job<'a>> {
    let (mut ready, mut new, mut unsynced) = (Vec::with_capacity(jobs.len()), Vec::new(), Vec::new());
    for mut job in jobs {
        if let Some(content) = job.unsynced.take() {
            new.push(job);
            unsynced.push(content);
        } else {
            ready.push(job);
        }
    }
    for (mut job, synced) in new.into_iter().zip(sync_all(unsynced)) {
        match synced {
            Ok(staged) => {
                job.staged = Some(staged);
                ready.push(job);
            }
            Err(fault) => faults.push((job.at, fault)),
        }
    }
    ready.sort_by_key(|job| job.at);
    ready
}

/// Has everything that was staged take its place, then puts each folder onto the disk once.
fn place(jobs: Vec<Job<'_>>) -> Vec<(Job<'_>, Result<Done, Fault>)> {
    let mut placed: Vec<(Job<'_>, Result<(), Fault>)> = Vec::with_capacity(jobs.len());
    for mut job in jobs {
        let is_placed = job.place();
        placed.push((job, is_placed));
    }
    let mut synced: Vec<(Arc<Folder>, Result<(), Fault>)> = Vec::new();
    let mut sync = |folder: &Arc<Folder>| {
        if let Some((_, result)) = synced.iter().find(|(one, _)| Arc::ptr_eq(one, folder)) {
            return result.clone();
        }
        let result = folder.sync();
        synced.push((Arc::clone(folder), result.clone()));
        result
    };
    placed
        .into_iter()
        .map(|(job, is_placed)| {
            let done =
                is_placed.and_then(|()| job.folder.as_ref().map_or(Ok(()), &mut sync)).map(|()| job.done());
            (job, done)
        })
        .collect()
}

fn asked<'r>(round: &mut Round<'r>, file: &'r DeclaredFile, filled: &Filled) -> Result<Asked, Fault> {
    let user = file.owner.as_deref().map(|name| round.user(name)).transpose()?;
    let group = file.group.as_deref().map(|name| round.group(name)).transpose()?;
    Asked { user, group, mode: file.mode }.for_content(filled.is_sensitive || file.is_secret)
}

/// A folder that we made.
fn ours(path: FilePath) -> Entry {
    Entry::Folder { path, is_ours: true }
}

pub(super) fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}
