//! What the host writes, byte for byte, and how a provider reads it.

use quartermaster_proto::provider::{
    Body, Call, CallContext, CallId, Cancel, Configure, Execute, HostHello, Incoming, Limits, Members,
    Number, Path, Progress, Reply, Request, RequestError, Validate, Value, decode_incoming, encode,
    encode_cancel, encode_progress, encode_reply,
};

use super::support::{json, members, reply};

fn written(id: i64, call: Call) -> String {
    let request = Request { id: CallId(id), call };
    let line = encode(&request, &Limits::PROVIDER).unwrap();
    assert_eq!(
        decode_incoming(&line, &Limits::PROVIDER),
        Ok(Incoming::Request(request)),
        "it is read back as it was"
    );
    String::from_utf8(line.to_vec()).unwrap()
}

fn read(line: &str) -> Result<Incoming, RequestError> {
    decode_incoming(line.as_bytes(), &Limits::PROVIDER)
}

fn refused(line: &str) -> (Option<i64>, String) {
    let error = read(line).unwrap_err();
    (error.id.map(|id| id.0), error.to_string())
}

#[test]
fn params_are_always_there_and_undo_is_never_false() {
    assert_eq!(written(1, Call::Describe), "{\"id\":1,\"method\":\"describe\",\"params\":{}}\n");
    assert_eq!(written(9, Call::Shutdown), "{\"id\":9,\"method\":\"shutdown\",\"params\":{}}\n");
    assert_eq!(
        written(2, Call::Configure(Configure::default())),
        "{\"id\":2,\"method\":\"configure\",\"params\":{\"config\":{}}}\n"
    );
    let execute = Execute { action: "a".to_owned(), ..Execute::default() };
    assert_eq!(
        written(3, Call::Execute(execute)),
        "{\"id\":3,\"method\":\"execute\",\"params\":{\"action\":\"a\",\"attrs\":{}}}\n"
    );
}

