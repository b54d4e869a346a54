//! Text for people: an error with its causes, on one bounded line.

use std::error::Error;
use std::fmt::Write as _;

use quartermaster_proto::text::escape_bounded;

/// The longest line made of an error, in bytes.
const MAX_ERROR: usize = 500;

/// The error and its causes, joined by `: `, as they stand: for a place that bounds and escapes by itself. A cause that its
/// wrapper has told already, as those of the NATS library do, is not told twice.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.ends_with(&told) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {told}");
        }
        source = cause.source();
    }
    text
}

/// The error and its causes, joined by `: `, without control characters, bounded.
pub fn chain(error: &dyn Error) -> String {
    escape_bounded(&causes(error), MAX_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapper {
        #[error("it failed: {0}")]
        Tells(#[source] Box<Self>),
        #[error("it failed")]
        Keeps(#[source] Box<Self>),
        #[error("no route")]
        Root,
    }

    #[test]
    fn every_cause_is_told_once_whether_its_wrapper_tells_it_or_not() {
        let root = || Box::new(Wrapper::Root);
        for error in [Wrapper::Tells(root()), Wrapper::Keeps(root())] {
            assert_eq!(causes(&error), "it failed: no route");
        }
        let deep = Wrapper::Keeps(Box::new(Wrapper::Tells(root())));
        assert_eq!(causes(&deep), "it failed: it failed: no route");
    }
}
