//! What a provider's lines mean, and which are no frames.

use quartermaster_proto::provider::{
    Body, CallId, ErrorCode, Frame, FrameError, HostCode, Limits, Mask, Number, Progress, ProviderError,
    Value, decode, excerpt,
};

use super::support::reply;

fn frame(line: impl AsRef<[u8]>) -> Frame {
    decode(line.as_ref(), &Limits::PROVIDER).unwrap().frame
}

fn warnings(line: &str) -> Vec<String> {
    decode(line.as_bytes(), &Limits::PROVIDER).unwrap().warnings.iter().map(ToString::to_string).collect()
}

fn refused(line: impl AsRef<[u8]>) -> FrameError {
    decode(line.as_ref(), &Limits::PROVIDER).unwrap_err()
}

fn refuses(line: &str, message: &str) {
    let error = refused(line);
    assert_eq!(error.to_string(), message, "{line}");
    assert_eq!(error.code(), HostCode::BadFrame);
}

#[test]
fn a_line_end_a_carriage_return_and_a_byte_order_mark_are_no_part_of_a_frame() {
    let plain = frame("{\"id\":1,\"result\":{}}");
    for line in [
        "{\"id\":1,\"result\":{}}\n",
        "{\"id\":1,\"result\":{}}\r\n",
        "\u{feff}{\"id\":1,\"result\":{}}\r\n",
        "  {\"id\" : 1 ,\t\"result\":{} }  ",
    ] {
        assert_eq!(frame(line), plain, "{line:?}");
    }
}

#[test]
fn blank_lines_say_nothing() {
    for line in ["", "\n", "\r\n", " \t \r\n", "\u{feff}", "\u{feff}\r\n"] {
        assert_eq!(frame(line), Frame::Blank, "{line:?}");
    }
}

#[test]
fn line_separators_inside_strings_are_characters_like_any_other() {
    let line = "{\"id\":1,\"result\":{\"outputs\":{\"a\":\"1\u{2028}2\u{2029}3\u{85}4\\f5\"}}}";
    let done = reply(line).body.execute().unwrap().value;
    assert_eq!(done.outputs["a"], Value::from("1\u{2028}2\u{2029}3\u{85}4\u{c}5"));
}

#[test]
fn text_that_is_no_json_is_told_by_its_offset_and_is_stray() {
    for (line, message) in [
        ("starting provider v1", "the line is not JSON: no JSON value at byte 0"),
        ("2026/11/29 listening", "the line is not JSON: text after the value at byte 4"),
        ("{\"id\":1,\"result\":{}", "the line is not JSON: `,` or `}` is missing at byte 19"),
        ("{\"id\":1,\"result\":{}} trailing", "the line is not JSON: text after the value at byte 21"),
        (
            "{\"id\":1,\"result\":{}}{\"id\":2,\"result\":{}}",
            "the line is not JSON: text after the value at byte 20",
        ),
        ("{\"id\":1,}", "the line is not JSON: a name in quotes is missing at byte 8"),
        ("{\"id\":1,\"result\":[1,]}", "the line is not JSON: no JSON value at byte 20"),
        ("{\"id\" 1}", "the line is not JSON: `:` is missing at byte 6"),
        ("{id:1}", "the line is not JSON: a name in quotes is missing at byte 1"),
        ("{'id':1}", "the line is not JSON: a name in quotes is missing at byte 1"),
        ("{\"id\":1,\"result\":NaN}", "the line is not JSON: no JSON value at byte 17"),
        ("{\"id\":1,\"result\":Infinity}", "the line is not JSON: no JSON value at byte 17"),
        ("{\"id\":1,\"result\":-Infinity}", "the line is not JSON: not a decimal number at byte 17"),
        ("{\"id\":1,\"result\":01}", "the line is not JSON: not a decimal number at byte 17"),
        (
            "{\"id\":1,\"result\":1e99999}",
            "the line is not JSON: an exponent that stands for more than 4096 zeros at byte 17",
        ),
        (
            "{\"id\":1,\"result\":\"a\tb\"}",
            "the line is not JSON: a control character inside a string at byte 19",
        ),
        (
            "{\"id\":1,\"result\":\"a\\x\"}",
            "the line is not JSON: an escape that JSON does not know at byte 19",
        ),
        ("{\"id\":1,\"result\":\"abc", "the line is not JSON: a string that does not end at byte 18"),
        (
            "{\"id\":1,\"result\":\"\\u12\"}",
            "the line is not JSON: an escape that JSON does not know at byte 18",
        ),
    ] {
        refuses(line, message);
        assert!(refused(line).is_stray(), "{line}");
    }
}

