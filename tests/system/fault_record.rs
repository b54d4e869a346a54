//! The provisioner's own record of its attempts as a witness: once it has noted the reply to a host's `configure`, no later
//! attempt may configure that host again, unless the host came back in provisioning mode. It needs no clock, so it holds where
//! a broker that froze hands over late what nobody reads any more.

use std::collections::BTreeMap;
use std::path::Path;

use quartermaster::emulate::ServerRecord;
use quartermaster_actors::journal::{AttemptRecord, HistoryLimits, JournalHandle, StepRecord};
use quartermaster_proto::choria::Identity;

use super::support::proxy::now_ms;

const CONFIGURE: &str = "configure";
/// How often an attempt may send `configure`; of one that was cut off only the first try is on record.
const TRIES: u32 = 5;

/// What the record says of one host.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Attempts that sent `configure` although an earlier one had the reply to it.
    pub again: usize,
    /// How often `configure` may have been sent.
    pub sent: u32,
    /// How many of these had a reply.
    pub answered: u32,
    /// The oldest attempts are no longer on record.
    pub trimmed: bool,
}

/// Whether the record holds the reply to this `configure` of an attempt: then a later step follows, or, when the attempt was
/// cut off right there, it does not say that none is known.
fn is_answered(attempt: &AttemptRecord, place: usize, step: &StepRecord) -> bool {
    let last = place + 1 == attempt.steps.len();
    !last || (attempt.ending == "lost" && step.error.is_none())
}

/// Adds up the attempts of one host, oldest first.
pub fn account(attempts: &[AttemptRecord]) -> Account {
    let trimmed = attempts.len() >= HistoryLimits::STANDARD.of_one;
    let mut account = Account { trimmed, ..Account::default() };
    let mut replied = false;
    for attempt in attempts {
        let steps = || attempt.steps.iter().enumerate().filter(|(_, step)| step.step == CONFIGURE);
        if steps().next().is_none() {
            continue;
        }
        account.again += usize::from(std::mem::take(&mut replied));
        // More than one when the host's key was replaced by a late request; then all that was made of it is made again.
        for (place, step) in steps() {
            account.sent += if attempt.ending == "lost" { TRIES } else { step.tries };
            replied = is_answered(attempt, place, step);
            account.answered += u32::from(replied);
        }
    }
    account
}

/// What is wrong with a host by the record of it; nothing when all is well.
pub fn complaint(record: &ServerRecord, account: &Account) -> Option<String> {
    let relapses = usize::try_from(record.relapses).unwrap();
    let repeated = record.repetitions().count();
    let unanswered = usize::try_from(account.sent - account.answered).unwrap();
    if account.again > relapses {
        return Some(format!("configured again {} times after its reply was noted", account.again));
    }
    if account.trimmed {
        return None;
    }
    if record.configures > account.sent {
        return Some(format!("configured {} times, of {} on record", record.configures, account.sent));
    }
    (repeated > unanswered).then(|| format!("{repeated} repeated, {unanswered} without a reply on record"))
}

/// The attempts of these hosts in the journals of provisioners that have ended, each journal's oldest first.
pub fn read<'a>(
    journal: &Path,
    hosts: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Vec<AttemptRecord>> {
    let (journal, _) = JournalHandle::open(journal, HistoryLimits::STANDARD, now_ms()).unwrap();
    let history = |host: &String| (host.clone(), journal.history(&Identity::parse(host).unwrap()));
    hosts.map(history).collect()
}

/// What was done to a host by itself, and by the record, a line each.
pub fn told(record: &ServerRecord, attempts: &[AttemptRecord]) -> String {
    let done =
        record.configured.iter().map(|one| format!("  configured at {}, sent at {}", one.at_ms, one.sent_ms));
    let noted = attempts.iter().map(|one| {
        let steps = one.steps.iter().map(|step| {
            let error = step.error.as_deref().unwrap_or("well");
            format!("{} at {} ({} tries, {error})", step.step, step.began_ms, step.tries)
        });
        format!(
            "  attempt {} (cycle {}) {}: {}",
            one.attempt,
            one.cycle,
            one.ending,
            steps.collect::<Vec<_>>().join(", ")
        )
    });
    done.chain(noted).collect::<Vec<_>>().join("\n")
}

fn attempt(ending: &str, steps: &[(&str, u32, Option<&str>)]) -> AttemptRecord {
    let step = |(step, tries, error): &(&str, u32, Option<&str>)| StepRecord {
        step: (*step).to_owned(),
        tries: *tries,
        began_ms: 1,
        took_ms: 1,
        error: error.map(str::to_owned),
    };
    AttemptRecord {
        attempt: 1,
        cycle: 1,
        began_ms: 1,
        took_ms: 1,
        ending: ending.to_owned(),
        cause: None,
        error: None,
        steps: steps.iter().map(step).collect(),
        helper: None,
    }
}

#[track_caller]
fn check(attempts: &[AttemptRecord], again: usize, sent: u32, answered: u32) {
    assert_eq!(account(attempts), Account { again, sent, answered, trimmed: false });
}

const SILENT: Option<&str> = Some("no reply within 2s");

#[test]
fn a_repeated_configure_is_explained_by_one_that_has_no_reply_on_record() {
    let good = attempt("provisioned", &[("configure", 1, None), ("restart", 1, None)]);
    check(std::slice::from_ref(&good), 0, 1, 1);
    let unanswered = attempt("failed", &[("configure", 5, SILENT)]);
    check(&[unanswered, good.clone()], 0, 6, 1);
    let cut_off = attempt("lost", &[("configure", 1, Some("no reply to it is known"))]);
    check(&[cut_off, good.clone()], 0, 6, 1);
    let helper = attempt("failed", &[("helper", 1, Some("exited with status 1"))]);
    check(&[helper, good], 0, 1, 1);
}

#[test]
fn a_configure_after_one_whose_reply_is_on_record_is_found() {
    let good = || attempt("provisioned", &[("configure", 1, None), ("restart", 1, None)]);
    check(&[good(), good()], 1, 2, 2);
    let noted = attempt("lost", &[("configure", 1, None)]);
    check(&[noted, good()], 1, 6, 2);
    let unheard = attempt("failed", &[("configure", 2, SILENT), ("restart", 3, SILENT)]);
    check(&[unheard.clone(), good()], 1, 3, 2);
    check(&[unheard, attempt("provisioned", &[("restart", 1, None)])], 0, 2, 1);
}

#[test]
fn a_configure_that_is_on_no_record_is_found() {
    let mut server = ServerRecord { configures: 2, ..ServerRecord::default() };
    let account = Account { again: 0, sent: 1, answered: 1, trimmed: false };
    assert_eq!(complaint(&server, &account).unwrap(), "configured 2 times, of 1 on record");
    server.configures = 1;
    assert_eq!(complaint(&server, &account), None);
    let twice = Account { again: 1, sent: 2, ..account };
    assert_eq!(complaint(&server, &twice).unwrap(), "configured again 1 times after its reply was noted");
    server.relapses = 1;
    assert_eq!(complaint(&server, &twice), None);
}
