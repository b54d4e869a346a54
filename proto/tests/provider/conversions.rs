//! Values converted to their declared types, and every reason why not.

use quartermaster_proto::provider::{Value, validate};

use super::support::{json, ty};

fn becomes(expression: &str, value: &str, expected: &str) {
    let converted = validate(&ty(expression), &json(value))
        .unwrap_or_else(|found| panic!("{expression} {value}: {found:?}"));
    assert_eq!(converted.to_json(), expected, "{expression} {value}");
    assert_eq!(validate(&ty(expression), &converted), Ok(converted), "converting again changes nothing");
}

fn stays(expression: &str, value: &str) {
    becomes(expression, value, value);
}

fn refuses(expression: &str, value: &str, complaints: &[&str]) {
    let found = validate(&ty(expression), &json(value)).unwrap_err();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, complaints, "{expression} {value}");
}

#[test]
fn values_of_their_type_stay_as_they_are() {
    stays("string", "\"größe\"");
    stays("string", "\"e\u{301}\"");
    stays("number", "1.50");
    stays("bool", "false");
    stays("list(number)", "[3,1,2,1]");
    stays("map(string)", "{\"a\":\"1\",\"b c\":\"2\"}");
    stays("tuple([string,number])", "[\"a\",1]");
    stays("object({a=string,b=number})", "{\"a\":\"x\",\"b\":1}");
    stays("any", "{\"deep\":[1,{\"x\":null}]}");
}

#[test]
fn null_is_a_value_of_every_type() {
    for expression in [
        "string",
        "number",
        "bool",
        "any",
        "list(string)",
        "set(string)",
        "map(string)",
        "tuple([string])",
        "object({a=string})",
    ] {
        stays(expression, "null");
    }
    stays("list(string)", "[null,\"a\"]");
    stays("map(number)", "{\"a\":null}");
    stays("object({a=string})", "{\"a\":null}");
}

#[test]
fn numbers_and_bools_become_strings() {
    becomes("string", "1.50", "\"1.5\"");
    becomes("string", "123456789012345678901234567890", "\"123456789012345678901234567890\"");
    becomes("string", "true", "\"true\"");
    becomes("list(string)", "[1,false,\"x\"]", "[\"1\",\"false\",\"x\"]");
}

#[test]
fn strings_become_numbers_and_bools_when_they_say_one() {
    becomes("number", "\"30\"", "30");
    becomes("number", "\"9223372036854775808\"", "9223372036854775808");
    becomes("number", "\"1e3\"", "1000");
    becomes("bool", "\"true\"", "true");
    becomes("bool", "\"0\"", "false");
    becomes("bool", "\"1\"", "true");
    refuses("number", "\"many\"", &["number needed, and this string is none"]);
    refuses("number", "\"\"", &["number needed, and this string is none"]);
    refuses("number", "\"0x10\"", &["number needed, and this string is none"]);
    refuses("bool", "\"yes\"", &["bool needed, and this string is neither true nor false"]);
    refuses("bool", "\"True\"", &["bool needed, and this string is neither true nor false"]);
}

#[test]
fn nothing_else_is_converted() {
    refuses("bool", "1", &["bool needed, number found"]);
    refuses("number", "true", &["number needed, bool found"]);
    refuses("string", "[\"a\"]", &["string needed, list found"]);
    refuses("string", "{}", &["string needed, object found"]);
    refuses("list(string)", "\"a\"", &["list needed, string found"]);
    refuses("list(string)", "{\"a\":\"b\"}", &["list needed, object found"]);
    refuses("map(string)", "[\"a\"]", &["map needed, list found"]);
    refuses("object({a=string})", "[]", &["object needed, list found"]);
}

#[test]
fn lists_sets_and_tuples_become_each_other() {
    becomes("list(string)", "[1,\"b\"]", "[\"1\",\"b\"]");
    becomes("tuple([number,string])", "[\"1\",2]", "[1,\"2\"]");
    becomes("set(number)", "[\"2\",1]", "[1,2]");
    refuses("tuple([string,string])", "[\"a\"]", &["tuple of 2 needed, list of 1 found"]);
    refuses("tuple([])", "[1]", &["tuple of 0 needed, list of 1 found"]);
}

#[test]
fn a_set_is_sorted_by_canonical_text_and_holds_each_value_once() {
    becomes("set(string)", "[\"b\",\"a\",\"b\"]", "[\"a\",\"b\"]");
    becomes("set(number)", "[10,9,1.0,1,1e1]", "[1.0,10,9]");
    becomes("set(any)", "[{\"b\":1,\"a\":2},{\"a\":2,\"b\":1.0},null]", "[null,{\"a\":2,\"b\":1}]");
    becomes("set(set(string))", "[[\"b\",\"a\"],[\"a\",\"b\"]]", "[[\"a\",\"b\"]]");
}

#[test]
fn an_object_becomes_a_map_and_a_map_has_its_keys_sorted() {
    becomes("map(string)", "{\"b\":2,\"a\":true}", "{\"a\":\"true\",\"b\":\"2\"}");
    refuses("map(number)", "{\"a\":1,\"b\":\"x\"}", &["`b`: number needed, and this string is none"]);
}

#[test]
fn an_object_writes_all_its_fields_and_no_others() {
    becomes(
        "object({b=string,a=optional(number),c=optional(list(string))})",
        "{\"b\":\"x\"}",
        "{\"a\":null,\"b\":\"x\",\"c\":null}",
    );
    refuses("object({a=string})", "{}", &["`a`: string needed, nothing found"]);
    refuses(
        "object({a=string,b=optional(number)})",
        "{\"a\":\"x\",\"c\":1}",
        &["`c`: no such field; known: a, b"],
    );
}

#[test]
fn every_complaint_has_its_path() {
    refuses(
        "object({records=list(object({ttl=number})),tags=map(string)})",
        "{\"records\":[{\"ttl\":1},{\"ttl\":[]}],\"tags\":{\"a b\":{}}}",
        &["`records[1].ttl`: number needed, list found", "`tags[\"a b\"]`: string needed, object found"],
    );
    refuses("list(list(bool))", "[[true],[true,2]]", &["`[1][1]`: bool needed, number found"]);
}

#[test]
fn no_complaint_repeats_the_value_and_endless_ones_are_cut() {
    let found = validate(&ty("number"), &Value::from("hunter2")).unwrap_err();
    assert!(!found[0].to_string().contains("hunter2"));
    let many: Value = (0..5_000).map(|_| Value::from("x")).collect();
    assert_eq!(validate(&ty("list(number)"), &many).unwrap_err().len(), 100);
    let long = format!("{{\"{}\":1}}", "k\\u001b".repeat(500));
    let found = validate(&ty("object({})"), &json(&long)).unwrap_err();
    assert!(found[0].to_string().chars().count() < 300 && !found[0].to_string().contains('\u{1b}'));
}
