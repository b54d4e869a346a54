//! Lines of stderr, and secrets kept out of what is shown.

use quartermaster_proto::provider::{Level, LogReader, Mask, Value};

use super::support::json;

fn reads(line: &str, level: Level, message: &str) {
    let event = LogReader::default().read(line.as_bytes());
    assert_eq!((event.level, event.message.as_str()), (level, message), "{line}");
}

/// The levels of lines that follow one another.
fn levels(lines: &[&str]) -> Vec<Level> {
    let mut log = LogReader::default();
    lines.iter().map(|line| log.read(line.as_bytes()).level).collect()
}

#[test]
fn plain_lines_are_information() {
    reads("connected", Level::Info, "connected");
    reads("trailing\r", Level::Info, "trailing");
    reads("", Level::Info, "");
    assert_eq!(LogReader::default().read(b"bad \xff byte").message, "bad \u{fffd} byte");
}

#[test]
fn json_objects_with_level_and_msg_are_structured() {
    let event =
        LogReader::default().read(br#"{"level":"WARN","msg":"slow zone","zone":"example.test","ms":12}"#);
    assert_eq!((event.level, event.message.as_str()), (Level::Warn, "slow zone"));
    assert_eq!(Value::Object(event.fields).to_json(), r#"{"ms":12,"zone":"example.test"}"#);
    for (level, expected) in [
        ("\"trace\"", Level::Trace),
        ("\"debug\"", Level::Debug),
        ("\"info\"", Level::Info),
        ("\"warning\"", Level::Warn),
        ("\"error\"", Level::Error),
        ("\"fatal\"", Level::Error),
        ("10", Level::Trace),
        ("20", Level::Debug),
        ("30", Level::Info),
        ("40", Level::Warn),
        ("60", Level::Error),
    ] {
        reads(&format!("{{\"level\":{level},\"msg\":\"m\"}}"), expected, "m");
    }
}

#[test]
fn other_objects_are_plain_text() {
    for line in [
        r#"{"level":"info"}"#,
        r#"{"msg":"m"}"#,
        r#"{"level":"loud","msg":"m"}"#,
        r#"{"level":[],"msg":"m"}"#,
        r#"{"level":"info","msg":1}"#,
        r#"{"level":"info","msg":"m""#,
        "{}",
    ] {
        reads(line, Level::Info, line);
    }
}

#[test]
fn prefixes_set_the_level() {
    reads("[TRACE] x", Level::Trace, "x");
    reads("[DEBUG] x", Level::Debug, "x");
    reads("[INFO] x", Level::Info, "x");
    reads("[WARN] x", Level::Warn, "x");
    reads("[ warning ]  x", Level::Warn, "x");
    reads("  [error]x", Level::Error, "x");
    reads("[12] x", Level::Info, "[12] x");
    reads("[]", Level::Info, "[]");
    reads("[ERROR", Level::Info, "[ERROR");
}

#[test]
fn a_panic_and_what_follows_is_an_error_until_a_line_says_its_level() {
    use Level::{Error, Info, Warn};
    assert_eq!(
        levels(&[
            "ready",
            "panic: runtime error: index out of range",
            "",
            "goroutine 1 [running]:",
            "main.main()"
        ]),
        [Info, Error, Error, Error, Error]
    );
    assert_eq!(
        levels(&[
            "thread 'main' (12) panicked at src/main.rs:3:5:",
            "explicit panic",
            "[WARN] worker restarted",
            "ready"
        ]),
        [Error, Error, Warn, Info]
    );
    assert_eq!(levels(&["fatal error: all goroutines are asleep - deadlock!", "x"]), [Error, Error]);
    assert_eq!(levels(&["do not panic: it is fine", "thread 'a' started"]), [Info, Info]);
}

fn covers(secrets: &[&str], text: &str, expected: &str) {
    let secrets: Vec<Value> = secrets.iter().map(|secret| json(secret)).collect();
    assert_eq!(Mask::new(&secrets).text(text), expected);
}

#[test]
fn every_string_and_number_of_a_secret_value_is_covered() {
    covers(&[r#""s3cr3t""#], "token=s3cr3t; again s3cr3t", "token=***; again ***");
    covers(
        &[r#"{"user":"bob","pins":[4711,0.50]}"#],
        "bob entered 4711 and 0.50 or 0.5",
        "*** entered *** and *** or ***",
    );
    covers(&["true", "null", "\"\""], "true null ", "true null ");
    covers(&[], "nothing", "nothing");
}

#[test]
fn secrets_are_covered_as_json_writes_them_too() {
    covers(
        &[r#""a\"b\\c\u2028d""#],
        r#"raw a"b\c and {"k":"a\"b\\c\u2028d"}"#,
        r#"raw a"b\c and {"k":"***"}"#,
    );
    covers(&[r#""a\"b""#], "a\"b", "***");
}

#[test]
fn lines_of_a_long_secret_are_covered_one_by_one() {
    let key = "\"-----BEGIN KEY-----\\nMIIabcdefgh\\nxy\\n-----END KEY-----\\n\"";
    covers(&[key], "dump: MIIabcdefgh", "dump: ***");
    covers(&[key], "xy", "xy");
    covers(&[key], "-----BEGIN KEY-----\nMIIabcdefgh\nxy\n-----END KEY-----\n!", "***!");
}

#[test]
fn secrets_that_overlap_are_covered_whole() {
    covers(&["\"abc\"", "\"bcdef\""], "xabcdefx", "x***x");
    covers(&["\"abc\"", "\"abcdef\""], "abcdef abc", "*** ***");
    covers(&["\"aa\""], "aaaaa", "***");
    covers(&["\"*\""], "a*b", "a***b");
    covers(&["\"é\""], "aéb", "a***b");
}

#[test]
fn a_mask_covers_values_for_traces_and_records() {
    let mask = Mask::new([&Value::from("s3cr3t"), &Value::from(4711_i64)]);
    let value = json(r#"{"a":["s3cr3t",4711,12],"s3cr3t":{"b":"not s3cr3t!"},"c":true}"#);
    assert_eq!(mask.value(&value).to_json(), r#"{"***":{"b":"not ***!"},"a":["***","***",12],"c":true}"#);
    assert_eq!(format!("{mask:?}"), "Mask of 2");
}
