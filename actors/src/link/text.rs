//! Text from strangers, made fit for a log line.

use quartermaster_proto::text::escape_bounded;

/// At most this many characters of a stranger's text are shown.
const MAX_SHOWN: usize = 400;

/// `text` with everything unprintable escaped and cut to a bounded length.
pub(super) fn printable(text: &str) -> String {
    escape_bounded(text, MAX_SHOWN)
}
