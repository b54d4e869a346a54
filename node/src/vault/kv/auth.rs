//! How the vault logs in to the key-value store.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use zeroize::Zeroizing;

use super::KvConfigError;
use crate::secrecy::is_private;

/// Longest credential, in bytes.
const MAX_CREDENTIAL: u64 = 64 * 1024;

/// Reads a credential of one line that nobody but its owner may read.
pub(super) fn credential(path: &Path) -> Result<Zeroizing<String>, KvConfigError> {
    let file = |source| KvConfigError::File { path: path.display().to_string(), source };
    let handle = std::fs::File::open(path).map_err(file)?;
    let about = handle.metadata().map_err(file)?;
    let mode = about.permissions().mode() & 0o7777;
    if !is_private(path, mode) {
        return Err(KvConfigError::TooOpen { path: path.display().to_string(), mode });
    }
    // One byte more than there is, so that the buffer does not grow and leave copies behind.
    let room = usize::try_from(about.len().min(MAX_CREDENTIAL)).unwrap_or_default() + 1;
    let mut text = Zeroizing::new(String::with_capacity(room));
    handle.take(MAX_CREDENTIAL).read_to_string(&mut text).map_err(file)?;
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    Ok(text)
}
