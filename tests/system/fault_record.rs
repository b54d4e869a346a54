//! The provisioner's own record of its attempts as a witness: once it has noted the reply to a host's `configure`, no later
//! attempt may configure that host again, unless the host came back in provisioning mode. It needs no clock, so it holds where
//! a broker that froze hands over late what nobody reads any more.

use std::collections::BTreeMap;
use std::path::PathBuf;

use quartermaster::emulate::{ServerRecord, ServerReport};
use quartermaster_actors::journal::{AttemptRecord, HistoryLimits, JournalHandle, StepRecord};
use quartermaster_proto::choria::Identity;

use super::support::proxy::now_ms;

const CONFIGURE: &str = "configure";
/// How often an attempt may send `configure`; of one that was cut off only the first try is on record.
const TRIES: u32 = 5;

/// What the record says of one host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    /// Attempts that sent `configure` although an earlier one had the reply to it.
    again: usize,
    /// How often `configure` may have been sent.
    sent: u32,
    /// How many of these had a reply.
    answered: u32,
    /// The oldest attempts are no longer on record.
    trimmed: bool,
}

/// Whether the record holds the reply to this `configure` of an attempt: then a later step follows, or, when the attempt was
/// cut off right there, it does not say that none is known.
fn is_answered(attempt: &AttemptRecord, place: usize, step: &StepRecord) -> bool {
    let last = place + 1 == attempt.steps.len();
    !last || (attempt.ending == "lost" && step.error.is_none())
}

/// Adds up the attempts of one host, oldest first.
fn account(attempts: &[AttemptRecord]) -> Account {
    account_of_several(attempts.iter().map(|attempt| (0, attempt)))
}

/// Adds up the attempts of one host by several instances, oldest first, each with the number of its instance. What one noted is
/// known to itself; to others, only that it provisioned the host.
fn account_of_several<'a>(attempts: impl Iterator<Item = (usize, &'a AttemptRecord)>) -> Account {
    let mut account = Account::default();
    let mut replied = None;
    let mut seen = [0; 8];
    for (instance, attempt) in attempts {
        seen[instance] += 1;
        account.trimmed |= seen[instance] >= HistoryLimits::STANDARD.of_one;
        let steps = || attempt.steps.iter().enumerate().filter(|(_, step)| step.step == CONFIGURE);
        if steps().next().is_none() {
            continue;
        }
        // An instance that was dead while another provisioned the host asks once more when it is back. Nobody answers that, because
        // the host has left provisioning mode; had anybody, it would be a second configuration.
        let is_heard = steps().any(|(place, step)| is_answered(attempt, place, step));
        let knew = replied.take().is_some_and(|(who, known)| who == instance || (known && is_heard));
        account.again += usize::from(knew);
        // More than one when the host's key was replaced by a late request; then all that was made of it is made again.
        for (place, step) in steps() {
            account.sent += if attempt.ending == "lost" { TRIES } else { step.tries };
            let answered = is_answered(attempt, place, step);
            replied = answered.then(|| (instance, attempt.ending == "provisioned"));
            account.answered += u32::from(answered);
        }
    }
    account
}

/// What is wrong with a host by the record of it; nothing when all is well.
fn complaint(record: &ServerRecord, account: &Account) -> Option<String> {
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

/// What is wrong with these hosts by the journals of the instances, which have ended.
pub fn complaints(journals: &[PathBuf], servers: &BTreeMap<String, ServerReport>) -> Vec<String> {
    let open = |path: &PathBuf| JournalHandle::open(path, HistoryLimits::STANDARD, now_ms()).unwrap().0;
    let journals: Vec<_> = journals.iter().map(open).collect();
    let mut wrong = Vec::new();
    for (name, server) in servers {
        let identity = Identity::parse(name).unwrap();
        let of = |(instance, journal): (usize, &JournalHandle)| {
            journal.history(&identity).into_iter().map(move |attempt| (instance, attempt))
        };
        let mut attempts: Vec<_> = journals.iter().enumerate().flat_map(of).collect();
        // Those of one instance stay in their order, whatever its clock did.
        attempts.sort_by_key(|(_, attempt)| attempt.began_ms);
        let account = account_of_several(attempts.iter().map(|(instance, attempt)| (*instance, attempt)));
        if let Some(complaint) = complaint(&server.record, &account) {
            wrong.push(format!("{name}: {complaint}\n{}", told(&server.record, &attempts)));
        }
    }
    wrong
}

/// What was done to a host by itself, and by the record, a line each.
fn told(record: &ServerRecord, attempts: &[(usize, AttemptRecord)]) -> String {
    let done =
        record.configured.iter().map(|one| format!("  configured at {}, sent at {}", one.at_ms, one.sent_ms));
    let noted = attempts.iter().map(|(instance, one)| {
        let steps = one.steps.iter().map(|step| {
            let error = step.error.as_deref().unwrap_or("well");
            format!("{} at {} ({} tries, {error})", step.step, step.began_ms, step.tries)
        });
        format!(
            "  attempt {} (cycle {} of instance {instance}) {}: {}",
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
fn what_one_instance_noted_before_it_died_another_cannot_know() {
    let steps: [(&str, u32, Option<&str>); 2] = [("configure", 1, None), ("restart", 1, None)];
    let (died, good) = (attempt("lost", &steps), attempt("provisioned", &steps));
    let again = |attempts: &[(usize, &AttemptRecord)]| account_of_several(attempts.iter().copied()).again;
    assert_eq!(again(&[(0, &died), (1, &good)]), 0);
    assert_eq!(again(&[(0, &died), (0, &good)]), 1);
    assert_eq!(again(&[(0, &good), (1, &good)]), 1);
    let unheard = attempt("failed", &[("configure", 5, Some("no reply"))]);
    assert_eq!(again(&[(0, &good), (1, &unheard)]), 0, "it was dead meanwhile, and nobody heard it");
    assert_eq!(again(&[(0, &good), (0, &unheard)]), 1, "its own notes it knows");
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
