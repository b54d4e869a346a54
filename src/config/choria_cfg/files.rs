//! Which files are read, and in what order (choria.md 11.2).

use std::path::{Path, PathBuf};

use super::super::fault::{Fault, FaultKind, Faults, Place, Severity, is_secret};
use super::super::surroundings::Surroundings;
use super::settings::{ChoriaCfg, SETTINGS};
use super::syntax::{Line, parse_lines};

/// The file that is read when none is named: the first of the user's that exists, else of the system's, else a name that may not exist.
pub fn default_path(around: &Surroundings<'_>) -> PathBuf {
    let home = around.home().map(PathBuf::from);
    let users = home.iter().flat_map(|home| [home.join(".choriarc"), home.join(".mcollective")]);
    let systems = ["/etc/choria/client.conf", "/usr/local/etc/choria/client.conf"].map(PathBuf::from);
    users
        .chain(systems)
        .find(|path| path.exists())
        .unwrap_or_else(|| "/etc/puppetlabs/mcollective/client.cfg".into())
}

/// Reads the main file, the files of its `plugin.d` and the project files. `None`, with a fault, when the main file cannot be read.
pub fn read(main: &Path, around: &Surroundings<'_>, faults: &mut Faults) -> Option<ChoriaCfg> {
    let main = around.absolute(main);
    let mut cfg = ChoriaCfg::default();
    if !read_one(&mut cfg, &main, "", true, around, faults) {
        return None;
    }
    read_plugins(&mut cfg, &main, around, faults);
    let mut folders: Vec<&Path> = around.cwd.ancestors().collect();
    folders.reverse();
    for project in folders.into_iter().map(|folder| folder.join("choria.conf")).filter(|file| file.exists()) {
        read_one(&mut cfg, &project, "", true, around, faults);
    }
    Some(cfg)
}

fn read_plugins(cfg: &mut ChoriaCfg, main: &Path, around: &Surroundings<'_>, faults: &mut Faults) {
    let Some(folder) = main.parent().map(|parent| parent.join("plugin.d")).filter(|folder| folder.is_dir())
    else {
        return;
    };
    // The peer compares the texts, not the folders; so do we.
    let main_text = main.to_string_lossy();
    if let Some(home) = around.home().filter(|home| main_text.starts_with(home.as_str())) {
        file_fault(
            faults,
            Severity::Warning,
            &folder,
            format!("it is not read, since {main_text} is below the home folder {home}"),
            "put what is needed into the main file",
        );
        return;
    }
    let mut names: Vec<String> = match std::fs::read_dir(&folder) {
        Ok(entries) => {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        }
        Err(error) => {
            file_fault(
                faults,
                Severity::Error,
                &folder,
                format!("it cannot be read: {error}"),
                "make it readable",
            );
            return;
        }
    };
    names.sort();
    for name in names {
        let Some((plugin, ending)) = name.rsplit_once('.') else { continue };
        if ending != "cfg" && ending != "conf" {
            continue;
        }
        // Whatever the listed file is called, the one that is opened ends in `.cfg`.
        let file = folder.join(format!("{plugin}.cfg"));
        if file.exists() {
            read_one(cfg, &file, &format!("plugin.{plugin}."), name == "choria.cfg", around, faults);
        } else {
            file_fault(
                faults,
                Severity::Warning,
                &folder.join(&name),
                "it is not read: only files that end in .cfg are",
                "rename it",
            );
        }
    }
}

fn read_one(
    cfg: &mut ChoriaCfg,
    file: &Path,
    prefix: &str,
    typed: bool,
    around: &Surroundings<'_>,
    faults: &mut Faults,
) -> bool {
    let text = match std::fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            let what = format!("it cannot be read: {error}");
            file_fault(
                faults,
                Severity::Error,
                file,
                what,
                "name the file with --choria-config, and make it readable",
            );
            return false;
        }
    };
    faults.add_text(file, &text);
    for line in parse_lines(&text) {
        match line {
            Line::Junk { text, place } => {
                let what = if text.ends_with('=') {
                    "the key has no value; the line is ignored"
                } else {
                    "the line is no `key = value`; it is ignored"
                };
                at(faults, file, place, None, what.to_owned(), "begin comments with #");
            }
            Line::Item { key, value, place, value_place } => {
                let full = format!("{prefix}{key}");
                if is_secret(&full) {
                    faults.mask(file, value_place);
                }
                faults.add_place(&full, file, value_place);
                if let Err(what) = cfg.set(&full, value, typed, around) {
                    faults.warning(&full, what, "");
                }
                if let Some(near) = misspelt(&full) {
                    let what = "there is no such key; it is kept and has no effect".to_owned();
                    at(faults, file, place, Some(full), what, &format!("did you mean `{near}`?"));
                } else if value.len() > 1
                    && value.starts_with('"')
                    && value.ends_with('"')
                    && !is_secret(&full)
                {
                    let what = "the quotes are part of the value".to_owned();
                    at(
                        faults,
                        file,
                        value_place,
                        Some(full),
                        what,
                        "remove them; values stand without quotes here",
                    );
                }
            }
        }
    }
    true
}

/// A key we know that differs from `key` in a letter or two.
fn misspelt(key: &str) -> Option<&'static str> {
    let mut known = SETTINGS.iter().map(|(name, ..)| *name);
    if !key.starts_with("plugin.") || known.clone().any(|name| name == key) {
        return None;
    }
    known.find(|name| strsim::damerau_levenshtein(name, key) <= 2)
}

fn at(faults: &mut Faults, file: &Path, place: Place, key: Option<String>, what: String, help: &str) {
    faults.push(Fault {
        severity: Severity::Warning,
        kind: FaultKind::Config,
        file: Some(file.to_owned()),
        place: Some(place),
        key,
        what,
        help: Some(help.to_owned()),
    });
}

fn file_fault(faults: &mut Faults, severity: Severity, file: &Path, what: impl Into<String>, help: &str) {
    faults.push(Fault {
        severity,
        kind: FaultKind::Config,
        file: Some(file.to_owned()),
        place: None,
        key: None,
        what: what.into(),
        help: Some(help.to_owned()),
    });
}
