//! A YAML file as ranges of lines, one for each key of its root mapping. No YAML is built: only so much is read as shows
//! where a key begins and ends, and whatever leaves a doubt is refused.

use std::ops::Range;

use zeroize::Zeroizing;

use super::ManagedError;
use super::error::Text;
use super::lines::{bare, is_blank_line, lines};

const FORMAT: &str = "one block mapping of YAML";

/// One key of the root and its lines.
#[derive(Debug)]
pub(super) struct Entry {
    /// The key without quotes.
    pub(super) key: String,
    /// Its lines, trailing blanks and comments of the root's own not included.
    pub(super) lines: Range<usize>,
}

/// The text's lines and its keys.
#[derive(Debug)]
pub(super) struct Mapping<'a> {
    /// Every line with its ending.
    pub(super) lines: Vec<&'a [u8]>,
    /// The keys in their order.
    pub(super) entries: Vec<Entry>,
}

impl Mapping<'_> {
    /// The lines of an entry, joined.
    pub(super) fn text(&self, entry: &Entry) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.lines.get(entry.lines.clone()).unwrap_or_default().concat())
    }

    /// Every anchor, or every alias, named in an entry.
    pub(super) fn names(&self, entry: &Entry, sign: char) -> Vec<String> {
        let text = Zeroizing::new(String::from_utf8_lossy(&self.text(entry)).into_owned());
        let mut before = ' ';
        let mut found = Vec::new();
        for (at, c) in text.char_indices() {
            if c == sign && (before.is_whitespace() || "[{,:-".contains(before)) {
                let rest = text.get(at + 1..).unwrap_or_default();
                let end = rest.find(|c: char| c.is_whitespace() || "[]{},".contains(c)).unwrap_or(rest.len());
                found.extend(rest.get(..end).filter(|name| !name.is_empty()).map(str::to_owned));
            }
            before = c;
        }
        found
    }
}

/// The key at the start of a line of the root: plain or quoted, then a colon and a blank or the line's end.
fn key(line: &str) -> Option<String> {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
    for quote in ['"', '\''] {
        if let Some(rest) = line.strip_prefix(quote) {
            let (name, after) = rest.split_once(quote)?;
            let after = after.trim_start().strip_prefix(':')?;
            // What is escaped or doubled would need a reader of strings.
            return (ends(after) && !name.contains('\\') && !name.is_empty()).then(|| name.to_owned());
        }
    }
    if line.starts_with(['-', '?', ':', '{', '}', '[', ']', ',', '&', '*', '!', '|', '>', '%', '@', '`']) {
        return None;
    }
    let (at, _) = line.match_indices(':').find(|(at, _)| line.get(at + 1..).is_some_and(ends))?;
    let name = line.get(..at)?.trim_end();
    (!name.is_empty() && !name.contains(" #")).then(|| name.to_owned())
}

/// Reads a text.
///
/// # Errors
/// [`ManagedError`] for several documents, a root that is no block mapping, and lines that cannot be told.
pub(super) fn read(text: Text, bytes: &[u8]) -> Result<Mapping<'_>, ManagedError> {
    let refuse = |detail, at: usize| ManagedError::unreadable(text, FORMAT, detail, at + 1);
    if std::str::from_utf8(bytes).is_err() {
        return Err(refuse("bytes that are no UTF-8", 0));
    }
    let lines = lines(bytes);
    let mut entries: Vec<Entry> = Vec::new();
    let mut has_begun = false;
    for (at, whole) in lines.iter().enumerate() {
        let line = std::str::from_utf8(bare(whole)).unwrap_or_default();
        if is_blank_line(whole) || line.starts_with('#') {
            continue;
        }
        if line == "---" || line.starts_with("--- #") {
            if has_begun || !entries.is_empty() {
                return Err(refuse("it holds several documents", at));
            }
            has_begun = true;
            continue;
        }
        if line.starts_with("---") || line.starts_with("...") {
            return Err(refuse("a document begins or ends within it", at));
        }
        if line.starts_with('%') && entries.is_empty() && !has_begun {
            continue;
        }
        if line.starts_with('\u{feff}') {
            return Err(refuse("it begins with a byte order mark", at));
        }
        let goes_on = line.starts_with([' ', '\t']) || line == "-" || line.starts_with("- ");
        if goes_on {
            // A comment may be indented; it belongs to the key above it, or to the head of the file.
            match entries.last_mut() {
                Some(entry) => entry.lines.end = at + 1,
                None if line.trim_start().starts_with('#') => {}
                None => return Err(refuse("its root is no mapping that begins in the first column", at)),
            }
            continue;
        }
        let key = key(line).ok_or_else(|| refuse("a line of the root is no simple key", at))?;
        entries.push(Entry { key, lines: at..at + 1 });
    }
    Ok(Mapping { lines, entries })
}
