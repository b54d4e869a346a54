//! The socket's file.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::EngineError;

/// Permission bits of the socket: its owner and the client's group.
const MODE: u32 = 0o660;
/// Permission bits of its folder.
const FOLDER_MODE: u32 = 0o755;

/// Listens on `path`, for this group. It gets its name only when its owner and mode are right, and takes the place of what a
/// killed life left there.
pub(super) fn bind(path: &Path, group: Option<u32>) -> Result<UnixListener, EngineError> {
    let failed = |source| EngineError::Socket { path: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{:08x}", rand::random::<u32>()));
    let listener = UnixListener::bind(&beside).map_err(failed)?;
    let named = || {
        fs::set_permissions(&beside, Permissions::from_mode(MODE))?;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&beside, None, group)?;
        }
        fs::rename(&beside, path)
    };
    if let Err(error) = named() {
        let _ = fs::remove_file(&beside);
        return Err(failed(error));
    }
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
