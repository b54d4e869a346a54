//! `--fault`: what goes wrong, with which servers.
//!
//! A plan is a list of `KIND[:ARGUMENT][/ACTION]=WHO`, separated by commas. WHO is a share (`0.1`), `all`, or identities
//! (`@web1.example.net`, several joined by `+`). Shares are drawn from the fleet's seed, each entry for itself.

use std::time::Duration;

use super::dice::Dice;
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
    /// Announces itself and is gone; with an action named, gone when that action arrives.
    Vanish,
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
enum Who {
    Share(f64),
    Named(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Fixed(Fault),
    /// `malformed=0.1`: each chosen server draws its own malformation.
    AnyMalformation,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    kind: Kind,
    action: Option<String>,
    who: Who,
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

/// Why a `--fault` value is no plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FaultError {
    /// An entry without `=WHO`.
    #[error(
        "fault `{entry}` does not say which servers: write {entry}=0.1, {entry}=all or {entry}=@identity"
    )]
    NoSelection {
        /// The entry as given.
        entry: String,
    },
    /// WHO is no share, no `all` and no `@identity`.
    #[error("`{value}` in fault `{entry}` is neither a share between 0 and 1, nor `all`, nor `@identity`")]
    BadSelection {
        /// The entry as given.
        entry: String,
        /// The part after `=`.
        value: String,
    },
    /// A kind nobody knows.
    #[error("there is no fault `{name}`; the nearest is `{nearest}`")]
    Unknown {
        /// The kind as given.
        name: String,
        /// The known kind that looks most like it.
        nearest: String,
    },
    /// An argument that does not fit the kind.
    #[error("`{argument}` is no argument for fault `{kind}`: expected {expected}")]
    BadArgument {
        /// The kind.
        kind: String,
        /// The argument as given.
        argument: String,
        /// What would fit.
        expected: &'static str,
    },
}

const KINDS: &[&str] = &[
    "silence",
    "late",
    "lock",
    "malformed",
    "vanish",
    "duplicate",
    "two_replies",
    "abort_configure",
    "lose_reply",
    "slow_update",
    "fail_update",
    "wrong_token",
    "clock",
    "relapse",
    "no_return",
    "facts",
];

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

fn parse_entry(entry: &str) -> Result<Entry, FaultError> {
    let Some((what, value)) = entry.split_once('=') else {
        return Err(FaultError::NoSelection { entry: entry.to_owned() });
    };
    let (what, action) = match what.split_once('/') {
        Some((what, action)) => (what, Some(action.to_owned())),
        None => (what, None),
    };
    let (name, argument) = match what.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (what, None),
    };
    // `facts=2MiB` is what one wants to write when all servers have large facts.
    if name == "facts"
        && argument.is_none()
        && let Some(size) = parse_size(value)
    {
        return Ok(Entry { kind: Kind::Fixed(Fault::Facts(size)), action, who: Who::Share(1.0) });
    }
    let kind = parse_kind(name, argument)?;
    Ok(Entry { kind, action, who: parse_who(entry, value)? })
}

fn parse_who(entry: &str, value: &str) -> Result<Who, FaultError> {
    if value == "all" {
        return Ok(Who::Share(1.0));
    }
    if value.starts_with('@') {
        let names = value.split('+').map(|name| name.trim_start_matches('@').to_owned()).collect();
        return Ok(Who::Named(names));
    }
    match value.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Who::Share(share)),
        _ => Err(FaultError::BadSelection { entry: entry.to_owned(), value: value.to_owned() }),
    }
}

fn parse_kind(name: &str, argument: Option<&str>) -> Result<Kind, FaultError> {
    let refuse = |expected| FaultError::BadArgument {
        kind: name.to_owned(),
        argument: argument.unwrap_or_default().to_owned(),
        expected,
    };
    let duration = |default: u64| match argument {
        None => Ok(Duration::from_secs(default)),
        Some(text) => parse_duration(text).ok_or_else(|| refuse("a duration such as 500ms, 25s or 2m")),
    };
    let count = |default: u32| match argument {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| refuse("a count")),
    };
    let fault = match name {
        "silence" => Fault::Silence,
        "late" => Fault::Late(duration(25)?),
        "lock" => Fault::Lock(duration(120)?),
        "malformed" => match argument {
            None => return Ok(Kind::AnyMalformation),
            Some(text) => Fault::Malformed(Malformation::parse(text).ok_or_else(|| unknown(text))?),
        },
        "vanish" => Fault::Vanish,
        "duplicate" => Fault::Duplicate,
        "two_replies" => Fault::TwoReplies,
        "abort_configure" => Fault::AbortConfigure(count(1)?),
        "lose_reply" => Fault::LoseReply(count(1)?),
        "slow_update" => Fault::SlowUpdate(duration(25)?),
        "fail_update" => Fault::FailUpdate,
        "wrong_token" => Fault::WrongToken,
        "clock" => Fault::ClockOff(match argument {
            None => 3600,
            Some(text) => text.trim_end_matches('s').parse().map_err(|_| refuse("seconds such as -90s"))?,
        }),
        "relapse" => Fault::Relapse(count(1)?),
        "no_return" => Fault::NoReturn,
        "facts" => Fault::Facts(match argument {
            None => 2 << 20,
            Some(text) => parse_size(text).ok_or_else(|| refuse("a size such as 64KiB or 2MiB"))?,
        }),
        other => match Malformation::parse(other) {
            Some(kind) if argument.is_none() => Fault::Malformed(kind),
            Some(_) => return Err(refuse("none")),
            None => return Err(unknown(other)),
        },
    };
    Ok(Kind::Fixed(fault))
}

