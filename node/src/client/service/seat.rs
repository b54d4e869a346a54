//! The seat: one client on a machine.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::NodeError;

/// The lock, held while this lives; the system lets it go when the process ends in whatever way.
#[derive(Debug)]
pub(super) struct Seat(#[expect(dead_code, reason = "held, not read")] File);

impl Seat {
    /// Takes the seat, unless somebody has it.
    pub(super) fn take(path: &Path) -> Result<Self, NodeError> {
        let shown = || path.display().to_string();
        let file = |source| NodeError::File { path: shown(), source };
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(file)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(lock)),
            Err(Errno::WOULDBLOCK) => Err(NodeError::Seat { path: shown() }),
            Err(error) => Err(file(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_the_seat_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seat.lock");
        let first = Seat::take(&path).unwrap();
        assert!(matches!(Seat::take(&path), Err(NodeError::Seat { .. })));
        drop(first);
        Seat::take(&path).unwrap();
        assert!(matches!(Seat::take(&folder.path().join("no/seat")), Err(NodeError::File { .. })));
    }
}
