//! Files, written so that nobody can lead the writer astray: folders are opened without following links and everything
//! then happens below the open folder, content is put beside its target and takes its place in one step.
mod account;
mod folder;
mod look;
mod path;
mod remove;
mod stage;
mod sweep;

#[cfg(test)]
mod tests;

pub use account::Accounts;
pub use folder::{Folder, NewFolder};
pub use look::{Attributes, Found, MAX_FILE_BYTES};
pub use path::{FilePath, PathError, Roots};
pub use remove::{RemoveEffect, remove_file, remove_folder};
pub use stage::{Placed, Staged, Unsynced, sync_all};
pub use sweep::sweep;
