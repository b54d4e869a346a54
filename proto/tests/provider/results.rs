//! Answers read as what was asked, and errors with all they carry.

use std::time::Duration;

use quartermaster_proto::provider::{
    Body, CallId, DoneState, ErrorCode, Found, HostCode, Invocation, Limits, Path, ProviderError, Reply,
    Segment, Severity, Value, Warning, encode_reply,
};

use super::support::{members, reply};

fn body(result: &str) -> Body {
    reply(&format!("{{\"id\":1,\"result\":{result}}}")).body
}

fn failed(error: &str) -> ProviderError {
    reply(&format!("{{\"id\":1,\"error\":{error}}}")).body.execute().unwrap_err()
}

/// What an `execute` result says: outputs, undo, warnings.
fn executes(result: &str, outputs: &str, undo: &[(&str, &str)], warnings: &[Warning]) {
    let read = body(result).execute().unwrap_or_else(|error| panic!("{result}: {error}"));
    assert_eq!(read.value.outputs, members(outputs), "{result}");
    let expected: Vec<Invocation> = undo
        .iter()
        .map(|(action, attrs)| Invocation { action: (*action).to_owned(), attrs: members(attrs) })
        .collect();
    assert_eq!(read.value.undo, expected, "{result}");
    assert_eq!(read.warnings, warnings, "{result}");
}

fn bad_frame(result: Result<impl std::fmt::Debug, ProviderError>, message: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), format!("host.bad_frame: {message}"));
    assert_eq!(error.host_code(), Some(HostCode::BadFrame));
}

