//! Sections of `key = value` lines, edited line by line: comments, order and everything of others stay.

use std::collections::BTreeSet;

use zeroize::{Zeroize as _, Zeroizing};

use super::error::Text;
use super::lines::{bare, ending, is_blank_line, lines};
use super::{Keys, ManagedError};

/// What one line is.
enum Kind<'a> {
    Section(&'a str),
    Key {
        key: &'a str,
        value: &'a str,
    },
    /// Comments, blanks, and whatever else a program reads there.
    Other,
}

fn kind(line: &str) -> Kind<'_> {
    let text = line.trim();
    if text.is_empty() || text.starts_with(['#', ';']) {
        return Kind::Other;
    }
    if let Some(name) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Kind::Section(name.trim());
    }
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Kind::Key { key: key.trim(), value: value.trim() },
        _ => Kind::Other,
    }
}

fn utf8(text: Text, bytes: &[u8]) -> Result<&str, ManagedError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = lines(bytes.get(..error.valid_up_to()).unwrap_or_default()).len().max(1);
        ManagedError::unreadable(text, "an ini file", "bytes that are no UTF-8", line)
    })
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// One key of the fragment: section (empty before the first), name, value, and its line as it stands there.
struct Wanted<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a str,
    line: &'a str,
}

fn wanted(fragment: &[u8]) -> Result<Vec<Wanted<'_>>, ManagedError> {
    let text = utf8(Text::Fragment, fragment)?;
    let (mut found, mut seen, mut section) = (Vec::new(), BTreeSet::new(), "");
    for (at, line) in text.lines().enumerate() {
        match kind(line) {
            Kind::Section(name) => section = name,
            Kind::Key { key, value } => {
                if !seen.insert((section, key)) {
                    return Err(ManagedError::Doubled { text: Text::Fragment, line: at + 1 });
                }
                found.push(Wanted { section, key, value, line: line.trim() });
            }
            Kind::Other if line.trim().is_empty() || line.trim_start().starts_with(['#', ';']) => {}
            Kind::Other => {
                let detail = "a line that is neither section, key nor comment";
                return Err(ManagedError::unreadable(Text::Fragment, "an ini file", detail, at + 1));
            }
        }
    }
    Ok(found)
}

/// A file under the editor's hands: its lines with their endings, wiped when they go.
struct Editor {
    lines: Vec<String>,
    ending: &'static str,
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.lines.zeroize();
    }
}

impl Editor {
    fn new(target: &[u8]) -> Result<Self, ManagedError> {
        let text = utf8(Text::Target, target)?;
        let ending = if ending(target) == b"\r\n" { "\r\n" } else { "\n" };
        Ok(Self { lines: text.split_inclusive('\n').map(str::to_owned).collect(), ending })
    }

    fn bytes(&self) -> Vec<u8> {
        self.lines.concat().into_bytes()
    }

