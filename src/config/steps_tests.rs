use std::path::Path;

use super::*;
use crate::config::yaml::Value as Yaml;

const PROVIDERS: &str = "providers: {dns: {source: exec:/bin/dns}, ca: {source: exec:/bin/ca}}\n";

fn read(text: &str) -> (StepsConfig, Faults) {
    let file = Path::new("/etc/q/p.yaml");
    let mut faults = Faults::default();
    let text = format!("{PROVIDERS}{text}");
    let Some(Yaml::Map(entries)) = yaml::parse(&text).unwrap().root.map(|root| root.value) else { panic!() };
    let raw = RawConfig::from_map(file, entries, &mut faults);
    let providers = super::super::providers::check(file, &raw, &mut faults);
    let steps = check(&raw, &providers, &mut faults);
    (steps, faults)
}

#[test]
fn everything_that_can_be_said_of_a_step() {
    let text = r#"
steps:
  before:
    - name: record
      provider: dns
      action: record_create
      attrs: { zone: example.net, name: "${server.identity}", ttl: 300, tags: [a, "${server.facts.os}"] }
      when: "${helper.configuration.dns == \"yes\"}"
      timeout: 30s
      tries: 3
      on_failure: ignore
  after:
    - { name: cert, provider: ca, action: sign }
"#;
    let (steps, faults) = read(text);
    assert!(faults.list().is_empty(), "{:?}", faults.list());
    let [record] = steps.before.as_slice() else { panic!("{steps:?}") };
    assert_eq!((record.path.as_str(), record.name.as_str()), ("steps.before[0]", "record"));
    assert_eq!(
        Value::Object(record.attrs.clone()).to_json(),
        r#"{"name":"${server.identity}","tags":["a","${server.facts.os}"],"ttl":300,"zone":"example.net"}"#
    );
    assert_eq!(record.when.as_ref().and_then(Value::as_str), Some("${helper.configuration.dns == \"yes\"}"));
    assert_eq!(
        (record.timeout, record.tries, record.ignore_failure),
        (Some(Duration::from_secs(30)), 3, true)
    );
    let [cert] = steps.after.as_slice() else { panic!("{steps:?}") };
    assert_eq!((cert.attrs.len(), &cert.when, cert.timeout, cert.tries), (0, &None, None, 1));
    assert!(!cert.ignore_failure && steps.all().count() == 2);
}

#[test]
fn what_cannot_be_is_told_with_its_key() {
    let step = |more: &str| format!("steps: {{before: [{{name: a, provider: dns, action: x{more}}}]}}\n");
    let cases = [
        (step(", tries: 0"), "steps.before[0].tries", "between 1 and 100"),
        (step(", timeout: 0s"), "steps.before[0].timeout", "at most a day"),
        (step(", on_failure: undo"), "steps.before[0].on_failure", "fail or ignore"),
        (step(", attrs: [1]"), "steps.before[0].attrs", "a map"),
        (step(", atrs: {}"), "steps.before[0].atrs", "steps.before[0].attrs"),
        ("steps: {after: [{provider: dns, action: x}]}\n".to_owned(), "steps.after[0]", "no name"),
        ("steps: {after: [{name: a, provider: dsn, action: x}]}\n".to_owned(), "steps.after[0].provider", "known: dns, ca"),
        (
            "steps: {before: [{name: a, provider: dns, action: x}], after: [{name: a, provider: dns, action: x}]}\n".to_owned(),
            "steps.after[0].name",
            "already",
        ),
        ("steps: {before: {name: a}}\n".to_owned(), "steps.before", "a list"),
        ("steps: {before: [3]}\n".to_owned(), "steps.before[0]", "a map"),
    ];
    for (text, key, words) in cases {
        let (_, faults) = read(&text);
        let found = faults.list().iter().find(|fault| fault.key.as_deref() == Some(key));
        let Some(fault) = found else { panic!("{text}: {:?}", faults.list()) };
        let all = format!("{} | {}", fault.what, fault.help.clone().unwrap_or_default());
        assert!(all.contains(words), "{all}");
    }
}
