//! Files and folders that go.

use rustix::fs::{self, AtFlags};
use rustix::io::Errno;

use super::{FilePath, Folder, Found};
use crate::engine::fault::Fault;

/// What came of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveEffect {
    /// It is gone.
    Removed,
    /// There was nothing.
    Absent,
    /// Something stands in it.
    NotEmpty,
}

/// Unlinks a regular file.
///
/// # Errors
/// [`crate::engine::FileCode::PathRefused`] when it is anything else, or what the system says.
pub fn remove_file(path: &FilePath) -> Result<RemoveEffect, Fault> {
    let Some(folder) = Folder::open(path)? else { return Ok(RemoveEffect::Absent) };
    if Found::look(&folder, path.name())?.is_none() {
        return Ok(RemoveEffect::Absent);
    }
    match fs::unlinkat(&folder, path.name(), AtFlags::empty()) {
        Ok(()) => folder.sync().map(|()| RemoveEffect::Removed),
        Err(Errno::NOENT) => Ok(RemoveEffect::Absent),
        Err(error) => Err(Fault::system(&format!("removing {path}"), error)),
    }
}

/// Removes a folder if nothing is in it.
///
/// # Errors
/// What the system says, or that something stands on the way to it.
pub fn remove_folder(path: &FilePath) -> Result<RemoveEffect, Fault> {
    let Some(parent) = Folder::open(path)? else { return Ok(RemoveEffect::Absent) };
    match fs::unlinkat(&parent, path.name(), AtFlags::REMOVEDIR) {
        Ok(()) => Ok(RemoveEffect::Removed),
        Err(Errno::NOENT) => Ok(RemoveEffect::Absent),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY | Errno::NOTDIR) => Ok(RemoveEffect::NotEmpty),
        Err(error) => Err(Fault::system(&format!("removing the folder {path}"), error)),
    }
}
