//! The requests that await a reply, and what each arriving reply means. Pure: time arrives as an argument.
//!
//! A reply counts when its hash holds and its request, sender and agent are the ones asked. One that does not count never
//! ends a call: whoever races the host with rubbish gains nothing. It only brings the end closer, so that a broken host
//! is not waited for to the full deadline. A second reply with another payload, also one that comes after the first was
//! delivered, raises the cycle's flag (choria.md 13.15). A reply to a request that was given up is noted there: the host did
//! that work after later requests perhaps, since a broker that froze may deliver what it held once it goes on.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use quartermaster_proto::choria::{Generation, Identity, envelope};

use super::messages::{Answer, CallError, ConflictFlag, WeakConflictFlag};
use super::text::printable;
use crate::text::chain;

/// Replies to one request that are decoded at all. A host sends one; more than a few are an attack on our time.
pub const MAX_EXAMINED: u8 = 16;

/// Answered requests looked at per completion, to forget those whose cycle is over.
const SWEEP: usize = 4;

/// What is asked of whom, and who waits for it.
#[derive(Debug)]
pub struct Expected<T> {
    /// The host.
    pub identity: Identity,
    /// The agent.
    pub agent: &'static str,
    /// The action.
    pub action: &'static str,
    /// Raised on a conflict.
    pub conflict: ConflictFlag,
    /// Who is to be told.
    pub waiter: T,
}

/// What an arriving reply meant.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// It counts: give it to whoever waits.
    Answered {
        /// Who waits.
        waiter: T,
        /// The answer.
        answer: Answer,
    },
    /// It cannot count.
    Rejected {
        /// The host that was asked.
        identity: Identity,
        /// Why, bounded and escaped.
        reason: String,
    },
    /// It says the same as the one that counted.
    Repeated,
    /// It says something else than the one that counted; the flag is up.
    Conflict {
        /// The host that was asked.
        identity: Identity,
        /// The agent.
        agent: &'static str,
        /// The action.
        action: &'static str,
    },
    /// One of too many; not looked at.
    Excess,
    /// Nothing awaits it: its request has ended, or never was.
    Late,
}

struct Waiting<T> {
    expected: Expected<T>,
    key: (Instant, u64),
    sent: Instant,
    examined: u8,
    invalid: Option<String>,
}

/// A request that has ended, remembered for what may still arrive.
struct Ended {
    identity: Identity,
    agent: &'static str,
    action: &'static str,
    conflict: WeakConflictFlag,
    /// Of the payload that answered it; none when it was given up unanswered.
    digest: Option<Vec<u8>>,
    until: Instant,
    examined: u8,
}

enum Entry<T> {
    Waiting(Waiting<T>),
    Ended(Ended),
}

/// The table. `T` is whoever waits for an answer.
pub struct Pending<T> {
    generation: Generation,
    invalid_grace: Duration,
    memory: Duration,
    capacity: usize,
    entries: HashMap<String, Entry<T>>,
    deadlines: BTreeMap<(Instant, u64), String>,
    ended: VecDeque<String>,
    serial: u64,
}

impl<T> Pending<T> {
    /// An empty table for at most `capacity` waiting and as many remembered requests. `invalid_grace` is how long a call
    /// lives on after an invalid reply, `memory` how long an answered one is remembered.
    pub fn new(generation: Generation, capacity: usize, invalid_grace: Duration, memory: Duration) -> Self {
        Self {
            generation,
            invalid_grace,
            memory,
            capacity,
            entries: HashMap::new(),
            deadlines: BTreeMap::new(),
            ended: VecDeque::new(),
            serial: 0,
        }
    }

    /// How many requests await a reply.
    pub fn waiting(&self) -> usize {
        self.deadlines.len()
    }

