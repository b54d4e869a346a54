//! Sessions of people who showed a token: few, short-lived, in memory. Plain code; time arrives as an argument.

use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Sessions at once; a new one beyond it takes the place of the one unused for longest.
pub(in super::super) const MAX_SESSIONS: usize = 64;
/// A session unused for this long is over.
pub(in super::super) const IDLE_LIMIT: Duration = Duration::from_mins(30);
/// A session older than this is over, used or not.
pub(in super::super) const AGE_LIMIT: Duration = Duration::from_hours(12);

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Right {
    /// To look.
    Read,
    /// To look and to change.
    Admin,
}

/// A digest of something secret, compared in constant time.
#[derive(Clone, Copy)]
pub(in super::super) struct Sealed([u8; 32]);

impl Sealed {
    /// The digest of `secret`.
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// True when both are digests of the same; takes as long whatever they differ in.
    pub fn same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Shows nothing.
impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed")
    }
}

/// One session.
#[derive(Debug, Clone)]
pub(in super::super) struct Session {
    /// Digest of the id in the cookie.
    id: Sealed,
    /// The token that its forms carry.
    pub csrf: String,
    /// Who, as they named themselves.
    pub who: String,
    /// What they may do.
    pub right: Right,
    /// The token they showed; when it is replaced the session is over.
    shown: Sealed,
    born: Instant,
    used: Instant,
}

/// All sessions.
#[derive(Debug, Default)]
pub(in super::super) struct Sessions {
    list: Vec<Session>,
}

/// What a new session is made of.
#[derive(Debug)]
pub(in super::super) struct Opening<'a> {
    /// The id for the cookie, random.
    pub id: &'a str,
    /// The token for its forms, random.
    pub csrf: String,
    /// Who.
    pub who: String,
    /// What they may do.
    pub right: Right,
    /// The token they showed.
    pub shown: Sealed,
}

impl Sessions {
    /// Opens a session.
    pub fn open(&mut self, opening: Opening<'_>, now: Instant) {
        self.expire(now);
        if self.list.len() >= MAX_SESSIONS {
            let oldest = self.list.iter().enumerate().min_by_key(|(_, session)| session.used);
            if let Some(at) = oldest.map(|(at, _)| at) {
                self.list.swap_remove(at);
            }
        }
        let Opening { id, csrf, who, right, shown } = opening;
        let id = Sealed::of(id.as_bytes());
        self.list.push(Session { id, csrf, who, right, shown, born: now, used: now });
    }

    /// The session with this id, unless it is over. `current` tells the digest of the token that gives a right now, if
    /// there is one.
    pub fn find(
        &mut self,
        id: &str,
        now: Instant,
        current: impl Fn(Right) -> Option<Sealed>,
    ) -> Option<Session> {
        let found = self.peek(id, now, current)?;
        if let Some(session) = self.list.iter_mut().find(|session| session.id.same(&found.id)) {
            session.used = now;
        }
        Some(found)
    }

    /// The same, without counting as use.
    pub fn peek(
        &mut self,
        id: &str,
        now: Instant,
        current: impl Fn(Right) -> Option<Sealed>,
    ) -> Option<Session> {
        self.expire(now);
        let id = Sealed::of(id.as_bytes());
        let at = self.list.iter().position(|session| session.id.same(&id))?;
        let session = self.list.get(at)?;
        if !current(session.right).is_some_and(|token| token.same(&session.shown)) {
            self.list.swap_remove(at);
            return None;
        }
        Some(session.clone())
    }

    /// Ends the session with this id.
    pub fn close(&mut self, id: &str) {
        let id = Sealed::of(id.as_bytes());
        self.list.retain(|session| !session.id.same(&id));
    }

    fn expire(&mut self, now: Instant) {
        self.list.retain(|session| {
            now.saturating_duration_since(session.used) < IDLE_LIMIT
                && now.saturating_duration_since(session.born) < AGE_LIMIT
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn open(sessions: &mut Sessions, id: &str, now: Instant) {
        let shown = Sealed::of(b"token");
        let (csrf, who) = ("form".to_owned(), "kim".to_owned());
        sessions.open(Opening { id, csrf, who, right: Right::Admin, shown }, now);
    }

    fn find(sessions: &mut Sessions, id: &str, now: Instant) -> bool {
        sessions.find(id, now, |_| Some(Sealed::of(b"token"))).is_some()
    }

    #[test]
    fn a_session_is_found_by_its_id_alone_until_it_is_closed() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        open(&mut sessions, "one", now);
        open(&mut sessions, "two", now);
        assert!(find(&mut sessions, "one", now) && !find(&mut sessions, "three", now));
        sessions.close("one");
        assert!(!find(&mut sessions, "one", now) && find(&mut sessions, "two", now));
    }

    #[test]
    fn an_unused_session_ends_and_a_used_one_lasts_half_a_day() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        open(&mut sessions, "idle", now);
        let seen = sessions.peek("idle", now + MINUTE, |_| Some(Sealed::of(b"token")));
        assert!(seen.is_some(), "a page that goes on by itself finds it");
        assert!(!find(&mut sessions, "idle", now + IDLE_LIMIT), "and does not keep it alive");
        open(&mut sessions, "busy", now);
        let mut at = now;
        while at + MINUTE < now + AGE_LIMIT {
            at += MINUTE;
            assert!(find(&mut sessions, "busy", at));
        }
        assert!(!find(&mut sessions, "busy", at + MINUTE));
    }

    #[test]
    fn a_replaced_token_ends_the_sessions_it_opened() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        open(&mut sessions, "one", now);
        assert!(sessions.find("one", now, |_| Some(Sealed::of(b"new"))).is_none());
        assert!(!find(&mut sessions, "one", now), "it does not come back with the old token");
        open(&mut sessions, "two", now);
        assert!(sessions.find("two", now, |_| None).is_none());
    }

    #[test]
    fn the_session_unused_for_longest_gives_way() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        for n in 0..MAX_SESSIONS {
            open(&mut sessions, &n.to_string(), now);
        }
        assert!(find(&mut sessions, "0", now + MINUTE));
        open(&mut sessions, "new", now + MINUTE * 2);
        assert_eq!(sessions.list.len(), MAX_SESSIONS);
        assert!(find(&mut sessions, "0", now + MINUTE * 2) && find(&mut sessions, "new", now + MINUTE * 2));
    }
}
