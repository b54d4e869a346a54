//! Certificate signing requests of servers: read in full, then judged (choria.md 9.3, 13.13).
//!
//! [`examine()`] reads and verifies that the sender owns the key; [`judge()`] decides whether a site may sign it. The helper
//! and its CA see the same text afterwards, so whatever a CA could take for a name or a right is looked at here, and what
//! cannot be understood is refused.

mod error;
mod examine;
mod judge;
mod names;

pub use error::{CsrError, MAX_CSR};
pub use examine::{CsrFacts, RequestedExtension, examine};
pub use judge::{DenyPatternError, denied_by, deny_pattern, judge};
pub use names::{CsrName, NameKind};
