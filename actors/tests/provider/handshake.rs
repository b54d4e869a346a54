//! Describe and configure: what is accepted, what ends a process before its first call.

use std::time::Duration;

use quartermaster_actors::provider::Outcome;

use super::support::{Bench, limited, provider, shown};

/// One start, no second chance.
fn once(text: &str) -> Option<Bench> {
    let site = provider(text)?.with(|settings| settings.restart.limit = 1);
    Some(site.run())
}

#[track_caller]
fn check_error(error: &quartermaster_actors::provider::CallError, code: &str, parts: &[&str]) {
    assert_eq!((error.code().as_str(), error.outcome), (code, Outcome::NotSent), "{error}");
    for part in parts {
        assert!(error.message().contains(part), "{part}: {}", error.message());
    }
}

/// A schema, and the code and part of the message it is refused with.
async fn check_schema(schema: &str, code: &str, part: &str) {
    let Some(bench) = once(&format!("serve({schema}, None)")) else { return };
    let error = limited(bench.handle.start()).await.unwrap_err();
    check_error(&error, code, &[part, "provider `dns`"]);
}

#[actix::test]
async fn b2_carriage_returns_blank_lines_and_a_byte_order_mark_are_tolerated() {
    let text = r#"
import builtins
raw("\ufeff")
plain_send = send
def send(frame): raw("\r\n\n   \n" + json.dumps(frame) + "\r\n\r\n")
import kit
kit.send = send
serve(LOOSE, lambda id, params: send({"id": id, "result": {"outputs": {"y": params["attrs"]["x"]}}}))
"#;
    let Some(bench) = once(text) else { return };
    assert_eq!(super::support::json(&bench.act("[1]").await.unwrap().outputs), r#"{"y":[1]}"#);
    bench.close().await;
}

#[actix::test]
async fn b3_a_provider_that_does_not_describe_itself_is_killed_and_the_error_names_the_limit() {
    let Some(site) = provider("note('pid', str(os.getpid()))\ntime.sleep(600)") else { return };
    let bench = site
        .with(|settings| {
            settings.timeouts.describe = Duration::from_secs(1);
            settings.restart.limit = 1;
        })
        .run();
    let error = limited(bench.handle.start()).await.unwrap_err();
    check_error(&error, "host.timeout", &["within 1s"]);
    // On a busy machine it may have been killed before it wrote its number.
    let pid = bench.file("pid");
    super::support::eventually("it is gone", || pid.is_empty() || !super::support::there(&pid)).await;
}

#[actix::test]
async fn b4_a_schema_that_cannot_be_used_is_refused_and_the_place_is_named() {
    let with = |attr: &str| format!(r#"dict(LOOSE, actions={{"a": {{"attrs": {{"ttl": {attr}}}}}}})"#);
    check_schema(&with(r#"{"type": "list(strnig)"}"#), "host.bad_schema", "actions.a.attrs.ttl").await;
    check_schema(&with(r#"{"type": "number", "default": "many"}"#), "host.bad_schema", "ttl").await;
    check_schema(r#"dict(LOOSE, protocol="2")"#, "host.unsupported_protocol", "\"1\"").await;
    check_schema(r#"dict(LOOSE, name="")"#, "host.bad_schema", "name").await;
    check_schema(
        r#"dict(LOOSE, x_extensions={"require": ["teleport"]})"#,
        "host.unsupported_protocol",
        "teleport",
    )
    .await;
}

#[actix::test]
async fn b4_defaults_in_either_encoding_and_a_bare_schema_without_config_are_accepted() {
    let text = r#"
schema = {"name": "bare", "protocol": "1", "actions": {"do": {"attrs": {
    "once": {"type": "number", "default": 300}, "twice": {"type": "number", "default": "300"},
    "list": {"type": "list(string)", "default": "[\"a\"]"}, "text": {"type": "string", "default": "\"GET\""}}}}}
for frame in frames():
    if frame["method"] == "describe": ok(frame["id"], schema)
    elif frame["method"] == "execute": ok(frame["id"], {"outputs": frame["params"]["attrs"]})
    else: send({"id": frame["id"]})
"#;
    let Some(bench) = once(text) else { return };
    let outputs = limited(bench.handle.execute("do", super::support::members("{}"))).await.unwrap().outputs;
    assert_eq!(super::support::json(&outputs), r#"{"list":["a"],"once":300,"text":"GET","twice":300}"#);
    assert!(
        bench.received()[1].ends_with(r#""method":"configure","params":{"config":{}}}"#),
        "sent also when empty"
    );
    bench.close().await;
}

#[actix::test]
async fn configure_is_refused_in_the_providers_own_words() {
    let text = r#"
def configured(id, params): fail(id, "invalid_config", "no such endpoint", detail="tried 3 times")
serve(SCHEMA, None, configured=configured)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.config(r#"{"endpoint":"x"}"#).run();
    let error = limited(bench.handle.start()).await.unwrap_err();
    assert_eq!(shown(&error), "invalid_config NotSent: provider `dns`, configure: no such endpoint");
    assert_eq!(error.error.detail.as_deref(), Some("tried 3 times"));
}

#[actix::test]
async fn a_configuration_that_is_not_as_declared_is_never_sent() {
    let Some(site) = provider("serve(SCHEMA, None)") else { return };
    let bench = site.config(r#"{"retries":"many","colour":1}"#).run();
    let error = limited(bench.handle.start()).await.unwrap_err();
    check_error(
        &error,
        "invalid_config",
        &["`endpoint`: required", "`retries`", "`colour`: no such attribute"],
    );
    assert_eq!(bench.received().len(), 1, "only describe");
}

#[actix::test]
async fn b12_a_crash_in_any_phase_of_the_handshake_is_told_with_its_last_words() {
    for (text, part) in [
        (
            "sys.stderr.write('no licence\\n'); sys.exit(3)",
            "exited with status 3 before it had described itself",
        ),
        (
            "sys.stdin.readline(); sys.stderr.write('no licence\\n'); os.kill(os.getpid(), 9)",
            "was killed by signal 9",
        ),
        (
            "def gone(id, params): sys.stderr.write('no licence\\n'); sys.stderr.flush(); os._exit(4)\nserve(LOOSE, None, configured=gone)",
            "exited with status 4 before it was configured",
        ),
    ] {
        let Some(bench) = once(text) else { return };
        let error = limited(bench.handle.start()).await.unwrap_err();
        check_error(&error, "host.exited", &[part, "given up after 1 crashes"]);
        assert_eq!(error.stderr, ["no licence"], "{part}");
    }
}

#[actix::test]
async fn extensions_are_confirmed_to_a_provider_that_declares_some_and_to_nobody_else() {
    let text = "serve(declaring(max_in_flight=8, cancel=True, telepathy=True), lambda id, params: ok(id))";
    let Some(bench) = once(text) else { return };
    limited(bench.handle.start()).await.unwrap();
    bench.close().await;
    let hello = &bench.received()[1];
    assert!(hello.contains(r#""x_host":{"name":"quartermaster""#), "{hello}");
    assert!(
        hello.contains(
            r#""extensions":["cancel","max_in_flight"],"max_in_flight":8,"max_frame_bytes":16777216"#
        ),
        "{hello}"
    );
}
