//! What people ask of the roster, one test a promise.

use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;
use zeroize::Zeroizing;

use super::retry::RetryPolicy;
use super::roster::Roster;
use super::terms::{RosterSettings, Sighting, Verdict};
use super::view::{Forgot, HostQuery};
use crate::host::{Ending, Material, Resume};

const MINUTE: Duration = Duration::from_mins(1);

fn id(name: &str) -> Identity {
    Identity::parse(name).unwrap()
}

/// A roster in which these hosts wait, and its clock.
fn waiting(hosts: &[&str]) -> (Roster, Instant) {
    let retry = RetryPolicy::new(MINUTE, 15 * MINUTE, Some(MINUTE)).unwrap();
    let mut roster = Roster::new(RosterSettings {
        queue: 10,
        in_flight: 1,
        silent: 3,
        interval: MINUTE,
        hold: MINUTE,
        busy: 2 * MINUTE,
        retry,
    });
    let start = Instant::now();
    for host in hosts {
        roster.notice(&id(host), Sighting::Answered, start, 0.5);
    }
    (roster, start)
}

/// What a cycle that may have configured its host leaves undone.
fn configure() -> Resume {
    Resume::Configure(Material::new(Zeroizing::new("{}".to_owned())))
}

fn failed() -> Ending {
    Ending::Failed { cause: "helper", error: "it failed".into() }
}

#[track_caller]
fn check_page(query: &HostQuery, expected: &[&str], expected_total: usize) {
    let (mut roster, start) = waiting(&["web2", "db1", "web1", "web3"]);
    let cycle = roster.admit(start).unwrap().cycle;
    roster.finish(cycle, failed(), start, 0.5);
    let (names, total) = roster.page(query);
    let names: Vec<_> = names.iter().map(Identity::as_str).collect();
    assert_eq!((names.as_slice(), total), (expected, expected_total));
}

#[test]
fn a_page_is_ordered_by_name() {
    check_page(&HostQuery { most: 10, ..HostQuery::default() }, &["db1", "web1", "web2", "web3"], 4);
}

#[test]
fn a_page_holds_no_more_than_was_asked_for() {
    check_page(&HostQuery { most: 2, ..HostQuery::default() }, &["db1", "web1"], 4);
}

#[test]
fn the_next_page_begins_after_the_last_host() {
    let query = HostQuery { most: 2, after: Some(id("web1")), ..HostQuery::default() };
    check_page(&query, &["web2", "web3"], 4);
}

#[test]
fn a_page_of_one_state_holds_no_other() {
    let query = HostQuery { most: 9, state: Some("cooling".into()), ..HostQuery::default() };
    check_page(&query, &["web2"], 1);
}

#[test]
fn a_page_by_name_holds_what_has_the_text() {
    check_page(&HostQuery { most: 9, text: Some("b1".into()), ..HostQuery::default() }, &["db1", "web1"], 2);
}

#[test]
fn an_operators_retry_puts_a_cooling_host_and_one_given_up_into_the_queue() {
    for ended_at in [Duration::ZERO, 2 * MINUTE] {
        let (mut roster, start) = waiting(&["a"]);
        let cycle = roster.admit(start).unwrap().cycle;
        roster.finish(cycle, failed(), start, 0.5);
        if !ended_at.is_zero() {
            assert!(roster.retry(&id("a"), start));
            let cycle = roster.admit(start).unwrap().cycle;
            roster.finish(cycle, failed(), start + ended_at, 0.5);
        }
        assert!(roster.retry(&id("a"), start + ended_at));
        let admission = roster.admit(start + ended_at).unwrap();
        assert_eq!((admission.identity, admission.attempt), (id("a"), 1));
        assert_eq!(roster.next_due(), None);
    }
}

#[test]
fn a_retry_of_a_stranger_says_so() {
    let (mut roster, start) = waiting(&[]);
    assert!(!roster.retry(&id("a"), start));
}

#[test]
fn a_forgotten_host_is_gone_and_its_cycle_is_nobodys() {
    let (mut roster, start) = waiting(&["a"]);
    let cycle = roster.admit(start).unwrap().cycle;
    assert_eq!(roster.forget(&id("a")), (Forgot::Forgotten, Some(cycle)));
    assert!(!roster.commit(cycle, configure()));
    assert_eq!(roster.finish(cycle, failed(), start, 0.5), Verdict::Unknown);
    assert_eq!(roster.counts().in_flight, 0);
    assert_eq!(roster.forget(&id("a")), (Forgot::Unknown, None));
}

#[test]
fn a_host_between_configure_and_restart_is_not_forgotten() {
    let (mut roster, start) = waiting(&["a"]);
    let cycle = roster.admit(start).unwrap().cycle;
    roster.commit(cycle, configure());
    assert_eq!(roster.forget(&id("a")), (Forgot::Committed, None));
    assert_eq!(roster.finish(cycle, Ending::Provisioned, start, 0.5), Verdict::Held { took: Duration::ZERO });
}