const CALL: &str = r#"{"action":"record_delete","attrs":{"id":"r-81"}}"#;
const UNDO: (&str, &str) = ("record_delete", r#"{"id":"r-81"}"#);

#[test]
fn outputs_stand_in_their_member() {
    executes(r#"{"outputs":{"a":1}}"#, r#"{"a":1}"#, &[], &[]);
    executes(r#"{"outputs":null}"#, "{}", &[], &[]);
    executes(r#"{"outputs":{}}"#, "{}", &[], &[]);
    executes(r#"{"outputs":{"a":1},"extra":2}"#, r#"{"a":1}"#, &[], &[]);
}

#[test]
fn outputs_that_stand_bare_are_read_and_said() {
    executes(
        r#"{"record_id":"r-81","n":[1]}"#,
        r#"{"record_id":"r-81","n":[1]}"#,
        &[],
        &[Warning::BareOutputs],
    );
}

#[test]
fn an_empty_result_has_no_outputs() {
    executes("{}", "{}", &[], &[]);
    executes("null", "{}", &[], &[]);
    executes(&format!("{{\"undo\":{CALL}}}"), "{}", &[UNDO], &[]);
    executes(r#"{"undo":null}"#, "{}", &[], &[]);
    executes(r#"{"inverse":null,"x":1}"#, "{}", &[], &[]);
}

#[test]
fn undo_is_absent_null_one_call_or_several_under_either_name() {
    executes(r#"{"outputs":{},"undo":null}"#, "{}", &[], &[]);
    executes(&format!("{{\"outputs\":{{}},\"undo\":{CALL}}}"), "{}", &[UNDO], &[]);
    executes(&format!("{{\"outputs\":{{}},\"inverse\":{CALL}}}"), "{}", &[UNDO], &[]);
    executes(&format!("{{\"outputs\":{{}},\"undo\":null,\"inverse\":{CALL}}}"), "{}", &[UNDO], &[]);
    executes(
        &format!("{{\"outputs\":{{}},\"undo\":{CALL},\"inverse\":{{\"action\":\"b\"}}}}"),
        "{}",
        &[UNDO],
        &[],
    );
    executes(
        &format!("{{\"undo\":[{CALL},{{\"action\":\"b\",\"attrs\":null}}]}}"),
        "{}",
        &[UNDO, ("b", "{}")],
        &[],
    );
    executes(r#"{"undo":[]}"#, "{}", &[], &[]);
}

#[test]
fn any_other_result_of_an_action_is_a_bad_frame() {
    let undo = "`undo` should be a call with `action` and `attrs`, a list of such, or null";
    for (result, message) in [
        ("[1]", "the result should be an object but is a list"),
        ("\"done\"", "the result should be an object but is a string"),
        ("true", "the result should be an object but is a bool"),
        (r#"{"outputs":[1]}"#, "`outputs` should be an object but is a list"),
        (r#"{"outputs":"x"}"#, "`outputs` should be an object but is a string"),
        (r#"{"outputs":{},"undo":"record_delete"}"#, undo),
        (r#"{"outputs":{},"undo":{"attrs":{}}}"#, undo),
        (r#"{"outputs":{},"undo":{"action":1}}"#, undo),
        (r#"{"outputs":{},"undo":{"action":"a","attrs":[]}}"#, undo),
        (r#"{"outputs":{},"undo":[{"action":"a"},null]}"#, undo),
    ] {
        bad_frame(body(result).execute(), message);
    }
}

#[test]
fn an_undo_of_an_undeclared_action_is_kept_and_said() {
    let undo =
        body(&format!("{{\"undo\":[{CALL},{{\"action\":\"a\\u001bb\"}}]}}")).execute().unwrap().value.undo;
    let warnings: Vec<_> = Invocation::undeclared(&undo, |action| action == "record_delete").collect();
    assert_eq!(warnings, [Warning::UndeclaredUndo { action: "a\\u{1b}b".to_owned() }]);
}

#[test]
fn neither_result_nor_error_is_an_empty_result_for_some_and_a_bad_frame_for_others() {
    let neither = || reply("{\"id\":1}").body;
    assert_eq!((neither().configure(), neither().shutdown()), (Ok(()), Ok(())));
    let message = "the answer has neither `result` nor `error`";
    bad_frame(neither().describe(), message);
    bad_frame(neither().execute(), message);
    bad_frame(neither().ping(), message);
    bad_frame(neither().lookup(), message);
    bad_frame(neither().validate(), message);
}

#[test]
fn any_result_of_configure_and_shutdown_will_do() {
    for result in ["{}", "null", "true", "[1]", r#"{"ok":1}"#] {
        assert_eq!((body(result).configure(), body(result).shutdown()), (Ok(()), Ok(())), "{result}");
    }
}

#[test]
fn that_ping_is_not_known_is_a_sign_of_life_too() {
    let error = |code: &str| {
        reply(&format!("{{\"id\":1,\"error\":{{\"code\":\"{code}\",\"message\":\"\"}}}}")).body.ping()
    };
    assert_eq!(body("{}").ping(), Ok(()));
    assert_eq!(error("unknown_method"), Ok(()));
    assert_eq!(error("internal").unwrap_err().code, ErrorCode::Internal);
}

#[test]
fn a_lookup_finds_a_step_in_one_of_four_states() {
    let found = |result: &str| body(result).lookup().unwrap().value;
    assert_eq!(found(r#"{"state":"absent"}"#), Found::Absent);
    assert_eq!(found(r#"{"state":"running","since":3}"#), Found::Running);
    match found(&format!("{{\"state\":\"done\",\"outputs\":{{\"record_id\":\"r-82\"}},\"undo\":{CALL}}}")) {
        Found::Done(done) => {
            assert_eq!(done.outputs, members(r#"{"record_id":"r-82"}"#));
            assert_eq!(done.undo[0].action, "record_delete");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(found(r#"{"state":"done","at":"now"}"#), Found::Done(done) if done.outputs.is_empty()));
    match found(r#"{"state":"failed","error":{"code":"denied","message":"no"}}"#) {
        Found::Failed(error) => assert_eq!(error.to_string(), "denied: no"),
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(found(r#"{"state":"failed"}"#), Found::Failed(error) if error.code.treated_as() == ErrorCode::Failed)
    );
    bad_frame(body(r#"{"state":"lost"}"#).lookup(), "`state` should be absent, running, done or failed");
    bad_frame(body("{}").lookup(), "`state` should be absent, running, done or failed");
    bad_frame(body("[]").lookup(), "the result should be an object");
    bad_frame(body(r#"{"state":"failed","error":1}"#).lookup(), "`error` has another type than it should");
}

#[test]
fn a_validation_answers_with_diagnostics() {
    let found = body(r#"{"diagnostics":[{"severity":"error","path":["ttl"],"message":"ttl below 30"}]}"#)
        .validate()
        .unwrap();
    assert_eq!(
        (found[0].severity, found[0].path.clone(), found[0].message.as_str()),
        (Severity::Error, Path::of("ttl"), "ttl below 30")
    );
    for none in ["{}", "null", r#"{"diagnostics":[]}"#, r#"{"diagnostics":null}"#] {
        assert_eq!(body(none).validate(), Ok(Vec::new()), "{none}");
    }
    for bad in [
        "[]",
        "1",
        r#"{"diagnostics":{}}"#,
        r#"{"diagnostics":[{"severity":"fatal","message":"x"}]}"#,
        r#"{"diagnostics":[{}]}"#,
    ] {
        bad_frame(body(bad).validate(), "`diagnostics` should be a list of severity, path and message");
    }
}

#[test]
fn an_error_keeps_code_message_and_detail() {
    let error =
        failed(r#"{"code":"not_found","message":"no such zone","detail":"zone nope.test\nis not served"}"#);
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(
        (error.message.as_str(), error.detail.as_deref()),
        ("no such zone", Some("zone nope.test\nis not served"))
    );
    assert_eq!(error.to_string(), "not_found: no such zone");
    assert_eq!(error.host_code(), None);
    let own = failed(r#"{"code":"quota_exhausted","message":"later"}"#);
    assert_eq!(
        (own.code.as_str(), own.code.treated_as(), own.detail),
        ("quota_exhausted", ErrorCode::Failed, None)
    );
}

#[test]
fn what_an_error_lacks_is_empty_and_another_type_is_a_bad_frame() {
    let error = failed("{}");
    assert_eq!((error.code.as_str(), error.message.as_str(), error.detail), ("", "", None));
    assert_eq!(failed(r#"{"code":null,"message":"x","detail":null}"#).message, "x");
    assert_eq!(failed(r#"{"code":"a","message":"b","detail":""}"#).detail, None);
    for (error, member) in [
        ("\"boom\"", "error"),
        ("[]", "error"),
        (r#"{"code":1}"#, "code"),
        (r#"{"code":"a","message":{}}"#, "message"),
        (r#"{"detail":[]}"#, "detail"),
    ] {
        let line = format!("{{\"id\":4,\"error\":{error}}}");
        let refused = quartermaster_proto::provider::decode(line.as_bytes(), &Limits::PROVIDER).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("the error of call 4 has a `{member}` of another type than it should")
        );
    }
}

const FULL: &str = r#"{"code":"failed","message":"second record refused","x_retry_after_ms":1500,"x_state":"partial","x_undo":{"action":"record_delete","attrs":{"record_id":"r-83","zone":"example.test"}},"x_diagnostics":[{"severity":"error","path":["records",1,"ttl"],"message":"ttl below 30"},{"severity":"warning","path":[],"message":"slow"}]}"#;

#[test]
fn an_error_says_how_much_was_done_and_how_to_clear_it() {
    let error = failed(FULL);
    assert_eq!(error.more.retry_after, Some(Duration::from_millis(1_500)));
    assert_eq!(error.more.state, Some(DoneState::Partial));
    assert_eq!(error.more.undo[0].attrs, members(r#"{"zone":"example.test","record_id":"r-83"}"#));
    let [first, second] = &error.more.diagnostics[..] else { panic!("{:?}", error.more.diagnostics) };
    let path =
        Path(vec![Segment::Key("records".to_owned()), Segment::Index(1), Segment::Key("ttl".to_owned())]);
    assert_eq!(
        (first.severity, &first.path, first.path.to_string().as_str()),
        (Severity::Error, &path, "records[1].ttl")
    );
    assert_eq!((second.severity, &second.path), (Severity::Warning, &Path::default()));
}

#[test]
fn an_error_is_written_as_it_was_read() {
    let line = |error: &str| format!("{{\"id\":6,\"error\":{error}}}");
    for error in [
        FULL,
        r#"{"code":"cancelled","message":"stopped on request","x_state":"none"}"#,
        r#"{"code":"x","message":"","detail":"d","x_undo":[{"action":"a","attrs":{}},{"action":"b","attrs":{}}]}"#,
    ] {
        let answer = reply(&line(error));
        let written = encode_reply(&Reply { id: CallId(6), ..answer }, &Limits::PROVIDER).unwrap();
        assert_eq!(String::from_utf8(written.to_vec()).unwrap(), format!("{}\n", line(error)));
    }
}

#[test]
fn members_of_ours_that_are_not_understood_are_ignored_and_said() {
    let line = r#"{"id":1,"error":{"code":"failed","message":"m","x_retry_after_ms":"soon","x_state":"half","x_undo":7,"x_diagnostics":[{"path":"ttl","message":"x"}],"x_new":1}}"#;
    let decoded = quartermaster_proto::provider::decode(line.as_bytes(), &Limits::PROVIDER).unwrap();
    let names: Vec<String> = decoded.warnings.iter().map(ToString::to_string).collect();
    let expected = ["x_retry_after_ms", "x_state", "x_undo", "x_diagnostics"];
    assert_eq!(names, expected.map(|name| format!("`{name}` is not understood and was ignored")));
    assert_eq!(reply(line).body, Body::Error(Box::new(ProviderError::new(ErrorCode::Failed, "m"))));
}

#[test]
fn an_error_prints_on_one_short_line() {
    let error = failed(&format!("{{\"code\":\"a\\nb\",\"message\":\"{}\"}}", "x\\u001b[2J".repeat(500)));
    let text = error.to_string();
    assert!(
        text.starts_with("a\\nb: x\\u{1b}[2J")
            && text.chars().count() < 300
            && !text.contains(char::is_control)
    );
}

#[test]
fn values_are_not_in_debug_texts() {
    let answer = body(r#"{"outputs":{"key":"hunter2"}}"#);
    assert!(!format!("{answer:?} {:?}", answer.clone().execute()).contains("hunter2"));
    assert_eq!(format!("{:?}", Value::from("hunter2")), "string of 7");
}
