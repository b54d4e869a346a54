//! A lock whose holder panicked is taken all the same: what lies behind these is whole after every statement.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the mutex guards.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