fn unknown(name: &str) -> FaultError {
    let known = KINDS.iter().copied().chain(TABLE.iter().map(|(known, _)| *known));
    let nearest = known.min_by_key(|known| strsim::levenshtein(known, name)).unwrap_or_default();
    FaultError::Unknown { name: name.to_owned(), nearest: nearest.to_owned() }
}

/// `500ms`, `25s`, `2m`, `1h`, or plain seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(amount)),
        "" | "s" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_secs(amount.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(amount.checked_mul(3600)?)),
        _ => None,
    }
}

/// `4096`, `64KiB`, `2MiB`: at most 64 MiB.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, factor) = match (text.strip_suffix("MiB"), text.strip_suffix("KiB")) {
        (Some(digits), _) => (digits, 1 << 20),
        (_, Some(digits)) => (digits, 1 << 10),
        _ if text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit()) => (text, 1),
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(factor).filter(|size| *size <= 64 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(plan: &str, identity: &str) -> Vec<Fault> {
        FaultPlan::parse(plan).unwrap().draw(1, identity).into_iter().map(|drawn| drawn.fault).collect()
    }

    fn check(plan: &str, expected: &[Fault]) {
        assert_eq!(faults(plan, "web1.example.net"), expected, "{plan}");
    }

    fn refused(plan: &str, expected: &str) {
        assert_eq!(FaultPlan::parse(plan).unwrap_err().to_string(), expected);
    }

    #[test]
    fn an_empty_plan_has_no_faults() {
        check("", &[]);
    }

    #[test]
    fn all_means_everybody() {
        check("silence=all", &[Fault::Silence]);
    }

    #[test]
    fn a_named_server_is_chosen() {
        check("two_replies=@web1.example.net", &[Fault::TwoReplies]);
        check("two_replies=@web2.example.net+@web1.example.net", &[Fault::TwoReplies]);
    }

    #[test]
    fn another_server_is_not_chosen() {
        check("two_replies=@web2.example.net", &[]);
    }

    #[test]
    fn arguments_are_read() {
        check("late:300ms=all", &[Fault::Late(Duration::from_millis(300))]);
        check("lock:2m=all", &[Fault::Lock(Duration::from_mins(2))]);
        check("clock:-90s=all", &[Fault::ClockOff(-90)]);
        check("abort_configure:2=all", &[Fault::AbortConfigure(2)]);
        check("facts:64KiB=all", &[Fault::Facts(65_536)]);
    }

    #[test]
    fn a_size_alone_gives_all_servers_such_facts() {
        check("facts=2MiB", &[Fault::Facts(2 << 20)]);
    }

    #[test]
    fn a_malformation_needs_no_prefix() {
        check("bad_hash=all", &[Fault::Malformed(Malformation::BadHash)]);
        check("malformed:bad_hash=all", &[Fault::Malformed(Malformation::BadHash)]);
    }

    #[test]
    fn several_faults_may_meet_in_one_server() {
        check("duplicate=all, no_return=all", &[Fault::Duplicate, Fault::NoReturn]);
    }

    #[test]
    fn an_action_narrows_a_fault() {
        let drawn = FaultPlan::parse("silence/jwt=all").unwrap().draw(1, "web1");
        assert_eq!(drawn, [Affliction { fault: Fault::Silence, action: Some("jwt".to_owned()) }]);
    }

    #[test]
    fn a_share_takes_about_that_many() {
        let plan = FaultPlan::parse("silence=0.2").unwrap();
        let hit = (0..1000).filter(|n| !plan.draw(3, &format!("web{n}")).is_empty()).count();
        assert!((150..250).contains(&hit), "{hit} of 1000");
    }

    #[test]
    fn one_seed_draws_the_same_faults_again() {
        let plan = FaultPlan::parse("malformed=0.5").unwrap();
        for n in 0..100 {
            let name = format!("web{n}");
            assert_eq!(plan.draw(3, &name), plan.draw(3, &name));
        }
    }

    #[test]
    fn faults_in_the_plan_are_named() {
        refused(
            "silence",
            "fault `silence` does not say which servers: write silence=0.1, silence=all or silence=@identity",
        );
        refused(
            "silence=2",
            "`2` in fault `silence=2` is neither a share between 0 and 1, nor `all`, nor `@identity`",
        );
        refused("silense=all", "there is no fault `silense`; the nearest is `silence`");
        refused("malformed:jwt_hs265=all", "there is no fault `jwt_hs265`; the nearest is `jwt_hs256`");
        refused(
            "late:soon=all",
            "`soon` is no argument for fault `late`: expected a duration such as 500ms, 25s or 2m",
        );
        refused("bad_hash:1=all", "`1` is no argument for fault `bad_hash`: expected none");
    }
}
