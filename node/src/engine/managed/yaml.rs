//! The top-level keys of one block mapping, replaced as whole ranges of lines.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use super::error::Text;
use super::lines::{Buffer, close_last_line, ending, push_lines};
use super::yaml_lines::{Mapping, read};
use super::{Keys, ManagedError};

fn path(key: &str) -> Vec<String> {
    vec![key.to_owned()]
}

/// Refuses one of `keys` that stands twice.
fn once(text: Text, mapping: &Mapping<'_>, keys: &BTreeSet<&str>) -> Result<(), ManagedError> {
    let mut seen = BTreeSet::new();
    for entry in mapping.entries.iter().filter(|entry| keys.contains(entry.key.as_str())) {
        if !seen.insert(entry.key.as_str()) {
            return Err(ManagedError::Doubled { text, line: entry.lines.start + 1 });
        }
    }
    Ok(())
}

/// Refuses an anchor that joins a key of `keys` with another key.
fn no_anchor_crosses(mapping: &Mapping<'_>, keys: &BTreeSet<&str>) -> Result<(), ManagedError> {
    let is_ours = |key: &str| keys.contains(key);
    for user in &mapping.entries {
        for name in mapping.names(user, '*') {
            let crosses = mapping.entries.iter().any(|definer| {
                definer.lines.start != user.lines.start
                    && (is_ours(&definer.key) || is_ours(&user.key))
                    && mapping.names(definer, '&').contains(&name)
            });
            if crosses {
                return Err(ManagedError::Anchor { line: user.lines.start + 1 });
            }
        }
    }
    Ok(())
}

/// The file with each entry replaced by what `put` says: none keeps its lines.
fn rebuilt(mapping: &Mapping<'_>, mut put: impl FnMut(&str) -> Option<Zeroizing<Vec<u8>>>) -> Buffer {
    let (mut out, mut at) = (Buffer::default(), 0);
    for entry in &mapping.entries {
        out.push_all(mapping.lines.get(at..entry.lines.start).unwrap_or_default().iter().copied());
        out.push(&put(&entry.key).unwrap_or_else(|| mapping.text(entry)));
        at = entry.lines.end;
    }
    out.push_all(mapping.lines.get(at..).unwrap_or_default().iter().copied());
    out
}

pub(super) fn merge(target: &[u8], fragment: &[u8], before: &Keys) -> Result<(Vec<u8>, Keys), ManagedError> {
    let wanted = read(Text::Fragment, fragment)?;
    let mapping = read(Text::Target, target)?;
    let keys: BTreeSet<&str> = wanted.entries.iter().map(|entry| entry.key.as_str()).collect();
    let touched: BTreeSet<&str> = before
        .iter()
        .filter_map(|path| path.first())
        .map(String::as_str)
        .chain(keys.iter().copied())
        .collect();
    once(Text::Fragment, &wanted, &keys)?;
    once(Text::Target, &mapping, &touched)?;
    no_anchor_crosses(&mapping, &touched)?;
    let ending = ending(target);
    let ours_as_text = |key: &str| {
        let entry = wanted.entries.iter().find(|entry| entry.key == key)?;
        let mut text = Buffer::default();
        push_lines(&mut text, &wanted.text(entry), ending);
        Some(Zeroizing::new(text.take()))
    };
    let mut placed = BTreeSet::new();
    let mut out = rebuilt(&mapping, |key| {
        placed.insert(key.to_owned());
        let last_without_end =
            mapping.entries.last().is_some_and(|e| e.key == key) && !target.ends_with(b"\n");
        match ours_as_text(key) {
            Some(text) if last_without_end => Some(trimmed_if_same(text, &mapping, key, ending)),
            Some(text) => Some(text),
            None if touched.contains(key) => Some(Zeroizing::default()),
            None => None,
        }
    });
    for entry in wanted.entries.iter().filter(|entry| !placed.contains(&entry.key)) {
        close_last_line(&mut out, ending);
        out.push(&ours_as_text(&entry.key).unwrap_or_default());
    }
    no_anchor_crosses(&read(Text::Target, out.as_slice())?, &keys)?;
    Ok((out.take(), keys.iter().map(|key| path(key)).collect()))
}

/// A last line without an ending that holds what we want is left as it is.
fn trimmed_if_same(
    text: Zeroizing<Vec<u8>>,
    mapping: &Mapping<'_>,
    key: &str,
    ending: &[u8],
) -> Zeroizing<Vec<u8>> {
    let old = mapping.entries.iter().find(|entry| entry.key == key).map(|entry| mapping.text(entry));
    match old {
        Some(old) if text.strip_suffix(ending) == Some(old.as_slice()) => old,
        _ => text,
    }
}

pub(super) fn withdraw(target: &[u8], ours: &Keys) -> Result<Vec<u8>, ManagedError> {
    let mapping = read(Text::Target, target)?;
    let keys: BTreeSet<&str> = ours.iter().filter_map(|path| path.first()).map(String::as_str).collect();
    no_anchor_crosses(&mapping, &keys)?;
    Ok(rebuilt(&mapping, |key| keys.contains(key).then(Zeroizing::default)).take())
}
