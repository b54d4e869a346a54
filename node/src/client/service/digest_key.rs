//! This machine's key for digests of contents that hold secrets.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use zeroize::Zeroizing;

use super::{NodeError, settings};
use crate::core::DigestKey;

/// Most bytes of a file that is digested.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The key of this state folder, which is made when it is not there.
pub(super) fn open_or_make(state: &Path) -> Result<DigestKey, NodeError> {
    let path = settings::digest_key(state);
    let file = |source| NodeError::File { path: path.display().to_string(), source };
    match read(state) {
        Err(NodeError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let key: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
    // Written beside its place: half a key is none.
    let beside = path.with_extension("new");
    let write = || {
        let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        out.write_all(key.as_slice())?;
        out.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().map_err(file)?;
    Ok(DigestKey::new(key))
}

fn read(state: &Path) -> Result<DigestKey, NodeError> {
    let path = settings::digest_key(state);
    let shown = || path.display().to_string();
    let bytes =
        fs::read(&path).map(Zeroizing::new).map_err(|source| NodeError::File { path: shown(), source })?;
    let key = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| NodeError::DigestKey { path: shown() })?;
    Ok(DigestKey::new(Zeroizing::new(key)))
}

/// The digest of a file on the disk as reports have it: under the key of this state folder, as of a file with a secret in it, or
/// plain.
///
/// # Errors
/// The key or the file cannot be read.
pub fn digest_of(state: &Path, file: &Path, is_plain: bool) -> Result<String, NodeError> {
    let fault = |source| NodeError::File { path: file.display().to_string(), source };
    let key = if is_plain { DigestKey::new(Zeroizing::default()) } else { read(state)? };
    let open = fs::File::open(file).map_err(fault)?;
    let length = open.metadata().map_err(fault)?.len();
    if length > MAX_FILE {
        return Err(fault(io::ErrorKind::FileTooLarge.into()));
    }
    // Room for all of it at once, so that no outgrown buffer keeps a part.
    let mut content = Zeroizing::new(Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1));
    open.take(MAX_FILE).read_to_end(&mut content).map_err(fault)?;
    Ok(key.digest(&content, !is_plain))
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::mesh::plan::Digest;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_tells_the_digest_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        fs::write(&file, "1234").unwrap();
        assert!(matches!(digest_of(folder.path(), &file, false), Err(NodeError::File { .. })));
        let key = open_or_make(folder.path()).unwrap();
        let again = open_or_make(folder.path()).unwrap();
        assert_eq!(key.digest(b"1234", true), again.digest(b"1234", true));
        assert_eq!(digest_of(folder.path(), &file, false).unwrap(), key.digest(b"1234", true));
        assert_eq!(digest_of(folder.path(), &file, true).unwrap(), Digest::of(b"1234").to_string());
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(settings::digest_key(folder.path())).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_key_that_is_cut_short_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(settings::digest_key(folder.path()), "short").unwrap();
        assert!(matches!(open_or_make(folder.path()), Err(NodeError::DigestKey { .. })));
    }
}
