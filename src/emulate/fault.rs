//! `--fault`: what goes wrong, with which servers.
//!
//! A plan is a list of `KIND[:ARGUMENT][/ACTION]=WHO`, separated by commas. WHO is a share (`0.1`), `all`, or identities
//! (`@web1.example.net`, several joined by `+`). Shares are drawn from the fleet's seed, each entry for itself, so one
//! seed gives the same servers the same faults again.

use std::time::Duration;

use super::dice::Dice;
use super::fault_error::FaultError;
use super::fault_text::parse_entry;
use super::malformation::{Malformation, TABLE};

/// What can go wrong with one server.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Answers discovery and nothing else.
    Silence,
    /// Each reply comes this much later.
    Late(Duration),
    /// A stranger holds the provisioning lock for this long after the start.
    Lock(Duration),
    /// Answers one way of wrong; see [`Malformation`].
    Malformed(Malformation),
    /// Announces itself and is gone; with an action named, gone when that action arrives. With a time: off once for
    /// this long, then started anew with what is on its disk.
    Vanish(Option<Duration>),
    /// Each reply is sent twice, byte for byte the same.
    Duplicate,
    /// Each reply is followed by a different, valid one.
    TwoReplies,
    /// This many `configure` calls fail for lack of disk space, then they work.
    AbortConfigure(u32),
    /// The work is done and this many replies are lost.
    LoseReply(u32),
    /// `release_update` takes this long, and past the agent's limit is never answered.
    SlowUpdate(Duration),
    /// `release_update` fails and is rolled back.
    FailUpdate,
    /// The server has another provisioning token than the site.
    WrongToken,
    /// The server's clock is this many seconds off (negative: behind).
    ClockOff(i64),
    /// Comes back from the restart in provisioning mode, this many times.
    Relapse(u32),
    /// Never comes back from the restart.
    NoReturn,
    /// The facts have about this many bytes.
    Facts(usize),
}

/// Which servers an entry is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Who {
    Share(f64),
    Named(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Fixed(Fault),
    /// `malformed=0.1`: each chosen server draws its own malformation.
    AnyMalformation,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) action: Option<String>,
    pub(super) who: Who,
}

/// One fault of one server, perhaps for one action alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Affliction {
    /// What goes wrong.
    pub fault: Fault,
    /// Only for this action's replies; none for all.
    pub action: Option<String>,
}

/// A parsed `--fault` value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultPlan {
    entries: Vec<Entry>,
}

impl FaultPlan {
    /// Reads a plan. An empty text is the plan without faults.
    pub fn parse(text: &str) -> Result<Self, FaultError> {
        let entries = text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(parse_entry)
            .collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// This plan followed by `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// True when nothing goes wrong with anybody.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The faults of one server in the fleet with `seed`.
    pub fn draw(&self, seed: u64, identity: &str) -> Vec<Affliction> {
        let mut afflictions = Vec::new();
        for (position, entry) in self.entries.iter().enumerate() {
            let mut dice = Dice::new(seed ^ (position as u64).wrapping_mul(0x5851_f42d_4c95_7f2d), identity);
            let chosen = match &entry.who {
                Who::Share(share) => dice.chance(*share),
                Who::Named(names) => names.iter().any(|name| name == identity),
            };
            if !chosen {
                continue;
            }
            let fault = match &entry.kind {
                Kind::Fixed(fault) => fault.clone(),
                Kind::AnyMalformation => Fault::Malformed(any_malformation(&mut dice)),
            };
            afflictions.push(Affliction { fault, action: entry.action.clone() });
        }
        afflictions
    }
}

fn any_malformation(dice: &mut Dice) -> Malformation {
    let position = usize::try_from(dice.below(TABLE.len() as u64)).unwrap_or(0);
    TABLE.get(position).map_or(Malformation::NotJson, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_takes_about_that_many() {
        let plan = FaultPlan::parse("silence=0.2").unwrap();
        let hit = (0..1000).filter(|n| !plan.draw(3, &format!("web{n}")).is_empty()).count();
        assert!((150..250).contains(&hit), "{hit} of 1000");
    }

    #[test]
    fn one_seed_draws_the_same_faults_again() {
        let plan = FaultPlan::parse("malformed=0.5,vanish:5s/jwt=0.3,late:1s=0.3").unwrap();
        let drawn = |seed| -> Vec<_> { (0..100).map(|n| plan.draw(seed, &format!("web{n}"))).collect() };
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }

    #[test]
    fn each_entry_is_drawn_for_itself() {
        let plan = FaultPlan::parse("silence=0.5,duplicate=0.5").unwrap();
        let both = (0..1000).filter(|n| plan.draw(3, &format!("web{n}")).len() == 2).count();
        assert!((190..310).contains(&both), "{both} of 1000 have both");
    }
}
