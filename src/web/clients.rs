//! Who looks at the live pages: a bounded number, and nobody who does not take what is sent.

use crate::web::locked::lock;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Streams at once.
pub(super) const MAX_CLIENTS: usize = 64;
/// Something is sent at least this often, so that both sides know that the other is there.
pub(super) const BEAT_EVERY: Duration = Duration::from_secs(10);
/// Whoever takes nothing for this long loses the place to somebody else.
const SLOW_LIMIT: Duration = Duration::from_secs(30);

/// One place among those who look.
#[derive(Debug)]
pub(super) struct Place {
    took: Mutex<Instant>,
}

/// The places taken.
#[derive(Debug, Default)]
pub(super) struct Clients {
    kept: Mutex<Vec<Arc<Place>>>,
}

impl Place {
    /// Something was taken.
    pub fn takes(&self, now: Instant) {
        *lock(&self.took) = now;
    }
}

impl Clients {
    /// A place, unless all are taken. It is lost when the answer's `upgrade` fails.
    pub fn enter(&self, now: Instant) -> Option<Weak<Place>> {
        let mut kept = lock(&self.kept);
        if kept.len() >= MAX_CLIENTS {
            return None;
        }
        let place = Arc::new(Place { took: Mutex::new(now) });
        let weak = Arc::downgrade(&place);
        kept.push(place);
        Some(weak)
    }

    /// Gives a place back.
    pub fn leave(&self, place: &Weak<Place>) {
        lock(&self.kept).retain(|kept| !std::ptr::eq(Arc::as_ptr(kept), place.as_ptr()));
    }

    /// Takes the places of those who are too slow.
    pub fn reap(&self, now: Instant) {
        lock(&self.kept).retain(|place| now.saturating_duration_since(*lock(&place.took)) < SLOW_LIMIT);
    }

    /// True when anybody looks.
    pub fn any(&self) -> bool {
        !lock(&self.kept).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_given_back() {
        let (clients, now) = (Clients::default(), Instant::now());
        assert!(!clients.any());
        let places: Vec<_> = std::iter::from_fn(|| clients.enter(now)).collect();
        assert_eq!(places.len(), MAX_CLIENTS);
        assert!(clients.any());
        clients.leave(&places[7]);
        assert!(places[7].upgrade().is_none() && places[8].upgrade().is_some());
        assert!(clients.enter(now).is_some() && clients.enter(now).is_none());
    }

    #[test]
    fn whoever_takes_nothing_loses_the_place() {
        let (clients, now) = (Clients::default(), Instant::now());
        let (slow, quick) = (clients.enter(now).unwrap(), clients.enter(now).unwrap());
        quick.upgrade().unwrap().takes(now + BEAT_EVERY);
        clients.reap(now + SLOW_LIMIT);
        assert!(slow.upgrade().is_none() && quick.upgrade().is_some());
    }
}