#[test]
fn json_that_is_no_object_is_stray() {
    for (line, message) in [
        ("[]", "the line is a list, not an object"),
        ("\"ready\"", "the line is a string, not an object"),
        ("42", "the line is a number, not an object"),
        ("null", "the line is null, not an object"),
    ] {
        refuses(line, message);
        assert!(refused(line).is_stray(), "{line}");
    }
}

#[test]
fn bad_utf8_is_refused_with_its_offset() {
    let error = refused(b"{\"id\":1,\"result\":\"\xff\xfe\"}");
    assert_eq!(error, FrameError::NotUtf8 { offset: 18 });
    assert!(error.is_stray());
    assert_eq!(refused(b"\xff\xfe{\0\"\0").to_string(), "the line is not UTF-8 at byte 0");
}

#[test]
fn a_broken_line_between_good_ones_is_an_error_and_the_next_line_is_read() {
    let lines = ["{\"id\":1,\"result\":{}}", "{\"id\":2,\"resu", "{\"id\":3,\"result\":{}}"];
    let read: Vec<_> = lines.iter().map(|line| decode(line.as_bytes(), &Limits::PROVIDER)).collect();
    assert!(read[0].is_ok() && read[2].is_ok());
    let error = ProviderError::from(read[1].clone().unwrap_err());
    assert_eq!(error.code, ErrorCode::Host(HostCode::BadFrame));
}

#[test]
fn an_id_is_a_json_integer_of_64_bits() {
    assert_eq!(reply("{\"id\":9223372036854775807,\"result\":{}}").id, CallId(i64::MAX));
    assert_eq!(reply("{\"id\":-1,\"result\":{}}").id, CallId(-1));
    refuses("{\"id\":\"1\",\"result\":{}}", "the id is a string, not an integer of 64 bits");
    refuses("{\"id\":1.0,\"result\":{}}", "the id is a number, not an integer of 64 bits");
    refuses("{\"id\":1.5,\"result\":{}}", "the id is a number, not an integer of 64 bits");
    refuses("{\"id\":9223372036854775808,\"result\":{}}", "the id is a number, not an integer of 64 bits");
    refuses("{\"id\":null,\"result\":{}}", "the id is null, not an integer of 64 bits");
    refuses("{\"id\":[1],\"result\":{}}", "the id is a list, not an integer of 64 bits");
    refuses("{\"id\":true,\"error\":{}}", "the id is a bool, not an integer of 64 bits");
}

#[test]
fn exactly_one_of_result_and_error_counts() {
    refuses(
        "{\"id\":3,\"result\":{},\"error\":{\"code\":\"failed\",\"message\":\"\"}}",
        "the answer to call 3 has both `result` and `error`",
    );
    // Encoders that write every member write null for the one that is not there.
    assert!(matches!(reply("{\"id\":1,\"result\":{},\"error\":null}").body, Body::Result(_)));
    assert!(matches!(reply("{\"id\":1,\"result\":null,\"error\":{\"code\":\"x\"}}").body, Body::Error(_)));
    assert_eq!(reply("{\"id\":1,\"result\":null}").body, Body::Result(Value::Null));
    assert_eq!(reply("{\"id\":1}").body, Body::Neither);
    assert_eq!(reply("{\"id\":1,\"error\":null}").body, Body::Neither);
}

