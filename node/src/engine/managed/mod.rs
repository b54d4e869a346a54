//! Files that the mesh and a program own together: the mesh's keys or block are put in, changed and taken out, and the
//! rest stays as it is.
//!
//! Plain functions from bytes to bytes. What was ours the last time comes as [`Keys`] and goes back as such, because a key
//! that left the fragment has to leave the file too. A target or fragment that cannot be read is refused, never guessed at.
mod block;
mod error;
mod format;
mod gone;
mod ini;
mod json;
mod lines;
mod toml;
mod yaml;
mod yaml_lines;

#[cfg(test)]
mod tests;

pub use error::ManagedError;
pub use format::{Format, Keys, Merged, is_blank, merge, withdraw};