    fn kind(&self, at: usize) -> Kind<'_> {
        self.lines.get(at).map_or(Kind::Other, |line| kind(line))
    }

    /// The ranges of lines of a section, headers not included; a section may stand more than once.
    fn ranges(&self, section: &str) -> Vec<std::ops::Range<usize>> {
        let (mut ranges, mut begin) = (Vec::new(), section.is_empty().then_some(0));
        for at in 0..self.lines.len() {
            if let Kind::Section(name) = self.kind(at) {
                if let Some(from) = begin.take() {
                    ranges.push(from..at);
                }
                begin = (name == section).then_some(at + 1);
            }
        }
        ranges.extend(begin.map(|from| from..self.lines.len()));
        ranges
    }

    /// The line of a key, if it is there.
    fn find(&self, section: &str, wanted: &str) -> Result<Option<usize>, ManagedError> {
        let is_it = |at: &usize| matches!(self.kind(*at), Kind::Key { key, .. } if key == wanted);
        let mut found = self.ranges(section).into_iter().flatten().filter(is_it);
        let first = found.next();
        match found.next() {
            Some(second) => Err(ManagedError::Doubled { text: Text::Target, line: second + 1 }),
            None => Ok(first),
        }
    }

    /// The lines of a key: its own, and those that go on with its value, deeper indented and no key themselves.
    fn extent(&self, at: usize) -> std::ops::Range<usize> {
        let depth = self.lines.get(at).map_or(0, |line| indentation(line));
        let goes_on = |line: &&String| {
            !is_blank_line(line.as_bytes())
                && indentation(line) > depth
                && !line.trim_start().starts_with(['#', ';'])
                && matches!(kind(line), Kind::Other)
        };
        let more = self.lines.iter().skip(at + 1).take_while(goes_on).count();
        at..at + 1 + more
    }

    fn set(&mut self, wanted: &Wanted<'_>) -> Result<(), ManagedError> {
        let Some(at) = self.find(wanted.section, wanted.key)? else { return Ok(()) };
        let extent = self.extent(at);
        if extent.len() == 1 && matches!(self.kind(at), Kind::Key { value, .. } if value == wanted.value) {
            return Ok(());
        }
        let old = Zeroizing::new(self.lines.get(at).cloned().unwrap_or_default());
        let (head, rest) = old.split_once('=').unwrap_or((&old, ""));
        let gap: String = rest.chars().take_while(|c| *c == ' ' || *c == '\t').collect();
        let line = [head, "=", gap.as_str(), wanted.value, self.ending].concat();
        self.lines.splice(extent, [line]).for_each(|mut old| old.zeroize());
        Ok(())
    }

    /// Adds a key to the end of its section; true when the section had to be made.
    fn add(&mut self, wanted: &Wanted<'_>) -> bool {
        let line = [wanted.line, self.ending].concat();
        if let Some(range) = self.ranges(wanted.section).last().cloned() {
            let last = range
                .clone()
                .rev()
                .find(|at| self.lines.get(*at).is_some_and(|line| !is_blank_line(line.as_bytes())));
            let at = last.map_or(range.start, |at| at + 1);
            self.close_line(at);
            self.lines.insert(at, line);
            return false;
        }
        self.close_line(self.lines.len());
        if !self.lines.is_empty() {
            self.lines.push(self.ending.to_owned());
        }
        self.lines.push(format!("[{}]{}", wanted.section, self.ending));
        self.lines.push(line);
        true
    }

    /// Gives the line before this place an ending.
    fn close_line(&mut self, at: usize) {
        if let Some(line) = at.checked_sub(1).and_then(|at| self.lines.get_mut(at))
            && !line.is_empty()
            && !line.ends_with('\n')
        {
            let closed = [line.as_str(), self.ending].concat();
            line.zeroize();
            *line = closed;
        }
    }

    fn remove(&mut self, section: &str, key: &str) -> Result<(), ManagedError> {
        if let Some(at) = self.find(section, key)? {
            let extent = self.extent(at);
            self.lines.drain(extent).for_each(|mut old| old.zeroize());
        }
        Ok(())
    }

    /// Removes a section that we made, if nothing is left in it, with the blank line we put before it.
    fn remove_section(&mut self, section: &str) {
        let ranges = self.ranges(section);
        let [range] = ranges.as_slice() else { return };
        let is_empty =
            range.clone().all(|at| self.lines.get(at).is_some_and(|l| is_blank_line(l.as_bytes())));
        let Some(header) = range.start.checked_sub(1).filter(|_| is_empty && !section.is_empty()) else {
            return;
        };
        let blank = header
            .checked_sub(1)
            .filter(|at| self.lines.get(*at).is_some_and(|line| bare(line.as_bytes()).is_empty()));
        self.lines.drain(blank.unwrap_or(header)..=header);
    }
}

fn path(section: &str, key: Option<&str>) -> Vec<String> {
    [Some(section), key].into_iter().flatten().map(str::to_owned).collect()
}

pub(super) fn merge(target: &[u8], fragment: &[u8], before: &Keys) -> Result<(Vec<u8>, Keys), ManagedError> {
    let wanted = wanted(fragment)?;
    let keys: Keys = wanted.iter().map(|wanted| path(wanted.section, Some(wanted.key))).collect();
    let mut editor = Editor::new(target)?;
    let sections: BTreeSet<&str> = wanted.iter().map(|wanted| wanted.section).collect();
    let mut ours = keys.clone();
    for wanted in &wanted {
        if editor.find(wanted.section, wanted.key)?.is_some() {
            editor.set(wanted)?;
        } else if editor.add(wanted) {
            ours.insert(path(wanted.section, None));
        }
    }
    let still_made =
        |path: &&Vec<String>| matches!(path.as_slice(), [section] if sections.contains(section.as_str()));
    ours.extend(before.iter().filter(still_made).cloned());
    let gone: Keys = before.difference(&ours).cloned().collect();
    remove_all(&mut editor, &gone)?;
    Ok((editor.bytes(), ours))
}

pub(super) fn withdraw(target: &[u8], ours: &Keys) -> Result<Vec<u8>, ManagedError> {
    let mut editor = Editor::new(target)?;
    remove_all(&mut editor, ours)?;
    Ok(editor.bytes())
}

fn remove_all(editor: &mut Editor, gone: &Keys) -> Result<(), ManagedError> {
    for path in gone {
        if let [section, key] = path.as_slice() {
            editor.remove(section, key)?;
        }
    }
    for path in gone {
        if let [section] = path.as_slice() {
            editor.remove_section(section);
        }
    }
    Ok(())
}