    /// How many requests that have ended are remembered.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.ended.len()
    }

    /// Enters a request that is about to be sent. Gives it back when the table is full.
    pub fn register(
        &mut self,
        id: &str,
        expected: Expected<T>,
        now: Instant,
        deadline: Duration,
    ) -> Result<(), Expected<T>> {
        if self.deadlines.len() >= self.capacity || self.entries.contains_key(id) {
            return Err(expected);
        }
        self.serial += 1;
        let key = (now + deadline, self.serial);
        self.deadlines.insert(key, id.to_owned());
        let waiting = Waiting { expected, key, sent: now, examined: 0, invalid: None };
        self.entries.insert(id.to_owned(), Entry::Waiting(waiting));
        Ok(())
    }

    /// Takes a request out again that could not be sent.
    pub fn withdraw(&mut self, id: &str) {
        if let Some(Entry::Waiting(waiting)) = self.entries.get(id) {
            self.deadlines.remove(&waiting.key);
            self.entries.remove(id);
        }
    }

    /// The flag of the cycle that sent this request, while that cycle lives.
    pub fn cycle_of(&self, id: &str) -> Option<ConflictFlag> {
        match self.entries.get(id)? {
            Entry::Waiting(waiting) => Some(waiting.expected.conflict.clone()),
            Entry::Ended(ended) => ended.conflict.upgrade(),
        }
    }

    /// Says what the reply `bytes` to the request `id` means.
    pub fn handle(&mut self, id: &str, bytes: &[u8], now: Instant) -> Heard<T> {
        match self.entries.get_mut(id) {
            None => Heard::Late,
            Some(Entry::Ended(ended)) => {
                let heard = again(ended, id, self.generation, bytes, now);
                if matches!(heard, Heard::Late) {
                    self.entries.remove(id);
                }
                heard
            }
            Some(Entry::Waiting(waiting)) => {
                if waiting.examined >= MAX_EXAMINED {
                    return Heard::Excess;
                }
                waiting.examined += 1;
                let expected = &waiting.expected;
                match judge(bytes, self.generation, id, &expected.identity, expected.agent) {
                    Ok(payload) => self.answer(id, payload, now),
                    Err(reason) => {
                        let identity = expected.identity.clone();
                        let sooner = now + self.invalid_grace;
                        if waiting.invalid.is_none() && sooner < waiting.key.0 {
                            self.deadlines.remove(&waiting.key);
                            waiting.key.0 = sooner;
                            self.deadlines.insert(waiting.key, id.to_owned());
                        }
                        waiting.invalid = Some(reason.clone());
                        Heard::Rejected { identity, reason }
                    }
                }
            }
        }
    }

    fn answer(&mut self, id: &str, payload: Vec<u8>, now: Instant) -> Heard<T> {
        let Some(Entry::Waiting(waiting)) = self.entries.remove(id) else { return Heard::Late };
        self.deadlines.remove(&waiting.key);
        self.forget(SWEEP, now);
        self.remember(id, &waiting, Some(digest(&payload)), now);
        let took = now.saturating_duration_since(waiting.sent);
        Heard::Answered { waiter: waiting.expected.waiter, answer: Answer { payload, took } }
    }

    fn remember(&mut self, id: &str, waiting: &Waiting<T>, digest: Option<Vec<u8>>, now: Instant) {
        if self.ended.len() >= self.capacity {
            return;
        }
        let ended = Ended {
            identity: waiting.expected.identity.clone(),
            agent: waiting.expected.agent,
            action: waiting.expected.action,
            conflict: waiting.expected.conflict.downgrade(),
            digest,
            until: now + self.memory,
            examined: waiting.examined,
        };
        self.entries.insert(id.to_owned(), Entry::Ended(ended));
        self.ended.push_back(id.to_owned());
    }

    /// Ends every call whose time is up, and forgets some that have ended and whose cycle is over.
    pub fn expire(&mut self, now: Instant) -> Vec<(T, CallError)> {
        let mut ended = Vec::new();
        while let Some(first) = self.deadlines.first_entry() {
            if first.key().0 > now {
                break;
            }
            let id = first.remove();
            if let Some(Entry::Waiting(mut waiting)) = self.entries.remove(&id) {
                self.remember(&id, &waiting, None, now);
                let error = match waiting.invalid.take() {
                    Some(reason) => CallError::Malformed { reason },
                    None => CallError::TimedOut { after: now.saturating_duration_since(waiting.sent) },
                };
                ended.push((waiting.expected.waiter, error));
            }
        }
        self.forget(256, now);
        ended
    }

    /// The connection that carried everything waiting is gone: replies may still come over the next one, but only for
    /// `grace` longer.
    pub fn hasten(&mut self, grace: Duration, now: Instant) {
        let end = now + grace;
        let later = self.deadlines.split_off(&(end, 0));
        for (old, id) in later {
            let key = (end, old.1);
            if let Some(Entry::Waiting(waiting)) = self.entries.get_mut(&id) {
                waiting.key = key;
            }
            self.deadlines.insert(key, id);
        }
    }

    /// Empties the table and gives back whoever waits.
    pub fn clear(&mut self) -> Vec<T> {
        self.deadlines.clear();
        self.ended.clear();
        let waiting = self.entries.drain().filter_map(|(_, entry)| match entry {
            Entry::Waiting(waiting) => Some(waiting.expected.waiter),
            Entry::Ended(_) => None,
        });
        waiting.collect()
    }

    /// When [`Pending::expire`] has something to do next.
    pub fn next_due(&self) -> Option<Instant> {
        self.deadlines.first_key_value().map(|(key, _)| key.0)
    }

    /// Looks at the `count` requests that have ended and have not been looked at for longest.
    fn forget(&mut self, count: usize, now: Instant) {
        for _ in 0..count.min(self.ended.len()) {
            let Some(id) = self.ended.pop_front() else { return };
            let keep = match self.entries.get(&id) {
                Some(Entry::Ended(ended)) => ended.until > now && ended.conflict.upgrade().is_some(),
                _ => continue,
            };
            if keep {
                self.ended.push_back(id);
            } else {
                self.entries.remove(&id);
            }
        }
    }
}

