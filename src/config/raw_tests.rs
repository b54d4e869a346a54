use super::*;
use crate::config::fault::Severity;
use crate::config::yaml;

fn read(text: &str) -> (RawConfig, Faults) {
    let file = Path::new("p.yaml");
    let mut faults = Faults::default();
    faults.add_text(file, text);
    let Some(Node { value: Value::Map(entries), .. }) = yaml::parse(text).unwrap().root else {
        panic!("no map: {text}")
    };
    let raw = RawConfig::from_map(file, entries, &mut faults);
    (raw, faults)
}

/// Expects exactly one fault: its severity, line, key, and words of its text and help.
fn fault(text: &str, severity: Severity, line: usize, key: &str, words: &[&str]) {
    let (_, faults) = read(text);
    let [fault] = faults.list() else { panic!("{text}: {:?}", faults.list()) };
    assert_eq!(
        (fault.severity, fault.place.map(|p| p.line), fault.key.as_deref()),
        (severity, Some(line), Some(key)),
        "{fault:?}"
    );
    let all = format!("{} | {}", fault.what, fault.help.clone().unwrap_or_default());
    for word in words {
        assert!(all.contains(word), "{all} does not say {word}");
    }
}

fn clean(text: &str) -> RawConfig {
    let (raw, faults) = read(text);
    assert!(faults.list().is_empty(), "{text}: {:?}", faults.list());
    raw
}

use Severity::{Error, Warning};

#[rustfmt::skip]
mod wrong_types {
    use super::*;
    #[test] fn a_number_for_the_interval_needs_a_unit() { fault("site: x\ninterval: 60\n", Error, 2, "interval", &["text", "(60)", "60s"]) }
    #[test] fn quoted_workers_lose_their_quotes() { fault("workers: \"8\"\n", Error, 1, "workers", &["whole number", "\"8\"", "remove the quotes"]) }
    #[test] fn a_half_worker() { fault("workers: 8.5\n", Error, 1, "workers", &["whole number", "8.5"]) }
    #[test] fn a_quoted_boolean() { fault("features:\n  pki: \"yes\"\n", Error, 2, "features.pki", &["true or false", "remove the quotes"]) }
    #[test] fn a_boolean_for_text() { fault("site: no\n", Error, 1, "site", &["text", "false", "quotes"]) }
    #[test] fn text_for_a_map() { fault("features: pki\n", Error, 1, "features", &["map"]) }
    #[test] fn text_for_a_list() { fault("cert_deny_list: x\n", Error, 1, "cert_deny_list", &["list"]) }
    #[test] fn a_number_in_a_list() { fault("cert_deny_list:\n - a\n - 7\n", Error, 3, "cert_deny_list[1]", &["text", "7"]) }
    #[test] fn a_list_for_text() { fault("helper: [a, b]\n", Error, 1, "helper", &["text", "list"]) }
    #[test] fn a_map_for_a_number() { fault("workers: {a: 1}\n", Error, 1, "workers", &["whole number", "map"]) }
}

#[rustfmt::skip]
mod unknown_keys {
    use super::*;
    #[test] fn a_missing_underscore() { fault("cert_denylist: [x]\n", Warning, 1, "cert_denylist", &["no such key", "`cert_deny_list`"]) }
    #[test] fn nested() { fault("features:\n  pkii: true\n", Warning, 2, "features.pkii", &["`features.pki`"]) }
    #[test] fn misplaced_at_the_top() { fault("pki: true\n", Warning, 1, "pki", &["`features.pki`"]) }
    #[test] fn misplaced_in_a_section() { fault("features:\n  workers: 3\n", Warning, 2, "features.workers", &["`workers`"]) }
    #[test] fn dotted() { fault("features.jwt: true\n", Warning, 1, "features.jwt", &["`features.jwt`"]) }
    #[test] fn dashes() { fault("broker-provisioning-password: x\n", Warning, 1, "broker-provisioning-password", &["`broker_provisioning_password`"]) }
    #[test] fn a_swapped_letter() { fault("tokne: x\n", Warning, 1, "tokne", &["`token`"]) }
    #[test] fn far_from_everything() { fault("management: {}\n", Warning, 1, "management", &["--print-default"]) }
    #[test] fn strict_refuses() { fault("strict: true\nworkerz: 1\n", Error, 2, "workerz", &["`workers`"]) }
}