#[test]
fn attributes_are_written_with_sorted_keys_and_all_their_digits() {
    let attrs = members(r#"{"zone":"example.test","n":[9223372036854775808,0.1,{"b":1,"a":null}],"é":true}"#);
    let execute = Execute { action: "a".to_owned(), attrs, undo: true, context: None };
    assert_eq!(
        written(4, Call::Execute(execute)),
        "{\"id\":4,\"method\":\"execute\",\"params\":{\"action\":\"a\",\"attrs\":{\"n\":[9223372036854775808,0.1,{\"a\":null,\"b\":1}],\"zone\":\"example.test\",\"é\":true},\"undo\":true}}\n"
    );
}

#[test]
fn what_some_runtimes_take_for_a_line_end_is_escaped_in_what_we_send() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\ng\rh\u{1c}i\u{7f}j\"\\k";
    let attrs = Members::from([("k\u{2028}".to_owned(), Value::from(text))]);
    let line =
        written(5, Call::Execute(Execute { action: "a".to_owned(), attrs, undo: false, context: None }));
    assert!(
        line.contains(r#""k\u2028":"a\u2028b\u2029c\u0085d\u000be\ff\ng\rh\u001ci\u007fj\"\\k""#),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
    assert_eq!(line.find(['\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}', '\r', '\u{1c}']), None);
    assert_eq!(line.matches('\n').count(), 1, "only the end of the line");
    // Answers of a provider of ours are written by the same hand.
    let answer =
        encode_reply(&Reply { id: CallId(1), body: Body::Result(text.into()) }, &Limits::PROVIDER).unwrap();
    assert_eq!(reply(std::str::from_utf8(&answer).unwrap()).body, Body::Result(text.into()));
    assert!(!String::from_utf8(answer.to_vec()).unwrap().contains(['\u{2028}', '\u{85}']));
}

#[test]
fn extensions_are_written_as_agreed() {
    let host = HostHello {
        name: "host".to_owned(),
        version: "0.1.0".to_owned(),
        protocol: "1".to_owned(),
        extensions: ["cancel", "max_in_flight", "progress"].map(str::to_owned).to_vec(),
        max_in_flight: 8,
        max_frame_bytes: 16_777_216,
    };
    assert_eq!(
        written(2, Call::Configure(Configure { config: Members::new(), host: Some(host) })),
        "{\"id\":2,\"method\":\"configure\",\"params\":{\"config\":{},\"x_host\":{\"name\":\"host\",\"version\":\"0.1.0\",\"protocol\":\"1\",\"extensions\":[\"cancel\",\"max_in_flight\",\"progress\"],\"max_in_flight\":8,\"max_frame_bytes\":16777216}}}\n"
    );
    assert_eq!(written(8, Call::Ping), "{\"id\":8,\"method\":\"x/ping\",\"params\":{}}\n");
    let key = "20261101T093000Z_1f2e3d4c/www".to_owned();
    assert_eq!(
        written(11, Call::Lookup { key: key.clone() }),
        "{\"id\":11,\"method\":\"x/lookup\",\"params\":{\"key\":\"20261101T093000Z_1f2e3d4c/www\"}}\n"
    );
    let context = CallContext {
        run: "20261101T093000Z_1f2e3d4c".to_owned(),
        step: "www".to_owned(),
        attempt: 1,
        key,
        deadline_ms: Some(600_000),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
    };
    let execute = Execute {
        action: "record_create".to_owned(),
        attrs: members(r#"{"zone":"example.test"}"#),
        undo: true,
        context: Some(context),
    };
    assert_eq!(
        written(10, Call::Execute(execute.clone())),
        "{\"id\":10,\"method\":\"execute\",\"params\":{\"action\":\"record_create\",\"attrs\":{\"zone\":\"example.test\"},\"undo\":true,\"x_call\":{\"run\":\"20261101T093000Z_1f2e3d4c\",\"step\":\"www\",\"attempt\":1,\"key\":\"20261101T093000Z_1f2e3d4c/www\",\"deadline_ms\":600000,\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}}}\n"
    );
    let unlimited = CallContext { deadline_ms: None, traceparent: None, ..execute.context.clone().unwrap() };
    let line = written(10, Call::Execute(Execute { context: Some(unlimited), ..execute }));
    assert!(!line.contains("deadline_ms") && !line.contains("traceparent"));
    let validate = Validate {
        action: "record_create".to_owned(),
        attrs: members(r#"{"zone":"example.test","name":null,"ttl":5}"#),
        unknown: vec![Path::of("name")],
    };
    assert_eq!(
        written(12, Call::Validate(validate)),
        "{\"id\":12,\"method\":\"x/validate\",\"params\":{\"action\":\"record_create\",\"attrs\":{\"name\":null,\"ttl\":5,\"zone\":\"example.test\"},\"unknown\":[[\"name\"]]}}\n"
    );
}

#[test]
fn frames_without_an_id_are_written_as_the_protocol_shows_them() {
    let cancel = Cancel { id: CallId(7), reason: "timeout".to_owned(), grace_ms: 10_000 };
    let line = encode_cancel(&cancel, &Limits::PROVIDER).unwrap();
    assert_eq!(
        String::from_utf8(line.to_vec()).unwrap(),
        "{\"method\":\"x/cancel\",\"params\":{\"id\":7,\"reason\":\"timeout\",\"grace_ms\":10000}}\n"
    );
    assert_eq!(decode_incoming(&line, &Limits::PROVIDER), Ok(Incoming::Cancel(cancel)));
    let number = |number: i64| Some(Number::from(number));
    let message = Some("signing zone".to_owned());
    let progress = Progress { id: CallId(7), done: number(3), total: number(10), message };
    let line = encode_progress(&progress, &Limits::PROVIDER).unwrap();
    assert_eq!(
        String::from_utf8(line.to_vec()).unwrap(),
        "{\"method\":\"x/progress\",\"params\":{\"id\":7,\"done\":3,\"total\":10,\"message\":\"signing zone\"}}\n"
    );
}

#[test]
fn a_frame_over_the_limit_is_not_made() {
    let call = |size: usize| Request {
        id: CallId(1),
        call: Call::Lookup {
            key: "x".repeat(size - "{\"id\":1,\"method\":\"x/lookup\",\"params\":{\"key\":\"\"}}".len()),
        },
    };
    for limit in [65_535, 1024 * 1024] {
        let limits = Limits { max_bytes: limit, ..Limits::PROVIDER };
        for size in [limit - 1, limit] {
            assert_eq!(encode(&call(size), &limits).unwrap().len(), size + 1, "the line and its end");
        }
        let error = encode(&call(limit + 1), &limits).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the frame would have {} bytes, over the limit of {limit}; nothing was sent", limit + 1)
        );
        let error = quartermaster_proto::provider::ProviderError::from(error);
        assert_eq!(error.code.as_str(), "host.frame_too_large");
    }
}

#[test]
fn a_frame_that_nests_too_deep_is_not_made() {
    let nested = |depth: usize| (1..depth).fold(Value::List(Vec::new()), |inner, _| Value::List(vec![inner]));
    // The frame, its params and the attributes are three levels.
    let call = |depth| {
        let attrs = Members::from([("a".to_owned(), nested(depth))]);
        let call = Call::Execute(Execute { action: "a".to_owned(), attrs, undo: false, context: None });
        encode(&Request { id: CallId(1), call }, &Limits::PROVIDER)
    };
    assert!(call(125).is_ok());
    assert_eq!(
        call(126).unwrap_err().to_string(),
        "the frame would nest 129 levels deep, over the limit of 128; nothing was sent"
    );
}

#[test]
fn a_provider_reads_what_others_write_too() {
    let execute = |line: &str| match read(line) {
        Ok(Incoming::Request(Request { call: Call::Execute(execute), .. })) => execute,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(" \r\n"), Ok(Incoming::Blank));
    assert_eq!(
        read("{\"id\":1,\"method\":\"describe\"}"),
        read("{\"id\":1,\"method\":\"describe\",\"params\":null}")
    );
    assert!(!execute("{\"id\":1,\"method\":\"execute\",\"params\":{\"action\":\"a\",\"attrs\":null,\"undo\":false,\"new\":1}}").undo);
    assert_eq!(
        execute("{\"id\":1,\"method\":\"execute\",\"params\":{\"action\":\"a\"}}").attrs,
        Members::new()
    );
    assert_eq!(read("{\"method\":\"x/new\",\"params\":{}}"), Ok(Incoming::Unknown));
    assert_eq!(read("{\"method\":\"x/cancel\",\"params\":{}}"), Ok(Incoming::Unknown));
}

#[test]
fn a_provider_knows_what_to_answer_to_a_bad_request() {
    let missing = |name: &str| format!("invalid_request: `{name}` is missing or of another type");
    for (line, id, message) in [
        ("hello", None, "invalid_request: the line is not JSON: no JSON value at byte 0".to_owned()),
        ("[]", None, "invalid_request: the line is a list, not an object".to_owned()),
        (
            "{\"id\":\"1\",\"method\":\"describe\"}",
            None,
            "invalid_request: `id` should be an integer of 64 bits".to_owned(),
        ),
        ("{\"id\":4}", Some(4), missing("method` or `params")),
        ("{\"id\":4,\"method\":\"describe\",\"params\":[]}", Some(4), missing("method` or `params")),
        (
            "{\"id\":4,\"method\":\"destroy\"}",
            Some(4),
            "unknown_method: no such method: destroy; known: describe, configure, execute, shutdown"
                .to_owned(),
        ),
        ("{\"id\":4,\"method\":\"execute\"}", Some(4), missing("action")),
        (
            "{\"id\":4,\"method\":\"execute\",\"params\":{\"action\":\"a\",\"attrs\":[]}}",
            Some(4),
            missing("attrs"),
        ),
        (
            "{\"id\":4,\"method\":\"execute\",\"params\":{\"action\":\"a\",\"undo\":1}}",
            Some(4),
            missing("undo"),
        ),
        (
            "{\"id\":4,\"method\":\"execute\",\"params\":{\"action\":\"a\",\"x_call\":{}}}",
            Some(4),
            missing("x_call"),
        ),
        ("{\"id\":4,\"method\":\"configure\",\"params\":{\"config\":1}}", Some(4), missing("config")),
        ("{\"id\":4,\"method\":\"configure\",\"params\":{\"x_host\":1}}", Some(4), missing("x_host")),
        ("{\"id\":4,\"method\":\"x/lookup\"}", Some(4), missing("key")),
        (
            "{\"id\":4,\"method\":\"x/validate\",\"params\":{\"action\":\"a\",\"unknown\":[1]}}",
            Some(4),
            missing("unknown"),
        ),
    ] {
        assert_eq!(refused(line), (id, message), "{line}");
    }
}

#[test]
fn a_value_writes_itself_as_it_stands_in_a_frame() {
    assert_eq!(
        json("{ \"b\" : [ 1 , null ] , \"a\" : \"\\u2028\" }").to_json(),
        "{\"a\":\"\\u2028\",\"b\":[1,null]}"
    );
    assert_eq!(json("[]").to_json(), "[]");
    assert_eq!(json("{}").to_json(), "{}");
}
