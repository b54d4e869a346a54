use super::*;

const SMALL: Limits = Limits { max_bytes: 40, max_depth: 3, max_items: 5 };

fn allowed(text: &str) {
    assert_eq!(check(text.as_bytes(), &SMALL), Ok(()), "{text}");
}

fn refused(text: &str, expected: &JsonError) {
    assert_eq!(check(text.as_bytes(), &SMALL).as_ref(), Err(expected), "{text}");
}

#[test]
fn documents_at_the_limits_pass() {
    allowed("[[[]]]");
    allowed("[1,2,3,4,5]");
    allowed(r#"{"a":{"b":{"c":1}}}"#);
    allowed(&" ".repeat(40));
}

#[test]
fn documents_over_a_limit_are_refused_for_that_reason() {
    refused("[[[[]]]]", &JsonError::TooDeep { limit: 3 });
    refused(r#"{"a":{"b":{"c":{}}}}"#, &JsonError::TooDeep { limit: 3 });
    refused("[1,2,3,4,5,6]", &JsonError::TooMany { limit: 5 });
    refused(&" ".repeat(41), &JsonError::TooLarge { size: 41, limit: 40 });
}

#[test]
fn brackets_and_commas_inside_strings_do_not_count() {
    allowed(r#"["[[[[[[,,,,,,,,"]"#);
    allowed(r#"["\"[[[[\\",",,,,,"]"#);
    refused(r#"["\\",[[[]]]]"#, &JsonError::TooDeep { limit: 3 });
}

#[test]
fn broken_documents_do_not_confuse_the_scan() {
    allowed("]]]}}}");
    allowed("\"");
    allowed("\"\\");
}

fn check_sorted(input: &str, expected: &str) {
    assert_eq!(sorted(input).as_deref(), Ok(expected), "{input}");
}

#[test]
fn keys_are_sorted_at_every_level() {
    check_sorted(r#"{"b":1,"a":{"d":[{"z":1,"y":2}],"c":3}}"#, r#"{"a":{"c":3,"d":[{"y":2,"z":1}]},"b":1}"#);
    check_sorted(r#"{"é":1,"z":2,"Z":3,"":4}"#, r#"{"":4,"Z":3,"z":2,"é":1}"#);
}

#[test]
fn white_space_goes_and_empty_containers_stay() {
    check_sorted(" { \"a\" : [ ] , \"b\" : { } ,\n\t\"c\" : [ 1 , 2 ] } ", r#"{"a":[],"b":{},"c":[1,2]}"#);
    check_sorted("\t[]\n", "[]");
    check_sorted(" null ", "null");
}

#[test]
fn numbers_keep_their_digits() {
    check_sorted(
        r#"{"n":[18446744073709551616,1.10,1e400,-0,0.1000000000000000055511151231257827]}"#,
        r#"{"n":[18446744073709551616,1.10,1e400,-0,0.1000000000000000055511151231257827]}"#,
    );
}

#[test]
fn strings_keep_their_spelling_and_keys_compare_unescaped() {
    check_sorted(r#"{"\u0062":"\u00e9\/","a":"é"}"#, r#"{"a":"é","b":"\u00e9\/"}"#);
}

#[test]
fn of_a_repeated_key_the_last_value_stays() {
    check_sorted(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
}

#[test]
fn what_is_not_one_value_is_refused() {
    for text in ["", "{", "{} {}", "{'a':1}", "{\"a\":1,}", "\u{feff}{}", "[01]", "nul"] {
        assert!(matches!(sorted(text), Err(JsonError::Invalid { .. })), "{text:?}");
    }
    assert_eq!(sorted(&"[".repeat(200_000)), Err(JsonError::TooDeep { limit: 64 }));
}

#[derive(Debug, Deserialize)]
struct Shape {
    #[expect(dead_code, reason = "only its type matters")]
    count: u8,
}

fn fault(text: &str) -> String {
    object::<Shape>(text.as_bytes(), &Limits::FRAME).expect_err("refused").to_string()
}

#[test]
fn errors_do_not_repeat_the_document() {
    assert_eq!(fault(r#"{"count":"s3cret"}"#), "invalid type string, expected u8 at line 1 column 17");
    assert_eq!(
        fault(r#"{"count":", expected s3cret"}"#),
        "invalid type string, expected u8 at line 1 column 28"
    );
    assert_eq!(fault(r#"{"count":-7}"#), "invalid value integer, expected u8 at line 1 column 11");
    assert_eq!(fault("{}"), "missing field `count` at line 1 column 2");
    assert_eq!(fault(r#"{"count":1,"count":2}"#), "duplicate field `count` at line 1 column 18");
    assert_eq!(fault("[1]"), "invalid type sequence, expected an object at line 1 column 0");
}

#[test]
fn secret_text_is_the_plain_json() {
    assert_eq!(*to_secret_text(&("a\n", 1)), "[\"a\\n\",1]");
}
