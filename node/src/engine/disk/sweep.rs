//! What a killed writer left beside its targets.

use rustix::fs::{self, AtFlags, Dir, FileType};

use super::{FilePath, Folder};
use crate::engine::fault::Fault;

/// True for a name that only this program gives.
fn is_ours(name: &[u8]) -> bool {
    let Some(at) = name.windows(4).rposition(|part| part == b".qm-") else { return false };
    let digits = name.get(at + 4..).unwrap_or_default();
    name.starts_with(b".")
        && at > 0
        && digits.len() == 8
        && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Removes regular files with such names from the folder of `path`; answers how many.
///
/// # Errors
/// What the system says, or that something stands on the way to the folder.
pub fn sweep(path: &FilePath) -> Result<usize, Fault> {
    let fault = |error| Fault::system(&format!("sweeping the folder of {path}"), error);
    let Some(folder) = Folder::open(path)? else { return Ok(0) };
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if is_ours(entry.file_name().to_bytes()) {
            names.push(entry.file_name().to_owned());
        }
    }
    let mut swept = 0;
    for name in names {
        let is_file = fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if is_file && fs::unlinkat(&folder, &name, AtFlags::empty()).is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}
