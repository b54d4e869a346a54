//! How a `--fault` value is read: every entry whole, or an error that says what would fit.

use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;

use super::fault::{Entry, Fault, Kind, Who};
use super::fault_error::FaultError;
use super::malformation::{Malformation, TABLE};

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

/// Kinds that are about the reply to an action, and so can be about one action alone. Malformations are, too.
const NARROWABLE: &[&str] =
    &["silence", "late", "malformed", "vanish", "duplicate", "two_replies", "lose_reply", "wrong_token"];

/// The actions of a cycle.
const ACTIONS: &[&str] =
    &["jwt", "gen25519", "inventory", "gencsr", "shutdown", "release_update", "configure", "restart"];

/// Nothing here needs longer.
const LONGEST: Duration = Duration::from_hours(24 * 366);

pub(super) fn parse_entry(entry: &str) -> Result<Entry, FaultError> {
    let Some((what, value)) = entry.split_once('=') else {
        return Err(FaultError::NoSelection { entry: entry.to_owned() });
    };
    let (what, action) = match what.split_once('/') {
        Some((what, action)) => (what, Some(action)),
        None => (what, None),
    };
    let (name, argument) = match what.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (what, None),
    };
    // `facts=2MiB` is what one wants to write when all servers have large facts.
    if name == "facts"
        && argument.is_none()
        && action.is_none()
        && let Some(size) = parse_size(value)
    {
        return Ok(Entry { kind: Kind::Fixed(Fault::Facts(size)), action: None, who: Who::Share(1.0) });
    }
    let kind = parse_kind(name, argument)?;
    if let Some(action) = action {
        check_action(entry, name, &kind, action)?;
    }
    Ok(Entry { kind, action: action.map(str::to_owned), who: parse_who(entry, value)? })
}

fn check_action(entry: &str, name: &str, kind: &Kind, action: &str) -> Result<(), FaultError> {
    if !ACTIONS.contains(&action) {
        let nearest = nearest(action, ACTIONS.iter().copied());
        return Err(FaultError::UnknownAction {
            entry: entry.to_owned(),
            action: action.to_owned(),
            nearest,
        });
    }
    let why = match kind {
        Kind::Fixed(Fault::Malformed(kind)) => match kind.action().filter(|only| *only != action) {
            Some(only) => format!("it shows in the reply to {only} alone"),
            None => return Ok(()),
        },
        _ if NARROWABLE.contains(&name) => return Ok(()),
        _ => "it is not about single replies".to_owned(),
    };
    Err(FaultError::NotNarrowable { kind: name.to_owned(), action: action.to_owned(), why })
}

fn parse_who(entry: &str, value: &str) -> Result<Who, FaultError> {
    let bad = || FaultError::BadSelection { entry: entry.to_owned(), value: value.to_owned() };
    if value == "all" {
        return Ok(Who::Share(1.0));
    }
    if value.starts_with('@') {
        let names = value.split('+').map(|name| name.strip_prefix('@').unwrap_or(name));
        let names = names.map(|name| Identity::parse(name).map(|name| name.to_string()));
        return names.collect::<Result<_, _>>().map(Who::Named).map_err(|_| bad());
    }
    match value.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Who::Share(share)),
        _ => Err(bad()),
    }
}

fn parse_kind(name: &str, argument: Option<&str>) -> Result<Kind, FaultError> {
    let refuse = |expected| FaultError::BadArgument {
        kind: name.to_owned(),
        argument: argument.unwrap_or_default().to_owned(),
        expected,
    };
    let read = |text| parse_duration(text).ok_or_else(|| refuse("a duration such as 500ms, 25s or 2m"));
    let duration = |default: u64| argument.map_or(Ok(Duration::from_secs(default)), read);
    let count = |default: u32| match argument {
        None => Ok(default),
        Some(text) => text.parse().ok().filter(|count| *count > 0).ok_or_else(|| refuse("a count from 1 on")),
    };
    let plain = |fault| if argument.is_none() { Ok(fault) } else { Err(refuse("none")) };
    let fault = match name {
        "silence" => plain(Fault::Silence)?,
        "late" => Fault::Late(duration(25)?),
        "lock" => Fault::Lock(duration(120)?),
        "malformed" => match argument {
            None => return Ok(Kind::AnyMalformation),
            Some(text) => Fault::Malformed(Malformation::parse(text).ok_or_else(|| unknown(text))?),
        },
        "vanish" => Fault::Vanish(argument.map(read).transpose()?),
        "duplicate" => plain(Fault::Duplicate)?,
        "two_replies" => plain(Fault::TwoReplies)?,
        "abort_configure" => Fault::AbortConfigure(count(1)?),
        "lose_reply" => Fault::LoseReply(count(1)?),
        "slow_update" => Fault::SlowUpdate(duration(25)?),
        "fail_update" => plain(Fault::FailUpdate)?,
        "wrong_token" => plain(Fault::WrongToken)?,
        "clock" => Fault::ClockOff(match argument {
            None => 3600,
            Some(text) => parse_offset(text).ok_or_else(|| refuse("an offset such as 30s, -90 or -2m"))?,
        }),
        "relapse" => Fault::Relapse(count(1)?),
        "no_return" => plain(Fault::NoReturn)?,
        "facts" => Fault::Facts(match argument {
            None => 2 << 20,
            Some(text) => parse_size(text).ok_or_else(|| refuse("a size such as 64KiB or 2MiB"))?,
        }),
        other => match Malformation::parse(other) {
            Some(kind) => plain(Fault::Malformed(kind))?,
            None => return Err(unknown(other)),
        },
    };
    Ok(Kind::Fixed(fault))
}

