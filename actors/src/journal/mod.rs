//! What happened to each host, and what must survive the process.
mod handle;
mod history;
mod record;
#[cfg(test)]
mod tests;

pub use handle::JournalHandle;
pub use history::{History, HistoryLimits};
pub use record::{AttemptRecord, HelperRecord, StepRecord};
