//! A search for secrets in everything that the demo's programs wrote.

use std::io;
use std::path::{Path, PathBuf};

/// A value, and the only files that may hold it.
pub(super) type Wanted<'a> = (&'a [u8], Vec<PathBuf>);

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Files that were looked into.
    pub(super) files: usize,
    /// The first file that holds a value it may not hold.
    pub(super) elsewhere: Option<PathBuf>,
}

/// Looks into every file below a folder: buckets, streams, logs, states, audits, the files of the machines.
///
/// # Errors
/// A folder cannot be read.
pub(super) fn search(folder: &Path, wanted: &[Wanted<'_>]) -> io::Result<Found> {
    let mut found = Found { files: 0, elsewhere: None };
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                // What went away meanwhile holds nothing.
                let Ok(content) = std::fs::read(&path) else { continue };
                found.files += 1;
                let holds = |value: &[u8]| content.windows(value.len().max(1)).any(|part| part == value);
                if wanted.iter().any(|(value, places)| !places.contains(&path) && holds(value)) {
                    found.elsewhere.get_or_insert(path);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_another_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (dir.path().join("own"), dir.path().join("sub/log"));
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(&own, "password = s3cr3t").unwrap();
        std::fs::write(&other, "nothing").unwrap();
        let look = || search(dir.path(), &[(b"s3cr3t", vec![own.clone()])]).unwrap();
        assert_eq!(look(), Found { files: 2, elsewhere: None });
        std::fs::write(&other, "it said s3cr3t!").unwrap();
        assert_eq!(look().elsewhere, Some(other));
    }
}
