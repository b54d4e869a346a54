//! Ids of calls.

use std::fmt;

/// The id of one call in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub i64);

impl fmt::Display for CallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Hands out the ids of one process: 1, 2, 3 and so on, none twice.
#[derive(Debug)]
pub struct CallIds {
    next: Option<i64>,
}

impl CallIds {
    /// Ids for a new process.
    pub const fn new() -> Self {
        Self { next: Some(1) }
    }

    /// The next id; `None` once there is none left.
    pub fn issue(&mut self) -> Option<CallId> {
        let id = self.next?;
        self.next = id.checked_add(1);
        Some(CallId(id))
    }

    /// Whether this id was handed out.
    pub fn issued(&self, id: CallId) -> bool {
        id.0 >= 1 && self.next.is_none_or(|next| id.0 < next)
    }
}

impl Default for CallIds {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_from_one_and_are_never_used_again() {
        let mut ids = CallIds::new();
        assert!(!ids.issued(CallId(1)));
        assert_eq!([ids.issue(), ids.issue(), ids.issue()], [1, 2, 3].map(|id| Some(CallId(id))));
        assert!(
            ids.issued(CallId(3))
                && !ids.issued(CallId(4))
                && !ids.issued(CallId(0))
                && !ids.issued(CallId(-1))
        );
    }

    #[test]
    fn the_last_id_is_followed_by_none() {
        let mut ids = CallIds { next: Some(i64::MAX) };
        assert_eq!(ids.issue(), Some(CallId(i64::MAX)));
        assert_eq!(ids.issue(), None);
        assert!(ids.issued(CallId(i64::MAX)));
    }
}
