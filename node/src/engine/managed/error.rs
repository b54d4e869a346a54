//! Why a managed file was left alone.

/// Which of the two texts is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// The file on disk.
    Target,
    /// What the client filled.
    Fragment,
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Target => "the file",
            Self::Fragment => "the filled part",
        })
    }
}

/// Why a managed file was left alone. No text of the file or of the fragment is repeated, since both may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedError {
    /// The text cannot be read as what it should be.
    #[error("{text} is not {format}: {detail} (line {line})")]
    Unreadable {
        /// Whose text.
        text: Text,
        /// The format's name.
        format: &'static str,
        /// What is wrong.
        detail: &'static str,
        /// Where, counted from 1.
        line: usize,
    },
    /// A key stands more than once, so that it is open which one counts.
    #[error("{text} has one of our keys twice (line {line})")]
    Doubled {
        /// Whose text.
        text: Text,
        /// The line of the second one.
        line: usize,
    },
    /// The lines around our block are missing, doubled or in the wrong order.
    #[error("the markers around our block are damaged: {detail} (line {line})")]
    Markers {
        /// What is wrong.
        detail: &'static str,
        /// Where, counted from 1.
        line: usize,
    },
    /// An anchor of YAML is defined in one key and used in another, and one of the two is ours.
    #[error("an anchor joins one of our keys with another key (line {line})")]
    Anchor {
        /// The line of the key that uses it.
        line: usize,
    },
}

impl ManagedError {
    /// Shorthand for [`ManagedError::Unreadable`].
    pub(super) const fn unreadable(
        text: Text,
        format: &'static str,
        detail: &'static str,
        line: usize,
    ) -> Self {
        Self::Unreadable { text, format, detail, line }
    }
}
