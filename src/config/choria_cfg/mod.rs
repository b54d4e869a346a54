//! choria.cfg and its relatives: the client side of the peer's configuration (choria.md 11).
//!
//! `syntax` knows lines, `files` which files are read and in what order, `settings` what the keys mean.

mod files;
mod settings;
mod syntax;

pub use files::{default_path, read};
pub use settings::{ChoriaCfg, Kind, SETTINGS, Setting};
pub use syntax::{Line, is_yes, parse_bool, parse_lines, split_list};

#[cfg(test)]
mod tests;
