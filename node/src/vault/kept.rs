//! What the vault's own file remembers where values are kept elsewhere: which versions were seen, so that changes are numbered
//! and said as if they had been made here. No value comes into it.

use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::core::Vault;
use super::kv::{Mark, Seen};
use super::store::{Store, StoreError, Value};

/// The row that says where values are kept. It is no name of a secret, so nobody can ask for it.
const KEPT: &str = "kept-elsewhere";
/// What it holds.
const KV: &[u8] = b"kv-v2";

/// Holds the store to one place of its values, from its first use on: a store with values of its own would lose them to a
/// key-value store that does not have them, and what a store remembers of values elsewhere is no value.
///
/// # Errors
/// [`StoreError::Elsewhere`] when it is the other place.
pub fn keep_to(store: &mut Store, is_elsewhere: bool) -> Result<(), StoreError> {
    let is_marked = store.get(KEPT)?.is_some();
    match (is_marked, is_elsewhere) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => Err(StoreError::Elsewhere {
            detail: "its values are kept in a key-value store, which --kv has to name",
        }),
        (false, true) => {
            let has_values = store.list().iter().any(|listed| super::core::secret_name(&listed.name).is_ok());
            if has_values {
                return Err(StoreError::Elsewhere {
                    detail: "it holds values of its own; take them out, or give the key-value store a store of its own",
                });
            }
            store.put(KEPT, &Value::new(Zeroizing::new(KV.to_vec())), &[]).map(drop)
        }
    }
}

impl Vault {
    /// The number of the last change of a row, deletions included.
    pub fn change_of(&self, row: &str) -> u64 {
        self.store.version_among(&[row])
    }

    /// Which version of a value was seen last.
    fn mark_of(&self, row: &str) -> Result<Option<Mark>, StoreError> {
        Ok(self.store.get(row)?.and_then(|held| Mark::read(held.value.expose())))
    }

    /// A version of a value was seen; a new one is a change, which is said to its readers. With `is_sure` it is believed also
    /// when it looks older than what was seen before.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn seen(
        &mut self,
        row: &str,
        mark: &Mark,
        is_sure: bool,
        now: WallClock,
    ) -> Result<Seen, StoreError> {
        let seen = mark.beside(self.mark_of(row)?.as_ref());
        if seen == Seen::New || (seen == Seen::Old && is_sure) {
            self.store_value(row, &Value::new(Zeroizing::new(mark.encode())), now)?;
        }
        Ok(seen)
    }

    /// A value was seen to be gone, when `change` was the last that was known of it; true when that is a change.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn gone(&mut self, row: &str, change: u64, now: WallClock) -> Result<bool, StoreError> {
        if self.change_of(row) != change {
            return Ok(false);
        }
        let notices = self.notices(row, now);
        self.store.delete(row, &notices)
    }
}
