//! Text for people: an error with its causes, on one bounded line.

use std::error::Error;
use std::fmt::Write as _;

use quartermaster_proto::text::escape_bounded;

/// The longest line made of an error, in bytes.
const MAX_ERROR: usize = 500;

/// The error and its causes, joined by `: `, as they stand: for a place that bounds and escapes by itself.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// The error and its causes, joined by `: `, without control characters, bounded.
pub fn chain(error: &dyn Error) -> String {
    escape_bounded(&causes(error), MAX_ERROR)
}
