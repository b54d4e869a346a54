//! Steps against what a program declares.

use std::path::Path;

use super::super::load_and_examine;
use crate::config::{Faults, Severity};

const SCHEMA: &str = r#"{"name":"dns","version":"1","protocol":"1",
"config":{"endpoint":{"type":"string","required":true}},
"actions":{
 "record_create":{"attrs":{"zone":{"type":"string","required":true},"name":{"type":"string","required":true},
   "ttl":{"type":"number","default":300},"kind":{"type":"string","x_enum":["A","AAAA"]},"old":{"type":"string","x_deprecated":"use name"},
   "labels":{"type":"map(string)"}},
  "outputs":{"type":"object({id=string,addresses=list(string)})"}},
 "mute":{"attrs":{}}}}"#;

/// What is told of these steps, as `key: what`.
fn told(config: &str, steps: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("dns");
    write(&program, &format!("#!/bin/sh\n[ \"$1\" = schema ] || exit 9\ncat <<'X'\n{SCHEMA}\nX\n"));
    let helper = folder.path().join("helper");
    write(&helper, "#!/bin/sh\n");
    let yaml = folder.path().join("p.yaml");
    let text = format!(
        "helper: {}\nchoria_insecure: true\nproviders:\n  dns: {{source: exec:dns, config: {config}}}\nsteps:\n{steps}",
        helper.display()
    );
    std::fs::write(&yaml, text).unwrap();
    let cfg = folder.path().join("choria.cfg");
    std::fs::write(&cfg, "identity = prov.example.net\nplugin.choria.middleware_hosts = 127.0.0.1:4222\n")
        .unwrap();
    let (_, faults) = load_and_examine(&yaml, Some(&cfg), &crate::machine::surroundings());
    about(&faults)
}

fn write(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn about(faults: &Faults) -> Vec<String> {
    let ours = |key: &str| key.starts_with("steps") || key.starts_with("providers");
    let each = faults.list().iter().filter(|fault| fault.key.as_deref().is_some_and(ours));
    each.map(|fault| {
        let sign = if fault.severity == Severity::Error { "" } else { "warning " };
        format!("{sign}{}: {}", fault.key.as_deref().unwrap_or_default(), fault.what)
    })
    .collect()
}

fn step(attrs: &str) -> String {
    format!("  before:\n    - {{name: a, provider: dns, action: record_create, attrs: {{{attrs}}}}}\n")
}

const GOOD: &str = r#"{endpoint: "https://x"}"#;

#[test]
fn good_steps_are_not_told_of() {
    let steps = r#"  before:
    - {name: a, provider: dns, action: record_create, attrs: {zone: z, name: "${server.identity}", ttl: "${server.facts.ttl}", kind: A}}
    - {name: b, provider: dns, action: record_create, when: "${helper.configuration.dns == \"yes\"}", attrs: {zone: "${steps.a.addresses[0]}", name: "x-${steps.a.id}", labels: {host: "${server.identity}"}}}
  after:
    - {name: c, provider: dns, action: mute, attrs: {}}
"#;
    assert_eq!(told(GOOD, steps), Vec::<String>::new());
}

#[test]
fn whatever_cannot_fit_is_told_with_its_key() {
    let cases = [
        (step("zone: z"), "steps.before[0]: action \"record_create\" needs the attribute `name`, string"),
        (
            step("zone: z, name: n, tll: 3"),
            "steps.before[0].attrs.tll: action \"record_create\" has no such attribute",
        ),
        (
            step("zone: z, name: n, ttl: many"),
            "steps.before[0].attrs.ttl: number needed, and this string is none",
        ),
        (step("zone: z, name: n, kind: MX"), "steps.before[0].attrs.kind: it is none of the values allowed"),
        (
            step("zone: z, name: n, old: x"),
            "warning steps.before[0].attrs.old: it should no longer be used: use name",
        ),
        (
            step(r#"zone: z, name: "${server.name}""#),
            "steps.before[0].attrs.name: `server.name`: there is no `name`; known: facts, identity, inventory, version",
        ),
        (
            step(r#"zone: z, name: "${steps.b.id}""#),
            "steps.before[0].attrs.name: `steps.b.id`: no step of this name comes before; known: there is none",
        ),
        (
            step(r#"zone: z, name: n, ttl: "${helper.defer}""#),
            "steps.before[0].attrs.ttl: a number needed, a bool found",
        ),
        (
            step(r#"zone: z, name: n, labels: {a: "${helper.configuration}"}"#),
            "steps.before[0].attrs.labels.a: a string needed, a map found",
        ),
        (
            step(r#"zone: z, name: "${upper(server.identity)}""#),
            "steps.before[0].attrs.name: the function `upper` is not supported",
        ),
        (
            "  before:\n    - {name: a, provider: dns, action: record_sign}\n".to_owned(),
            "steps.before[0].action: provider \"dns\" has no action \"record_sign\"",
        ),
        (
            "  before:\n    - {name: a, provider: dns, action: mute, when: maybe}\n".to_owned(),
            "steps.before[0].when: true, false or an expression in `${…}` needed",
        ),
    ];
    for (steps, expected) in cases {
        assert_eq!(told(GOOD, &steps), [expected], "{steps}");
    }
}

#[test]
fn what_a_provider_is_configured_with_is_checked_too_and_nothing_is_started() {
    let found = told("{}", &step("zone: z, name: n"));
    assert_eq!(found, ["providers.dns.source: config.endpoint: required, string needed"]);
    let found = told("{endpoint: x, retries: 3}", &step("zone: z, name: n"));
    assert!(
        found[0].starts_with("providers.dns.config.retries: config.retries: no such attribute"),
        "{found:?}"
    );
}
