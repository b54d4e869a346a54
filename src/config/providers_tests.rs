use super::*;
use crate::config::fault::Severity;
use crate::config::yaml::Value;

const BASE: &str = "providers:\n  dns:\n    source: exec:./bin/dns\n";

fn read(text: &str) -> (Vec<ProviderConfig>, Faults, RawConfig) {
    let file = Path::new("/etc/q/p.yaml");
    let mut faults = Faults::default();
    faults.add_text(file, text);
    let Some(Value::Map(entries)) = yaml::parse(text).unwrap().root.map(|root| root.value) else { panic!() };
    let raw = RawConfig::from_map(file, entries, &mut faults);
    let providers = check(file, &raw, &mut faults);
    (providers, faults, raw)
}

fn fault(text: &str, key: &str, words: &str) {
    let (_, faults, _) = read(text);
    let found = faults.list().iter().find(|fault| fault.key.as_deref() == Some(key));
    let Some(fault) = found else { panic!("{text}: {:?}", faults.list()) };
    let all = format!("{} | {}", fault.what, fault.help.clone().unwrap_or_default());
    assert!(all.contains(words), "{all}");
}

#[test]
fn everything_that_can_be_said_of_a_provider() {
    let text = r#"
providers:
  dns:
    source: "exec:./bin/provider-dns"
    sha256: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    pin: copy
    config: { endpoint: "https://dns.example.test", retries: 3, deep: { list: [1, yes, ~, "x"] } }
    timeouts: { schema: 1s, describe: 5s, configure: 30s, execute: 0, write: 3s, shutdown: 5s, cancel: 7s }
    max_in_flight: 4
    instances: 2
    cwd: "."
    env: { mode: inherit, pass: [AWS_PROFILE, SITE_*], set: { TZ: UTC, N: 3 } }
    restart: { min: 500ms, max: 30s, limit: 5, window: 10m }
    compat: { undo: never, any_encoding: cty, stray_stdout: log, ping: probe, schema_probe: describe }
    wrapper: [/usr/bin/bwrap, --ro-bind]
    strict_outputs: true
    start: eager
    idle_stop: 5m
    install_hint: apt install provider-dns
    max_frame_bytes: 65536
    confine: { no_new_privileges: true, uid: 990, gid: 991, open_files: 64, memory: 512M, processes: 9 }
  ca:
    source: exec:/usr/lib/providers/ca
  files:
    source: builtin/file
    config: { root: /srv }
"#;
    let (providers, faults, _) = read(text);
    assert!(faults.list().is_empty(), "{:?}", faults.list());
    let [dns, ca, files] = providers.as_slice() else { panic!("{providers:?}") };
    assert_eq!(dns.program, Path::new("/etc/q/./bin/provider-dns"), "relative to the file");
    assert_eq!(ca.program, Path::new("/usr/lib/providers/ca"));
    assert_eq!((files.builtin.as_deref(), dns.builtin.as_ref()), (Some("file"), None));
    assert!(ca.confine.is_empty());
    assert_eq!(
        dns.confine,
        ProviderConfine {
            no_new_privileges: true,
            uid: Some(990),
            gid: Some(991),
            open_files: Some(64),
            memory: Some(512 << 20),
            processes: Some(9),
        }
    );
    assert_eq!(dns.sha256.unwrap()[31], 0x1f);
    assert_eq!(
        quartermaster_proto::provider::Value::Object(dns.config.clone()).to_json(),
        r#"{"deep":{"list":[1,true,null,"x"]},"endpoint":"https://dns.example.test","retries":3}"#
    );
    assert_eq!(dns.timeouts.execute, Some(Duration::ZERO), "none");
    assert_eq!(
        (dns.timeouts.write, dns.timeouts.cancel),
        (Some(Duration::from_secs(3)), Some(Duration::from_secs(7)))
    );
    assert_eq!((dns.max_in_flight.map(NonZeroUsize::get), dns.instances.get()), (Some(4), 2));
    assert_eq!(dns.env.set, [("TZ".to_owned(), "UTC".to_owned()), ("N".to_owned(), "3".to_owned())]);
    assert!(dns.env.inherit && dns.pin_copy && dns.strict_outputs && dns.eager);
    assert_eq!(dns.restart.limit, Some(5));
    let all = ProviderCompat {
        no_undo: true,
        any_cty: true,
        log_stray_stdout: true,
        ping_probe: true,
        probe_by_describe: true,
    };
    assert_eq!(dns.compat, all);
    assert_eq!(
        (&ca.compat, &ca.env, ca.instances.get()),
        (&ProviderCompat::default(), &ProviderEnv::default(), 1)
    );
}

