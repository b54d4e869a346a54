//! Who works on what, as far as this instance has heard, and whose turn each host is. Pure: time arrives as an argument.
//!
//! Every host has one instance of choice among those that are there, by rendezvous hashing, which takes it at once. Other
//! instances keep the host in mind and take it when the first has not begun after a while and they themselves have room.
//! None of this is needed for a host to be provisioned once: that is the compare-and-set's. It keeps instances out of each
//! other's way, and the work even.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;
use tokio::time::Instant;

use super::record::{Record, RecordState};

/// How long another instance gets to begin with a host of its own before one that has room takes it.
const COURTESY: Duration = Duration::from_secs(3);
/// How long a host that was told to restart may go on answering discovery.
const RESTART_GRACE: Duration = Duration::from_secs(15);

/// What is known of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    by: String,
    life: String,
    state: RecordState,
    seq: u64,
    heard: Instant,
}

/// A host that is another instance's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    since: Instant,
    seen: Instant,
}

/// What to do with a host that was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Ours: into the queue.
    Ours,
    /// Another instance's first; kept in mind.
    Theirs,
    /// Another instance is just done with it.
    Done,
    /// Another instance's, and there is no room to keep it in mind; a later look finds it again.
    Full,
}

/// Whether a host may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chance {
    /// By a write that follows the one with this sequence number; 0 when there should be none.
    After(u64),
    /// Not now.
    Taken,
}

/// The board of one instance.
#[derive(Debug)]
pub struct Board {
    own: String,
    life: String,
    lives: Duration,
    most: usize,
    interval: Duration,
    hosts: HashMap<Identity, Known>,
    members: BTreeMap<String, Instant>,
    kept: HashMap<Identity, Kept>,
    /// The same hosts in an order of this instance's own, so that two that have room seldom reach for the same.
    order: BTreeSet<(u64, Identity)>,
}

