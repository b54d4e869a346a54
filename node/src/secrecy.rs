//! What a process that holds secrets does first, and what it asks of the files that it reads them from.

use std::path::Path;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Keeps the process's memory out of core files, and away from other processes of the same account.
///
/// The limit is one byte and not zero: a kernel that hands core files to a program ignores every limit but this one, which it
/// takes as the wish to have none. A process that is not dumpable has no core file at all, whatever the limit and whoever takes
/// it, and nobody but root may look into its memory; the programs it starts are as usual again.
pub fn forbid_core_files() {
    let limit = Rlimit { current: Some(1), maximum: Some(1) };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        tracing::warn!(%error, "core files cannot be limited");
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "core files cannot be forbidden");
    }
}

/// Permission bits that the file of a key may have.
const PRIVATE: u32 = 0o600;
/// What systemd gives a credential that it hands over to an account by an access list: that list's mask stands in the group's place,
/// and the folder is open to the account alone.
const HANDED: u32 = 0o440;

/// True when nobody but its owner may read a file of a key with these permission bits, or the service manager has handed it to us alone.
pub(crate) fn is_private(path: &Path, mode: u32) -> bool {
    let handed = std::env::var_os("CREDENTIALS_DIRECTORY");
    is_private_among(path, mode, handed.as_deref().map(Path::new))
}

fn is_private_among(path: &Path, mode: u32, handed: Option<&Path>) -> bool {
    let is_handed = path.parent().is_some_and(|folder| Some(folder) == handed);
    mode & !PRIVATE == 0 || is_handed && mode == HANDED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_private_to_its_owner_or_handed_over() {
        let handed = Some(Path::new("/run/credentials/quartermaster-vault.service"));
        let key = Path::new("/run/credentials/quartermaster-vault.service/vault-key");
        for (mode, everywhere, among_credentials) in [
            (0o400, true, true),
            (0o600, true, true),
            (0o440, false, true),
            (0o640, false, false),
            (0o444, false, false),
            (0o700, false, false),
        ] {
            assert_eq!(is_private_among(key, mode, None), everywhere, "{mode:o}");
            assert_eq!(is_private_among(Path::new("/etc/vault.key"), mode, handed), everywhere, "{mode:o}");
            assert_eq!(is_private_among(key, mode, handed), among_credentials, "{mode:o}");
        }
    }
}
