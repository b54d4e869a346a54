//! What was seen, and the table it ends with.

use comfy_table::{Table, presets};
use serde::Serialize;

/// One file in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FileSeen {
    /// The machine.
    pub(super) machine: String,
    /// The module.
    pub(super) module: String,
    /// The path below the machine's root.
    pub(super) path: String,
    /// What was last done to it, other than nothing.
    pub(super) action: String,
    /// The digest that its client reported last.
    pub(super) digest: String,
    /// The file on the disk has that digest.
    pub(super) agrees: bool,
}

/// One thing that was to be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Sight {
    /// What.
    pub(super) what: &'static str,
    /// It was.
    pub(super) seen: bool,
    /// What was seen instead, or more about it.
    pub(super) note: String,
}

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Seen {
    /// The files of all machines.
    pub(super) files: Vec<FileSeen>,
    /// What was to be seen, in order.
    pub(super) sights: Vec<Sight>,
}

/// Everything that a whole demo sees.
pub(super) const SIGHTS: [&str; 9] = [
    "the catalogue is sound",
    "the web app waits and names all it lacks",
    "the database knows its consumer on the other machine",
    "every module is applied",
    "every file holds what it should",
    "a rotated secret reached its file",
    "the web app was told once",
    "a hand edit was put back",
    "no secret lies anywhere but in its files",
];

impl Seen {
    /// Notes something that was to be seen.
    pub(super) fn note(&mut self, what: &'static str, seen: bool, note: impl Into<String>) {
        self.sights.push(Sight { what, seen, note: note.into() });
    }

    /// True when everything was seen and every file agrees with what was said of it.
    pub(super) fn is_all(&self) -> bool {
        let was_seen = |what: &str| self.sights.iter().any(|sight| sight.what == what && sight.seen);
        SIGHTS.iter().all(|what| was_seen(what))
            && self.sights.iter().all(|sight| sight.seen)
            && !self.files.is_empty()
            && self.files.iter().all(|file| file.agrees)
    }

    /// The tables for people.
    pub(super) fn tables(&self) -> String {
        let mut files = Table::new();
        files.load_style(presets::UTF8_FULL_CONDENSED);
        files.set_header(["machine", "module", "file", "action", "digest", "on the disk"]);
        for file in &self.files {
            let agrees = if file.agrees { "the same" } else { "ANOTHER" };
            files.add_row([
                file.machine.as_str(),
                &file.module,
                &file.path,
                &file.action,
                &short(&file.digest),
                agrees,
            ]);
        }
        let mut sights = Table::new();
        sights.load_style(presets::UTF8_FULL_CONDENSED);
        for what in SIGHTS {
            let found = self.sights.iter().find(|sight| sight.what == what);
            let (seen, note) = match found {
                Some(sight) if sight.seen => ("seen", sight.note.as_str()),
                Some(sight) => ("NOT SEEN", sight.note.as_str()),
                None => ("NOT SEEN", "it did not come to that"),
            };
            sights.add_row([what, seen, note]);
        }
        format!("{files}\n{sights}")
    }
}

/// The kind of a digest and its beginning.
fn short(digest: &str) -> String {
    match digest.split_once(':') {
        Some((kind, hex)) => format!("{kind}:{}", hex.get(..12).unwrap_or(hex)),
        None => digest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Seen {
        let mut seen = Seen::default();
        for what in SIGHTS {
            seen.note(what, true, "");
        }
        seen.files.push(FileSeen {
            machine: "web1".to_owned(),
            module: "web".to_owned(),
            path: "etc/a".to_owned(),
            action: "written".to_owned(),
            digest: "sha256:0123456789abcdef".to_owned(),
            agrees: true,
        });
        seen
    }

    #[test]
    fn only_everything_is_enough() {
        assert!(all().is_all());
        let mut less = all();
        less.sights.pop();
        assert!(!less.is_all() && less.tables().contains("it did not come to that"));
        let mut failed = all();
        failed.sights[0].seen = false;
        assert!(!failed.is_all() && failed.tables().contains("NOT SEEN"));
        let mut other = all();
        other.files[0].agrees = false;
        assert!(!other.is_all() && other.tables().contains("ANOTHER"));
        assert!(!Seen::default().is_all());
    }

    #[test]
    fn the_table_names_file_action_and_digest() {
        let text = all().tables();
        for part in ["web1", "etc/a", "written", "sha256:0123456789ab "] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}
