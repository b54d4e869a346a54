//! What a provider may see of us, and what nobody may see of what it was given.

use std::ffi::OsString;

use quartermaster_actors::provider::{Action, Ask, Call, EnvironmentRules, Inherit, environment};
use quartermaster_proto::provider::CallContext;

use super::support::{json, limited, members, provider};

#[actix::test]
async fn b21_only_the_listed_names_arrive_and_our_own_secrets_never() {
    let ours = [
        "PATH",
        "HOME",
        "LANG",
        "SSL_CERT_FILE",
        "https_proxy",
        "AWS_PROFILE",
        "AWS_SECRET_ACCESS_KEY",
        "NATS_PASSWORD",
        "QUARTERMASTER_TOKEN",
        "CREDENTIALS_DIRECTORY",
        "NOTIFY_SOCKET",
        "BROKER_PW",
    ];
    let names = |inherit, pass: &[&str]| {
        let rules = EnvironmentRules {
            inherit,
            pass: pass.iter().map(ToString::to_string).collect(),
            set: vec![("TZ".into(), "UTC".into())],
            remove: vec!["BROKER_PW".to_owned()],
        };
        let variables = ours.map(|name| (OsString::from(name), OsString::from("v")));
        environment(variables, &rules)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(Inherit::Clean, &["AWS_PROFILE", "NATS_PASSWORD", "BROKER_PW"]),
        ["PATH", "HOME", "LANG", "SSL_CERT_FILE", "https_proxy", "AWS_PROFILE", "TZ"]
    );
    assert_eq!(
        names(Inherit::All, &[]),
        [
            "PATH",
            "HOME",
            "LANG",
            "SSL_CERT_FILE",
            "https_proxy",
            "AWS_PROFILE",
            "AWS_SECRET_ACCESS_KEY",
            "TZ"
        ]
    );

    let text = "serve(LOOSE, lambda id, params: ok(id, {'outputs': {'names': sorted(os.environ), 'argv': sys.argv[1:], 'x': [os.environ['X_PROVIDER_PROTOCOL'], os.environ['X_PROVIDER_NAME'], os.environ['X_PROVIDER_RUN']]}}))";
    let Some(site) = provider(text) else { return };
    let bench = site
        .with(|settings| {
            settings.environment = vec![("AWS_PROFILE".into(), "prod".into())];
            settings.run = "20261101T093000Z_1f2e3d4c".to_owned();
        })
        .run();
    let outputs = json(&bench.act("1").await.unwrap().outputs);
    bench.close().await;
    assert!(outputs.contains(r#""argv":[]"#), "{outputs}");
    assert!(outputs.contains(r#""x":["1","dns","20261101T093000Z_1f2e3d4c"]"#), "{outputs}");
    let names: Vec<_> =
        outputs.split(r#""names":["#).nth(1).unwrap().split(']').next().unwrap().split(',').collect();
    // The interpreter adds LC_CTYPE by itself.
    let names: Vec<_> = names.into_iter().filter(|name| *name != "\"LC_CTYPE\"").collect();
    assert_eq!(
        names,
        [
            "\"AWS_PROFILE\"",
            "\"QUARTERMASTER_RUN\"",
            "\"X_PROVIDER_NAME\"",
            "\"X_PROVIDER_PROTOCOL\"",
            "\"X_PROVIDER_RUN\""
        ]
    );
}

const SECRETS: [&str; 4] = ["hunter2-config", "hunter3-attr", "hunter4-output", "hunter5-by-name"];

#[actix::test]
async fn b24_a_secret_is_in_no_log_trace_or_error() {
    let text = r#"
schema = {"name": "vault", "protocol": "1",
    "config": {"key": {"type": "string", "x_sensitive": True}, "db_password": {"type": "string"}},
    "actions": {
        "store": {"attrs": {"value": {"type": "string", "x_sensitive": True}, "how": {"type": "string"}}},
        "fetch": {"outputs": {"type": "any", "x_sensitive": True}}}}
config = {}
def configured(id, params):
    config.update(params["config"]); sys.stderr.write("got %s and %s\n" % (config["key"], config["db_password"])); ok(id)
def execute(id, params):
    attrs = params["attrs"]
    if params["action"] == "fetch": return ok(id, {"outputs": {"secret": "hunter4-output"}})
    sys.stderr.write(json.dumps({"level": "error", "msg": "storing " + attrs["value"], "key": config["key"]}) + "\n")
    sys.stderr.flush()
    text = attrs["value"] + " " + config["key"] + " " + config["db_password"]
    if attrs["how"] == "error": fail(id, "failed", "cannot store " + text, detail=text, x_diagnostics=[{"message": text}])
    elif attrs["how"] == "stray": raw("not json: " + text + "\n")
    elif attrs["how"] == "crash": os._exit(1)
    else: ok(id, {"outputs": {}})
serve(schema, execute, configured=configured)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.config(r#"{"key":"hunter2-config","db_password":"hunter5-by-name"}"#).run();
    let mut seen = Vec::new();
    for how in ["well", "error", "stray", "crash"] {
        let attrs = members(&format!(r#"{{"value":"hunter3-attr","how":"{how}"}}"#));
        seen.push(format!("{:?}", Call::execute("store", attrs.clone())));
        match limited(bench.handle.execute("store", attrs)).await {
            Ok(_) => assert_eq!(how, "well"),
            Err(error) => seen.push(format!("{error} {error:?} {:?}", error.stderr)),
        }
    }
    let fetched = limited(bench.handle.execute("fetch", members("{}"))).await.unwrap();
    assert_eq!(fetched.outputs["secret"].as_str(), Some("hunter4-output"), "whoever asked gets it");
    bench.close().await;
    seen.extend(bench.facts());
    seen.extend(bench.trace.lock().unwrap().iter().map(|line| line.frame.clone()));
    seen.push(format!("{:?} {:?} {:?}", bench.handle, bench.handle.snapshot(), fetched));
    let everything = seen.join("\n");
    for secret in SECRETS {
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
    for part in [
        "storing ***",
        "cannot store *** *** ***",
        "not json: *** *** ***",
        r#""value":"***""#,
        r#""key":"***""#,
    ] {
        assert!(everything.contains(part), "{part} not in {everything}");
    }
}

#[actix::test]
async fn a_call_tells_where_it_comes_from_to_a_provider_that_wants_to_know() {
    let context = CallContext {
        run: "r".to_owned(),
        step: "www".to_owned(),
        attempt: 1,
        key: "r/www".to_owned(),
        ..CallContext::default()
    };
    for (schema, told) in [("declaring(call_context=True)", true), ("LOOSE", false)] {
        let Some(site) = provider(&format!("serve({schema}, lambda id, params: ok(id))")) else { return };
        let bench = site.run();
        let action = Action { action: "do".to_owned(), context: Some(context.clone()), ..Action::default() };
        limited(bench.handle.call(Call { ask: Ask::Execute(action), timeout: None, about: None }, None))
            .await
            .unwrap();
        bench.close().await;
        let sent = bench.received()[2].clone();
        let part = r#""x_call":{"run":"r","step":"www","attempt":1,"key":"r/www","deadline_ms":600000}"#;
        assert_eq!(sent.contains(part), told, "{sent}");
    }
}

#[actix::test]
async fn lookup_and_validate_go_to_providers_that_know_them_and_to_no_other() {
    let text = r#"
def other(frame):
    if frame["method"] == "x/lookup": ok(frame["id"], {"state": "done", "outputs": {"y": frame["params"]["key"]}})
    else: ok(frame["id"], {"diagnostics": [{"severity": "error", "path": ["ttl"], "message": "ttl below 30"}]})
serve(declaring(lookup=True, validate=True), None, other=other)
"#;
    let ask = |ask| Call { ask, timeout: None, about: None };
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let found = limited(bench.handle.call(ask(Ask::Lookup("r/www".to_owned())), None)).await.unwrap();
    assert!(format!("{found:?}").contains("Done"), "{found:?}");
    let action = Action { action: "do".to_owned(), attrs: members(r#"{"x":null}"#), ..Action::default() };
    let validate = Ask::Validate(action, vec![quartermaster_proto::provider::Path::of("x")]);
    let diagnosed = limited(bench.handle.call(ask(validate), None)).await.unwrap();
    assert!(format!("{diagnosed:?}").contains("ttl below 30"), "{diagnosed:?}");
    bench.close().await;
    assert_eq!(
        bench.received()[3],
        r#"{"id":4,"method":"x/validate","params":{"action":"do","attrs":{"x":null},"unknown":[["x"]]}}"#
    );
    let Some(site) = provider("serve(LOOSE, None)") else { return };
    let bench = site.run();
    let error = limited(bench.handle.call(ask(Ask::Lookup("r/www".to_owned())), None)).await.unwrap_err();
    assert_eq!(error.code().as_str(), "unknown_method");
    bench.close().await;
    assert_eq!(bench.received().len(), 3, "nothing was sent");
}
