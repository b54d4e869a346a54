//! The record of a run: one JSON object per line, each on the disk before what follows from it is done (docs/plan-apply-undo.md).
//!
//! `line.rs` is what a line says, `cover.rs` keeps secrets out of it, `fold.rs` makes of a whole record what is still to be taken
//! back, `keeper.rs` is the file.
mod cover;
mod fold;
mod keeper;
mod line;

pub use cover::{Cover, RecordKey};
#[cfg(test)]
pub use fold::fold;
pub use fold::{Folded, RecordError};
pub use keeper::{Keeper, KeeperError};
pub use line::{Header, Line, SeenProvider};
