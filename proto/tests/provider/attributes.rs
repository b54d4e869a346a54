//! Attributes, defaults and outputs checked against their declaration.

use quartermaster_proto::provider::{AnyEncoding, Attrs, Declared as _, Schema, Value};

use super::support::{json, members};

/// The declaration of attributes from JSON text.
fn declared(attrs: &str) -> Attrs {
    let document = format!("{{\"name\":\"t\",\"protocol\":\"1\",\"config\":{attrs}}}");
    Schema::from_value(&json(&document)).unwrap_or_else(|error| panic!("{attrs}: {error:?}")).value.config
}

fn becomes(attrs: &str, given: &str, expected: &str) {
    let checked =
        declared(attrs).check(&members(given)).unwrap_or_else(|found| panic!("{attrs} {given}: {found:?}"));
    assert_eq!(Value::Object(checked).to_json(), expected, "{attrs} {given}");
}

fn refuses(attrs: &str, given: &str, complaints: &[&str]) {
    let found: Vec<String> =
        declared(attrs).check(&members(given)).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(found, complaints, "{attrs} {given}");
}

const RECORD: &str = r#"{"zone":{"type":"string","required":true},"ttl":{"type":"number","default":300},"labels":{"type":"map(string)"}}"#;

#[test]
fn defaults_are_filled_in_and_what_has_none_is_left_out() {
    becomes(RECORD, r#"{"zone":"example.test"}"#, r#"{"ttl":300,"zone":"example.test"}"#);
    becomes(
        RECORD,
        r#"{"zone":"example.test","ttl":null,"labels":null}"#,
        r#"{"ttl":300,"zone":"example.test"}"#,
    );
    becomes(
        RECORD,
        r#"{"zone":7,"ttl":"60","labels":{"a":1}}"#,
        r#"{"labels":{"a":"1"},"ttl":60,"zone":"7"}"#,
    );
}

#[test]
fn every_complaint_names_the_attribute() {
    refuses(RECORD, "{}", &["`zone`: required, string needed"]);
    refuses(RECORD, r#"{"zone":null}"#, &["`zone`: required, string needed"]);
    refuses(
        RECORD,
        r#"{"tll":5,"ttl":"many","labels":{"a":[]}}"#,
        &[
            "`tll`: no such attribute; known: labels, ttl, zone",
            "`labels.a`: string needed, list found",
            "`ttl`: number needed, and this string is none",
            "`zone`: required, string needed",
        ],
    );
    refuses("{}", r#"{"a":1}"#, &["`a`: no such attribute; none is declared"]);
}

#[test]
fn a_required_attribute_with_a_default_need_not_be_given() {
    becomes(r#"{"a":{"type":"number","required":true,"default":1}}"#, "{}", r#"{"a":1}"#);
}

#[test]
fn only_the_values_allowed_are_taken() {
    let attrs = r#"{"kind":{"type":"string","x_enum":["A","AAAA",6]}}"#;
    becomes(attrs, r#"{"kind":"AAAA"}"#, r#"{"kind":"AAAA"}"#);
    becomes(attrs, r#"{"kind":6}"#, r#"{"kind":"6"}"#);
    refuses(attrs, r#"{"kind":"MX"}"#, &[r#"`kind`: none of the values allowed: "A", "AAAA", "6""#]);
    becomes(attrs, "{}", "{}");
}

/// What a default of this type, as it stands in the schema, is read as.
fn default(expression: &str, written: &str, expected: Option<&str>) {
    let attrs = declared(&format!("{{\"a\":{{\"type\":\"{expression}\",\"default\":{written}}}}}"));
    assert_eq!(
        attrs["a"].default.as_ref().map(Value::to_json).as_deref(),
        expected,
        "{expression} {written}"
    );
}

#[test]
fn defaults_are_read_singly_and_doubly_encoded() {
    default("number", "30", Some("30"));
    default("number", r#""30""#, Some("30"));
    default("number", r#"" 30 ""#, Some("30"));
    default("bool", "false", Some("false"));
    default("bool", r#""false""#, Some("false"));
    default("list(string)", r#"["a"]"#, Some(r#"["a"]"#));
    default("list(string)", r#""[\"a\"]""#, Some(r#"["a"]"#));
    default("map(number)", r#""{\"a\":\"1\"}""#, Some(r#"{"a":1}"#));
    default("object({a=string,b=optional(number)})", r#""{\"a\":1}""#, Some(r#"{"a":"1","b":null}"#));
}

#[test]
fn the_default_of_a_string_is_doubly_encoded_only_when_it_begins_with_a_quote() {
    default("string", r#""GET""#, Some(r#""GET""#));
    default("string", r#""\"GET\"""#, Some(r#""GET""#));
    default("string", r#""30""#, Some(r#""30""#));
    default("string", r#""true""#, Some(r#""true""#));
    default("string", r#""[1]""#, Some(r#""[1]""#));
    default("string", r#""\"half""#, Some(r#""\"half""#));
    default("string", r#"" \"GET\"""#, Some(r#"" \"GET\"""#));
    default("string", "30", Some(r#""30""#));
    default("string", r#""""#, Some(r#""""#));
}

#[test]
fn the_default_of_any_is_doubly_encoded_when_it_begins_with_a_quote_a_brace_or_a_bracket() {
    default("any", r#""\"GET\"""#, Some(r#""GET""#));
    default("any", r#""{\"a\":1}""#, Some(r#"{"a":1}"#));
    default("any", r#""[1,2]""#, Some("[1,2]"));
    default("any", r#""30""#, Some(r#""30""#));
    default("any", r#""{half""#, Some(r#""{half""#));
    default("any", r#"{"a":1}"#, Some(r#"{"a":1}"#));
}

#[test]
fn a_default_of_null_is_none() {
    default("number", "null", None);
    default("number", r#""null""#, None);
    default("string", r#""null""#, Some(r#""null""#));
}

#[test]
fn a_default_keeps_its_digits() {
    default("number", "9223372036854775808", Some("9223372036854775808"));
    default("number", r#""0.10000000000000000001""#, Some("0.10000000000000000001"));
}

/// A schema with one action that gives this.
fn action(outputs: &str) -> quartermaster_proto::provider::ActionSchema {
    let document = format!("{{\"name\":\"t\",\"protocol\":\"1\",\"actions\":{{\"a\":{{{outputs}}}}}}}");
    Schema::from_value(&json(&document)).unwrap().value.actions["a"].clone()
}

#[test]
fn outputs_are_checked_and_stay_as_they_came() {
    let action = action(r#""outputs":{"type":"object({id=string,n=optional(number),raw=any})"}"#);
    let check = |outputs: &str| action.check_outputs(&members(outputs)).map_err(|found| found[0].to_string());
    assert_eq!(check(r#"{"id":"r-1","raw":[1]}"#), Ok(()));
    assert_eq!(check(r#"{"id":7,"n":"8","raw":null}"#), Ok(()));
    assert_eq!(check(r#"{"id":[],"raw":1}"#), Err("`id`: string needed, list found".to_owned()));
    assert_eq!(check(r#"{"id":"x"}"#), Err("`raw`: value needed, nothing found".to_owned()));
    assert_eq!(check(r#"{"id":"x","raw":1,"z":1}"#), Err("`z`: no such field; known: id, n, raw".to_owned()));
}

#[test]
fn outputs_may_be_any_and_outputs_that_are_not_declared_are_told() {
    assert_eq!(action(r#""outputs":{"type":"any"}"#).check_outputs(&members(r#"{"x":{"y":1}}"#)), Ok(()));
    let none = action("");
    assert_eq!(none.check_outputs(&members("{}")), Ok(()));
    assert_eq!(
        none.check_outputs(&members(r#"{"a":1}"#)).unwrap_err()[0].to_string(),
        "outputs are not declared"
    );
}

#[test]
fn values_of_any_are_plain_unless_the_wrapper_is_asked_for() {
    let attrs = declared(
        r#"{"a":{"type":"any"},"l":{"type":"list(any)"},"o":{"type":"object({x=any,y=string})"},"s":{"type":"string"}}"#,
    );
    let given = r#"{"a":{"k":[1,true,null]},"l":["x",null],"o":{"x":1,"y":"z"},"s":"t"}"#;
    let checked = attrs.check(&members(given)).unwrap();
    let wire = |encoding| Value::Object(attrs.for_wire(checked.clone(), encoding)).to_json();
    assert_eq!(wire(AnyEncoding::Plain), given);
    assert_eq!(
        json(&wire(AnyEncoding::Cty)),
        json(
            r#"{"a":{"value":{"k":[1,true,null]},"type":["object",{"k":["tuple",["number","bool","dynamic"]]}]},
            "l":[{"value":"x","type":"string"},null],"o":{"x":{"value":1,"type":"number"},"y":"z"},"s":"t"}"#
        )
    );
}

#[test]
fn the_attributes_of_an_undo_are_taken_out_of_their_wrappers() {
    let attrs = declared(r#"{"a":{"type":"any"},"s":{"type":"string"}}"#);
    let plain = members(r#"{"a":[1],"more":{"value":1,"type":"number"},"s":"t"}"#);
    let written = attrs.for_wire(plain.clone(), AnyEncoding::Cty);
    assert_ne!(written, plain);
    assert_eq!(attrs.received(written.clone(), AnyEncoding::Cty), plain);
    assert_eq!(attrs.received(written.clone(), AnyEncoding::Plain), written);
}

#[test]
fn wrapped_values_are_taken_out_where_the_type_is_any() {
    let action =
        action(r#""outputs":{"type":"object({a=any,b=string,l=list(any),m=map(any),t=tuple([any])})"}"#);
    let outputs = members(
        r#"{"a":{"value":[1],"type":["tuple",["number"]]},"b":"x","l":[{"value":{"q":1},"type":["object",{"q":"number"}]},7],
        "m":{"k":{"value":["a"],"type":["set","string"]}},"t":[{"value":null,"type":"dynamic"}]}"#,
    );
    let read = |encoding| Value::Object(action.read_outputs(outputs.clone(), encoding)).to_json();
    assert_eq!(read(AnyEncoding::Cty), r#"{"a":[1],"b":"x","l":[{"q":1},7],"m":{"k":["a"]},"t":[null]}"#);
    assert_eq!(json(&read(AnyEncoding::Plain)), Value::Object(outputs.clone()));
}

#[test]
fn an_object_that_only_looks_like_a_wrapper_stays() {
    let action = action(r#""outputs":{"type":"any"}"#);
    for outputs in [
        r#"{"value":1,"type":"A"}"#,
        r#"{"value":1,"type":["list"]}"#,
        r#"{"value":1,"type":"number","more":1}"#,
        r#"{"kind":1,"type":"number"}"#,
        r#"{"value":1,"type":["tuple",["number",1]]}"#,
    ] {
        let read = action.read_outputs(members(outputs), AnyEncoding::Cty);
        assert_eq!(read, members(outputs), "{outputs}");
    }
}

#[test]
fn sensitive_attributes_are_found_and_masked() {
    let attrs = declared(
        r#"{"token":{"type":"string","x_sensitive":true},"keys":{"type":"list(string)","x_sensitive":true},"zone":{"type":"string"}}"#,
    );
    let given = members(r#"{"token":"s3cr3t","keys":["a","b"],"zone":"example.test","more":1}"#);
    assert_eq!(
        Value::Object(attrs.masked(&given)).to_json(),
        r#"{"keys":"***","more":1,"token":"***","zone":"example.test"}"#
    );
    assert_eq!(attrs.masked(&members(r#"{"token":null}"#)), members(r#"{"token":null}"#));
    assert_eq!(attrs.sensitive(&given), [&json(r#"["a","b"]"#), &json(r#""s3cr3t""#)]);
}