#[test]
fn an_answer_without_an_id_is_no_frame() {
    refuses("{\"result\":{}}", "an answer without an id");
    refuses("{\"error\":{\"code\":\"failed\",\"message\":\"\"}}", "an answer without an id");
    assert!(!refused("{\"result\":{}}").is_stray());
}

#[test]
fn a_provider_that_echoes_what_it_reads_is_found_at_once() {
    refuses(
        "{\"id\":1,\"method\":\"describe\",\"params\":{}}",
        "a request with id 1, but only the host makes requests",
    );
}

#[test]
fn members_that_are_not_known_are_ignored() {
    assert_eq!(
        frame("{\"id\":1,\"jsonrpc\":\"2.0\",\"x_new\":[1],\"result\":{}}"),
        frame("{\"id\":1,\"result\":{}}")
    );
    assert!(matches!(reply("{\"id\":1,\"method\":\"execute\",\"result\":{}}").body, Body::Result(_)));
}

#[test]
fn of_a_name_that_stands_twice_the_last_value_counts() {
    let line = "{\"id\":7,\"id\":8,\"result\":{\"outputs\":{\"a\":1,\"a\":2}}}";
    let answer = reply(line);
    assert_eq!(answer.id, CallId(8));
    assert_eq!(answer.body.execute().unwrap().value.outputs["a"], Value::from(2_i64));
    assert_eq!(warnings(line).len(), 1, "said once a line");
    assert_eq!(
        warnings("{\"id\":1,\"id\":1,\"result\":{}}"),
        ["`id` stands twice in one object, the last one counts"]
    );
}

#[test]
fn half_a_character_pair_becomes_the_replacement_character() {
    for (text, expected) in [
        ("\\ud83d\\ude00", "😀"),
        ("\\ud83d", "\u{fffd}"),
        ("\\ude00", "\u{fffd}"),
        ("\\ud83dx", "\u{fffd}x"),
        ("\\ud83d\\n", "\u{fffd}\n"),
        ("\\ud83d\\ud83d\\ude00", "\u{fffd}😀"),
        ("\\ude00\\ud83d", "\u{fffd}\u{fffd}"),
    ] {
        let line = format!("{{\"id\":1,\"result\":{{\"outputs\":{{\"a\":\"{text}\"}}}}}}");
        assert_eq!(reply(&line).body.execute().unwrap().value.outputs["a"], Value::from(expected), "{text}");
        assert_eq!(warnings(&line).len(), usize::from(expected != "😀"), "{text}");
    }
}

#[test]
fn frames_without_an_id_are_dropped_with_their_method() {
    for (line, warning) in [
        ("{}", "a frame without an id was dropped, its method is absent"),
        ("{\"method\":\"log\",\"params\":{}}", "a frame without an id was dropped, its method is `log`"),
        ("{\"method\":\"x/new\"}", "a frame without an id was dropped, its method is `x/new`"),
        ("{\"method\":\"a\\nb\"}", "a frame without an id was dropped, its method is `a\\nb`"),
        (
            "{\"method\":\"x/progress\",\"params\":{\"done\":1}}",
            "`x/progress` is not understood and was ignored",
        ),
        ("{\"method\":\"x/progress\"}", "`x/progress` is not understood and was ignored"),
    ] {
        assert_eq!(frame(line), Frame::Dropped, "{line}");
        assert_eq!(warnings(line), [warning]);
    }
}

#[test]
fn progress_names_its_call() {
    let number = |number: i64| Some(Number::from(number));
    let line = "{\"method\":\"x/progress\",\"params\":{\"id\":7,\"done\":3,\"total\":10,\"message\":\"signing zone\"}}";
    let expected = Progress {
        id: CallId(7),
        done: number(3),
        total: number(10),
        message: Some("signing zone".to_owned()),
    };
    assert_eq!(frame(line), Frame::Progress(expected));
    let least = Progress { id: CallId(7), done: None, total: None, message: None };
    assert_eq!(
        frame("{\"method\":\"x/progress\",\"params\":{\"id\":7,\"done\":\"some\"}}"),
        Frame::Progress(least)
    );
}