fn unknown(name: &str) -> FaultError {
    let known = KINDS.iter().copied().chain(TABLE.iter().map(|(known, _)| *known));
    FaultError::Unknown { name: name.to_owned(), nearest: nearest(name, known) }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    known.min_by_key(|known| strsim::levenshtein(known, name)).unwrap_or_default().to_owned()
}

/// `500ms`, `25s`, `2m`, `1h`, or plain seconds; at most a year.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let amount: u64 = digits.parse().ok()?;
    let duration = match unit {
        "ms" => Duration::from_millis(amount),
        "" | "s" => Duration::from_secs(amount),
        "m" => Duration::from_secs(amount.checked_mul(60)?),
        "h" => Duration::from_secs(amount.checked_mul(3600)?),
        _ => return None,
    };
    (duration <= LONGEST).then_some(duration)
}

/// Whole seconds ahead, or with a minus behind.
fn parse_offset(text: &str) -> Option<i64> {
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let size = parse_duration(size).filter(|size| size.subsec_nanos() == 0)?;
    Some(sign * i64::try_from(size.as_secs()).ok()?)
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
    use crate::emulate::fault::{Affliction, FaultPlan};

    fn check(plan: &str, expected: &[Fault]) {
        let drawn = FaultPlan::parse(plan).unwrap().draw(1, "web1.example.net");
        let faults: Vec<_> = drawn.into_iter().map(|drawn| drawn.fault).collect();
        assert_eq!(faults, expected, "{plan}");
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
    fn a_named_server_is_chosen_and_another_is_not() {
        check("two_replies=@web1.example.net", &[Fault::TwoReplies]);
        check("two_replies=@web2.example.net+@web1.example.net", &[Fault::TwoReplies]);
        check("two_replies=@web2.example.net", &[]);
    }

    #[test]
    fn arguments_are_read() {
        let second = Duration::from_secs(1);
        check("late:300ms=all", &[Fault::Late(Duration::from_millis(300))]);
        check("lock:2m=all", &[Fault::Lock(120 * second)]);
        check("vanish=all", &[Fault::Vanish(None)]);
        check("vanish:5s=all", &[Fault::Vanish(Some(5 * second))]);
        check("clock:-90s=all", &[Fault::ClockOff(-90)]);
        check("clock:+30=all", &[Fault::ClockOff(30)]);
        check("clock:-2m=all", &[Fault::ClockOff(-120)]);
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
    fn faults_in_the_plan_are_named() {
        let cases = [
            (
                "silence",
                "fault `silence` does not say which servers: write silence=0.1, silence=all or silence=@identity",
            ),
            (
                "silence=2",
                "`2` in fault `silence=2` is neither a share between 0 and 1, nor `all`, nor `@identity`",
            ),
            (
                "silence=NaN",
                "`NaN` in fault `silence=NaN` is neither a share between 0 and 1, nor `all`, nor `@identity`",
            ),
            (
                "silence=@",
                "`@` in fault `silence=@` is neither a share between 0 and 1, nor `all`, nor `@identity`",
            ),
            ("silense=all", "there is no fault `silense`; the nearest is `silence`"),
            ("malformed:jwt_hs265=all", "there is no fault `jwt_hs265`; the nearest is `jwt_hs256`"),
            (
                "late:soon=all",
                "`soon` is no argument for fault `late`: expected a duration such as 500ms, 25s or 2m",
            ),
            (
                "late:18446744073709551615ms=all",
                "`18446744073709551615ms` is no argument for fault `late`: expected a duration such as 500ms, 25s or 2m",
            ),
            (
                "vanish:=all",
                "`` is no argument for fault `vanish`: expected a duration such as 500ms, 25s or 2m",
            ),
            (
                "clock:30ss=all",
                "`30ss` is no argument for fault `clock`: expected an offset such as 30s, -90 or -2m",
            ),
            ("lose_reply:0=all", "`0` is no argument for fault `lose_reply`: expected a count from 1 on"),
            ("silence:5s=all", "`5s` is no argument for fault `silence`: expected none"),
            ("bad_hash:1=all", "`1` is no argument for fault `bad_hash`: expected none"),
            ("silence/jwr=all", "there is no action `jwr` in fault `silence/jwr=all`; the nearest is `jwt`"),
            (
                "relapse/restart=all",
                "fault `relapse` cannot be narrowed to action `restart`: it is not about single replies",
            ),
            (
                "jwt_expired/configure=all",
                "fault `jwt_expired` cannot be narrowed to action `configure`: it shows in the reply to jwt alone",
            ),
        ];
        for (plan, expected) in cases {
            refused(plan, expected);
        }
    }
}
