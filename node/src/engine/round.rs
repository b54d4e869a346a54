//! What is looked up once for all files of a request: their folders, and the numbers of their owners.

use std::collections::HashMap;
use std::sync::Arc;

use super::disk::{Accounts, FilePath, Folder, NewFolder};
use super::fault::Fault;

/// Most folders that are held open for files to come.
const MAX_FOLDERS: usize = 64;

/// One request's round over the disk. A folder stays the one that was opened first, whatever happens to its name meanwhile.
#[derive(Debug)]
pub(super) struct Round<'a> {
    accounts: &'a Accounts,
    users: HashMap<&'a str, u32>,
    groups: HashMap<&'a str, u32>,
    folders: HashMap<String, Arc<Folder>>,
}

impl<'a> Round<'a> {
    pub fn new(accounts: &'a Accounts) -> Self {
        Self { accounts, users: HashMap::new(), groups: HashMap::new(), folders: HashMap::new() }
    }

    /// The number of a user.
    pub fn user(&mut self, name: &'a str) -> Result<u32, Fault> {
        if let Some(known) = self.users.get(name) {
            return Ok(*known);
        }
        let found = self.accounts.user(name)?;
        self.users.insert(name, found);
        Ok(found)
    }

    /// The number of a group.
    pub fn group(&mut self, name: &'a str) -> Result<u32, Fault> {
        if let Some(known) = self.groups.get(name) {
            return Ok(*known);
        }
        let found = self.accounts.group(name)?;
        self.groups.insert(name, found);
        Ok(found)
    }

    /// The folder of a path, if it is there.
    pub fn folder(&mut self, path: &FilePath) -> Result<Option<Arc<Folder>>, Fault> {
        if let Some(known) = self.folders.get(path.folder()) {
            return Ok(Some(Arc::clone(known)));
        }
        Ok(Folder::open(path)?.map(|folder| self.keep(path, folder)))
    }

    /// The folder of a path; what is missing on the way is made.
    pub fn folder_or_make(&mut self, path: &FilePath, new: NewFolder) -> Result<Arc<Folder>, Fault> {
        if let Some(known) = self.folders.get(path.folder()) {
            return Ok(Arc::clone(known));
        }
        let folder = Folder::open_or_make(path, new)?;
        Ok(self.keep(path, folder))
    }

    fn keep(&mut self, path: &FilePath, folder: Folder) -> Arc<Folder> {
        let folder = Arc::new(folder);
        if self.folders.len() == MAX_FOLDERS {
            self.folders.clear();
        }
        self.folders.insert(path.folder().to_owned(), Arc::clone(&folder));
        folder
    }
}