fn again<T>(ended: &mut Ended, id: &str, generation: Generation, bytes: &[u8], now: Instant) -> Heard<T> {
    let Some(flag) = ended.conflict.upgrade().filter(|_| ended.until > now) else { return Heard::Late };
    if ended.examined >= MAX_EXAMINED {
        return Heard::Excess;
    }
    ended.examined += 1;
    match (judge(bytes, generation, id, &ended.identity, ended.agent), &ended.digest) {
        (Err(reason), _) => Heard::Rejected { identity: ended.identity.clone(), reason },
        (Ok(_), None) => {
            flag.note_late(ended.action);
            Heard::Late
        }
        (Ok(payload), Some(known)) if digest(&payload) == *known => Heard::Repeated,
        (Ok(_), Some(_)) => {
            flag.raise();
            Heard::Conflict { identity: ended.identity.clone(), agent: ended.agent, action: ended.action }
        }
    }
}

fn digest(payload: &[u8]) -> Vec<u8> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, payload).as_ref().to_vec()
}

/// The payload of a reply that counts, or why it does not.
fn judge(
    bytes: &[u8],
    generation: Generation,
    id: &str,
    identity: &Identity,
    agent: &str,
) -> Result<Vec<u8>, String> {
    let open = envelope::open_reply(bytes).map_err(|error| chain(&error))?;
    if open.generation != generation {
        return Err("it speaks the other protocol generation".to_owned());
    }
    if open.reply.request != id {
        return Err("it names another request".to_owned());
    }
    for sender in [&open.reply.sender, &open.transport_sender] {
        if sender != identity.as_str() {
            return Err(format!("its sender is `{}`", printable(sender)));
        }
    }
    if open.reply.agent != agent {
        return Err(format!("it comes from agent `{}`", printable(&open.reply.agent)));
    }
    Ok(open.reply.payload)
}
