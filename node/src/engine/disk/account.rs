//! Names of users and groups, as numbers.

use std::fs;
use std::path::PathBuf;

use crate::engine::fault::{Fault, FileCode};

/// Where names are looked up. Both files are read at each question: they are small, and an account may be minutes old.
#[derive(Debug, Clone)]
pub struct Accounts {
    users: PathBuf,
    groups: PathBuf,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { users: "/etc/passwd".into(), groups: "/etc/group".into() }
    }
}

impl Accounts {
    /// Reads these files instead of the machine's.
    pub fn from_files(users: PathBuf, groups: PathBuf) -> Self {
        Self { users, groups }
    }

    /// The number of a user; a number names itself.
    ///
    /// # Errors
    /// [`FileCode::NoSuchUser`].
    pub fn user(&self, name: &str) -> Result<u32, Fault> {
        number(&self.users, "user", name)
    }

    /// The number of a group; a number names itself.
    ///
    /// # Errors
    /// [`FileCode::NoSuchUser`].
    pub fn group(&self, name: &str) -> Result<u32, Fault> {
        number(&self.groups, "group", name)
    }
}

impl Accounts {
    /// The main group of a user, where the user is given by name and known.
    pub fn group_of(&self, user: &str) -> Option<u32> {
        let text = fs::read_to_string(&self.users).ok()?;
        let line = text.lines().find(|line| line.split(':').next() == Some(user))?;
        line.split(':').nth(3)?.parse().ok()
    }
}

fn number(file: &PathBuf, what: &str, name: &str) -> Result<u32, Fault> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let unknown = || Fault::new(FileCode::NoSuchUser, format!("there is no {what} {name:?} on this machine"));
    let text = fs::read_to_string(file).map_err(|_| unknown())?;
    let found = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)).flatten()
    });
    found.and_then(|number| number.parse().ok()).ok_or_else(unknown)
}