impl Board {
    /// The board of `own` in this life of its process. At most `most` hosts of others are kept in mind, and for two `interval`s after they were seen.
    pub fn new(own: &str, life: &str, most: usize, interval: Duration) -> Self {
        Self {
            own: own.to_owned(),
            life: life.to_owned(),
            lives: Duration::from_mins(1),
            most,
            interval,
            hosts: HashMap::new(),
            members: BTreeMap::new(),
            kept: HashMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// Values of the bucket live this long.
    pub const fn set_lives(&mut self, lives: Duration) {
        self.lives = lives;
    }

    /// How many hosts of others are kept in mind.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The instances that are there, this one included.
    pub fn members(&self, now: Instant) -> Vec<String> {
        let mut members: Vec<_> = self.present(now).map(str::to_owned).collect();
        if !members.contains(&self.own) {
            members.push(self.own.clone());
        }
        members.sort_unstable();
        members
    }

    fn present(&self, now: Instant) -> impl Iterator<Item = &str> {
        let alive = move |heard: &Instant| now < *heard + self.lives;
        self.members.iter().filter(move |(_, heard)| alive(heard)).map(|(name, _)| name.as_str())
    }

    /// A host was noticed in provisioning mode.
    pub fn notice(&mut self, host: &Identity, now: Instant) -> Turn {
        match self.other(host, now) {
            Some((RecordState::Done, heard)) if now < heard + RESTART_GRACE => return Turn::Done,
            None if self.is_first(host, now) => {
                self.drop_kept(host);
                return Turn::Ours;
            }
            Some(_) | None => {}
        }
        self.keep(host, now)
    }

    /// Keeps a host of another in mind.
    pub fn keep(&mut self, host: &Identity, now: Instant) -> Turn {
        if let Some(kept) = self.kept.get_mut(host) {
            kept.seen = now;
            return Turn::Theirs;
        }
        if self.kept.len() >= self.most {
            return Turn::Full;
        }
        self.kept.insert(host.clone(), Kept { since: now, seen: now });
        self.order.insert((weight(&self.own, host.as_str()), host.clone()));
        Turn::Theirs
    }

    /// Keeps it in mind no more.
    pub fn drop_kept(&mut self, host: &Identity) {
        if self.kept.remove(host).is_some() {
            self.order.remove(&(weight(&self.own, host.as_str()), host.clone()));
        }
    }

    /// A host's key was heard. True when another instance is done with it, so that this one shall drop it.
    pub fn hear(&mut self, host: &Identity, record: &Record, seq: u64, now: Instant) -> bool {
        if self.hosts.get(host).is_some_and(|known| known.seq >= seq && now < known.heard + self.lives) {
            return false;
        }
        let known =
            Known { by: record.by.clone(), life: record.life.clone(), state: record.state, seq, heard: now };
        self.hosts.insert(host.clone(), known);
        let done = self.other(host, now).is_some_and(|(state, _)| state == RecordState::Done);
        if done {
            self.drop_kept(host);
        }
        done
    }

    /// An instance was heard, or has left.
    pub fn hear_member(&mut self, name: &str, record: &Record, now: Instant) {
        if record.state == RecordState::Member {
            self.members.insert(name.to_owned(), now);
        } else {
            self.members.remove(name);
        }
    }

    /// Whether this instance may try to claim the host; `resumed` when its journal knows what an earlier life left there.
    pub fn chance(&self, host: &Identity, resumed: bool, now: Instant) -> Chance {
        let known = self.hosts.get(host);
        let left = |known: &Known| known.by == self.own && known.state == RecordState::Committed;
        if self.other(host, now).is_some() && !(resumed && known.is_some_and(left)) {
            return Chance::Taken;
        }
        let known = known.filter(|known| now < known.heard + self.lives);
        Chance::After(known.map_or(0, |known| known.seq))
    }

    /// Hosts that were kept in mind and that this instance takes now, at most `room`; of those that are still another's
    /// first, at most `help`, so that one that is only slow for a while does not find all its work done by others.
    pub fn take_over(&mut self, room: usize, help: usize, now: Instant) -> Vec<Identity> {
        let gone: Vec<_> = self
            .kept
            .iter()
            .filter(|(_, kept)| now >= kept.seen + 2 * self.interval)
            .map(|(host, _)| host.clone())
            .collect();
        for host in &gone {
            self.drop_kept(host);
        }
        self.hosts.retain(|_, known| now < known.heard + self.lives);
        let mut help = help;
        let mut due = |host: &Identity| {
            if self.other(host, now).is_some() {
                return false;
            }
            if self.is_first(host, now) {
                return true;
            }
            let helps = help > 0 && self.kept.get(host).is_some_and(|kept| now >= kept.since + COURTESY);
            help -= usize::from(helps);
            helps
        };
        let mut taken = Vec::new();
        for (_, host) in &self.order {
            if taken.len() >= room {
                break;
            }
            if due(host) {
                taken.push(host.clone());
            }
        }
        for host in &taken {
            self.drop_kept(host);
        }
        taken
    }

    /// What another instance says of the host, and when it said so. What an earlier life of this one was done with, or had
    /// perhaps configured and told to restart, counts as another's: it gets the time of its claim to come up. What that
    /// life left before does not.
    fn other(&self, host: &Identity, now: Instant) -> Option<(RecordState, Instant)> {
        let known = self.hosts.get(host)?;
        let theirs = match known.state {
            RecordState::Free | RecordState::Member => false,
            RecordState::Done | RecordState::Committed => (&known.by, &known.life) != (&self.own, &self.life),
            RecordState::Working | RecordState::Resting => known.by != self.own,
        };
        (theirs && now < known.heard + self.lives).then_some((known.state, known.heard))
    }

    /// Whether this instance is the host's first choice.
    fn is_first(&self, host: &Identity, now: Instant) -> bool {
        let own = weight(&self.own, host.as_str());
        let rivals = self.present(now).filter(|name| *name != self.own);
        rivals.map(|name| (weight(name, host.as_str()), name)).all(|rival| rival < (own, self.own.as_str()))
    }
}

/// The weight of an instance for a host: the highest is the first choice. The same in every instance: FNV-1a, then mixed
/// so that names that differ in their last letter only are far apart.
fn weight(member: &str, host: &str) -> u64 {
    let bytes = member.bytes().chain([0]).chain(host.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