#[test]
fn what_cannot_be_is_told_with_its_key() {
    let cases = [
        ("", "providers", "a map", "providers: [x]\n"),
        ("    sha256: abc\n", "providers.dns.sha256", "64 hexadecimal digits", BASE),
        ("    instances: 0\n", "providers.dns.instances", "between 1 and", BASE),
        ("    timeouts: {describe: 0s}\n", "providers.dns.timeouts.describe", "more than nothing", BASE),
        ("    timeouts: {decribe: 1s}\n", "providers.dns.timeouts.decribe", "timeouts.describe", BASE),
        ("    sourc: x\n", "providers.dns.sourc", "providers.dns.source", BASE),
        ("    pin: maybe\n", "providers.dns.pin", "check or copy", BASE),
        ("    env: {pass: [CREDENTIALS_*]}\n", "providers.dns.env.pass[0]", "never reaches", BASE),
        ("    config: 3\n", "providers.dns.config", "a map", BASE),
        ("", "providers.a b", "no name", "providers: {a b: {source: exec:x}}\n"),
        ("", "providers.a.source", "no builtin provider", "providers: {a: {source: builtin/x}}\n"),
        ("", "providers.a.source", "names no program", "providers: {a: {source: file}}\n"),
        ("", "providers.a.wrapper", "no program", "providers: {a: {source: builtin/file, wrapper: [x]}}\n"),
        (
            "",
            "providers.a.confine",
            "no program",
            "providers: {a: {source: builtin/file, confine: {uid: 1}}}\n",
        ),
        ("    confine: {memory: 1}\n", "providers.dns.confine.memory", "512M", BASE),
        ("    confine: {uid: 4294967295}\n", "providers.dns.confine.uid", "between 0 and", BASE),
        ("    confine: {umask: 1}\n", "providers.dns.confine.umask", "no such key", BASE),
        ("", "providers.a", "no source", "providers: {a: {instances: 1}}\n"),
        ("", "providers.a", "twice", "providers: {a: {source: exec:x}, a: {source: exec:y}}\n"),
    ];
    for (more, key, words, base) in cases {
        fault(&format!("{base}{more}"), key, words);
    }
}

#[test]
fn what_a_provider_is_configured_with_is_shown_nowhere() {
    let text = format!("{BASE}    config: {{ endpoint: hunter2, list: [s3cret, 4711] }}\n    pin: maybe\n");
    let (providers, faults, _) = read(&text);
    let shown = faults.text(Path::new("/etc/q/p.yaml")).unwrap();
    for secret in ["hunter2", "s3cret", "4711"] {
        assert!(!shown.contains(secret) && !format!("{providers:?}").contains(secret), "{shown}");
    }
    assert!(faults.errors().any(|fault| fault.severity == Severity::Error));
}

#[test]
fn where_programs_may_lie_and_which() {
    let digest = "ff".repeat(32);
    let (_, mut faults, raw) = read(&format!("providers_dir: providers\nproviders_allow: ['{digest}', x]\n"));
    assert_eq!(folder(Path::new("/etc/q/p.yaml"), &raw).unwrap(), Path::new("/etc/q/providers"));
    assert_eq!(allowed(&raw, &mut faults), Some(vec![[0xff; 32]]));
    assert_eq!(faults.list()[0].key.as_deref(), Some("providers_allow[1]"));
}