#[test]
fn lines_below_the_limits_are_read_and_lines_over_them_are_not() {
    let limits = |max_bytes| Limits { max_bytes, ..Limits::PROVIDER };
    let line = format!("{{\"id\":1,\"result\":\"{}\"}}", "x".repeat(65_536 - 21));
    assert_eq!(line.len(), 65_536 - 1);
    for end in ["", "\n", "\r\n"] {
        let line = format!("{line}{end}");
        assert!(decode(line.as_bytes(), &limits(65_535)).is_ok());
        let error = decode(line.as_bytes(), &limits(65_534)).unwrap_err();
        assert_eq!(
            (error.code(), error.to_string()),
            (HostCode::FrameTooLarge, "a line over the limit of 65534 bytes".to_owned())
        );
        assert!(!error.is_stray());
    }
}

#[test]
fn a_line_of_sixteen_mebibytes_is_read_and_one_byte_more_is_not() {
    let most = 16 * 1024 * 1024;
    assert_eq!(Limits::PROVIDER.max_bytes, most);
    let line = |size: usize| format!("{{\"id\":1,\"result\":\"{}\"}}", "x".repeat(size - 20));
    for (size, is_read) in [(most - 1, true), (most + 1, false)] {
        let line = line(size);
        assert_eq!(line.len(), size);
        assert_eq!(decode(line.as_bytes(), &Limits::PROVIDER).is_ok(), is_read, "{size}");
    }
}

#[test]
fn nesting_and_counts_have_their_limits() {
    let nested =
        |depth: usize| format!("{{\"id\":1,\"result\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(decode(nested(128).as_bytes(), &Limits::PROVIDER).is_ok());
    let error = refused(nested(129));
    assert_eq!(error.to_string(), "the line is not JSON: JSON is nested deeper than 128 levels");
    assert_eq!(error.code(), HostCode::BadFrame);
    let many = format!("{{\"id\":1,\"result\":[{}0]}}", "0,".repeat(200_000));
    let error = refused(many);
    assert_eq!(
        (error.code(), error.to_string()),
        (HostCode::FrameTooLarge, "a line with more than 200000 values".to_owned())
    );
    assert!(decode("[".repeat(1_000_000).as_bytes(), &Limits::PROVIDER).is_err());
}

#[test]
fn the_beginning_of_a_bad_line_is_shown_without_secrets() {
    let mask = Mask::new([&Value::from("s3cr3t"), &Value::from(4711_i64)]);
    assert_eq!(excerpt(b"login with s3cr3t and 4711\x1b[31m", &mask), "login with *** and ***\\u{1b}[31m");
    assert_eq!(excerpt(&[b'x'; 300], &mask), format!("{}…", "x".repeat(200)));
    assert_eq!(excerpt("é".repeat(150).as_bytes(), &mask), format!("{}…", "é".repeat(100)));
    let across = format!("{}s3cr3t", "x".repeat(197));
    assert_eq!(excerpt(across.as_bytes(), &mask), format!("{}***…", "x".repeat(197)));
    assert_eq!(excerpt(b"\xff\xfe", &Mask::default()), "\u{fffd}\u{fffd}");
}

#[test]
fn nothing_of_a_bad_line_is_in_its_error() {
    for line in [
        "hunter2",
        "{\"hunter2\":hunter2}",
        "{\"id\":\"hunter2\"}",
        "{\"id\":1,\"error\":\"hunter2\"}",
        "\"hunter2\"",
    ] {
        assert!(!format!("{:?} {0}", refused(line)).contains("hunter2"), "{line}");
    }
}
