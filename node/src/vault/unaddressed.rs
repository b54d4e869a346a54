//! Changes that were made while the vault did not know the assignments, as at its start: whom they concern cannot be told then, so
//! it is written down that they have to be said, and they are addressed once everybody is known.

use quartermaster_proto::time::WallClock;

use super::core::Vault;
use super::policy::Mirror;
use super::store::{Notice, StoreError};

/// What stands before the row's name in place of a subject. No subject of ours begins with it.
const UNADDRESSED: char = '?';
/// Changes that are addressed in one go.
const AT_ONCE: usize = 64;

/// What is written down for a row whose readers are not known.
pub(super) fn unaddressed(row: &str) -> Notice {
    Notice { subject: format!("{UNADDRESSED}{row}"), payload: Vec::new() }
}

impl Vault {
    /// The assignments are not known any more, or not yet: nobody is told of a change before they are.
    pub fn forget_assignments(&mut self) {
        *self.mirror_mut() = Mirror::default();
        self.knows_all = false;
    }

    /// All assignments are known: what was changed meanwhile is addressed to whom it concerns.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn know_assignments(&mut self, now: WallClock) -> Result<(), StoreError> {
        self.knows_all = true;
        loop {
            let waiting = self.store.unsent_from(&UNADDRESSED.to_string(), AT_ONCE)?;
            if waiting.is_empty() {
                return Ok(());
            }
            for (change, notice) in waiting {
                let row = notice.subject.trim_start_matches(UNADDRESSED).to_owned();
                let notices = self.notices_of(&row, change, now);
                self.store.address(&notice.subject, change, &notices)?;
            }
        }
    }
}
