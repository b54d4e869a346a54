//! What happened, as typed facts; each becomes its log line and its metric in one place.
mod fact;

pub use fact::{Fact, Found, HelperOutcome};