#[rustfmt::skip]
mod spelling {
    use super::*;
    #[test] fn another_case_is_accepted_with_a_warning() {
        fault("Workers: 3\n", Warning, 1, "workers", &["`Workers`", "`workers`"]);
        assert_eq!(read("Workers: 3\n").0.workers, Some(3));
    }
    #[test] fn a_doubled_key_warns_and_the_later_wins() {
        fault("workers: 1\nsite: x\nworkers: 2\n", Warning, 3, "workers", &["more than once", "line 1"]);
        assert_eq!(read("workers: 1\nworkers: 2\n").0.workers, Some(2));
    }
    #[test] fn of_two_spellings_the_lower_case_wins_as_in_the_peer() { assert_eq!(read("workers: 1\nWorkers: 2\n").0.workers, Some(1)) }
    #[test] fn null_unsets_its_own_spelling_only() {
        assert_eq!(read("workers: 3\nworkers: null\n").0.workers, None);
        assert_eq!(read("workers: null\nWorkers: 3\n").0.workers, Some(3));
    }
    #[test] fn strict_refuses_a_doubled_key() { fault("strict: true\nworkers: 1\nworkers: 2\n", Error, 3, "workers", &["more than once"]) }
}

#[test]
fn null_leaves_the_default() {
    let raw =
        clean("workers: null\ninterval: ~\nfeatures:\nretry: ~\ncert_deny_list:\nchoria_insecure: null\n");
    assert_eq!(
        (raw.workers, raw.interval, raw.cert_deny_list, raw.choria_insecure),
        (None, None, None, None)
    );
}

#[test]
fn what_the_peer_reads_is_read_alike() {
    let raw = clean(
        "workers: 8.0\nfeatures: {pki: yes, jwt: on}\nmonitor_port: 0x1F90\ncert_deny_list: [a, ~]\nbroker_port: 1\n",
    );
    assert_eq!((raw.workers, raw.monitor_port), (Some(8), Some(8080)));
    assert_eq!((raw.features.pki, raw.features.jwt), (Some(true), Some(true)));
    assert_eq!(raw.cert_deny_list, Some(vec!["a".to_owned(), String::new()]));
}

#[test]
fn a_secret_of_the_wrong_type_is_not_shown() {
    let (_, faults) = read("token: 123456\nx: {token: 1}\n");
    assert!(faults.list().iter().all(|fault| !fault.what.contains("123456")), "{:?}", faults.list());
    assert!(!faults.text(Path::new("p.yaml")).unwrap().contains("123456"));
}

#[test]
fn every_fault_is_reported_at_once() {
    let (_, faults) = read("workers: \"8\"\ninterval: 60\ncert_denylist: []\nfeatures: {pkii: true}\n");
    assert_eq!(faults.list().len(), 4, "{:?}", faults.list());
}

#[test]
fn the_table_of_keys_is_the_structure() {
    // Every key of the table, given a list of lists, is a wrong type; a key that nothing takes would be unknown instead.
    for (section, keys) in KEYS {
        for key in *keys {
            let text = if section.is_empty() {
                format!("{key}: [[]]\n")
            } else {
                format!("{section}: {{{key}: [[]]}}\n")
            };
            let (_, faults) = read(&text);
            assert!(
                faults.list().iter().all(|fault| fault.what.starts_with("it must be")),
                "{text}: {:?}",
                faults.list()
            );
        }
    }
}
