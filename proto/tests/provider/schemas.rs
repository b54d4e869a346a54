//! Schemas read, judged, compared and shown.

use std::time::Duration;

use quartermaster_proto::provider::{HostCode, ProviderError, Schema, SchemaError, Value, Warning};

use super::support::{json, reply, ty};

fn read(document: &str) -> Schema {
    Schema::from_value(&json(document)).unwrap_or_else(|error| panic!("{document}: {error:?}")).value
}

fn warnings(document: &str) -> Vec<String> {
    Schema::from_value(&json(document)).unwrap().warnings.iter().map(ToString::to_string).collect()
}

/// The faults of a schema that is fine but for these members.
fn faults(members: &str) -> Vec<String> {
    let document = format!("{{\"protocol\":\"1\",\"name\":\"dns\",{members}}}");
    match Schema::from_value(&json(&document)) {
        Err(SchemaError::Faults(faults)) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("{members}: {other:?}"),
    }
}

const FULL: &str = r#"{"name":"dns","version":"0.4.1","protocol":"1",
    "config":{"endpoint":{"type":"string","required":true,"description":"where the API is"},
              "token":{"type":"string","required":true,"x_sensitive":true},
              "retries":{"type":"number","default":3}},
    "actions":{"record_create":{"description":"create one record","x_idempotent":true,"x_timeout_ms":5000,"x_exclusive":true,"x_returns_undo":true,
        "attrs":{"zone":{"type":"string","required":true},
                 "kind":{"type":"string","default":"A","x_enum":["A","AAAA"]},
                 "file":{"type":"string","x_path":true,"x_deprecated":"use text"}},
        "outputs":{"type":"object({ record_id = string, fqdn = string })"}},
      "zone_list":{}},
    "x_protocols":["1","2"],"x_extensions":{"max_in_flight":8,"cancel":true},"x_future":{"a":1},"homepage":"https://example.test"}"#;

#[test]
fn everything_a_schema_can_say_is_read() {
    let schema = read(FULL);
    assert_eq!((schema.name.as_str(), schema.version.as_str()), ("dns", "0.4.1"));
    assert_eq!(schema.protocols, ["1", "2"]);
    assert!(schema.config["endpoint"].required && schema.config["token"].sensitive);
    assert_eq!(schema.config["endpoint"].description, "where the API is");
    assert_eq!(schema.config["retries"].default, Some(Value::from(3_i64)));
    let create = &schema.actions["record_create"];
    assert_eq!(create.description, "create one record");
    assert_eq!((create.idempotent, create.exclusive, create.returns_undo), (true, true, Some(true)));
    assert_eq!(create.timeout, Some(Duration::from_secs(5)));
    assert_eq!(create.attrs["kind"].choices, ["A", "AAAA"].map(Value::from));
    assert!(create.attrs["file"].is_path && !create.attrs["zone"].is_path);
    assert_eq!(create.attrs["file"].deprecated.as_deref(), Some("use text"));
    assert_eq!(create.outputs.as_ref().unwrap().ty, ty("object({fqdn=string,record_id=string})"));
    let list = &schema.actions["zone_list"];
    assert!(
        list.attrs.is_empty()
            && list.outputs.is_none()
            && list.timeout.is_none()
            && list.returns_undo.is_none()
    );
}

#[test]
fn config_and_actions_may_be_absent_or_null() {
    for document in [
        r#"{"name":"a","protocol":"1"}"#,
        r#"{"name":"a","protocol":"1","config":null,"actions":null,"version":null}"#,
        r#"{"name":"a","protocol":"1","config":{},"actions":{"b":{"attrs":null,"outputs":null,"description":null}}}"#,
    ] {
        assert!(read(document).config.is_empty(), "{document}");
    }
}

#[test]
fn a_schema_stands_in_its_member_or_bare() {
    let bare = r#"{"name":"a","protocol":"1"}"#;
    assert_eq!(read(&format!("{{\"schema\":{bare}}}")), read(bare));
    let describe = |result: &str| reply(&format!("{{\"id\":1,\"result\":{result}}}")).body.describe();
    assert_eq!(describe(bare).unwrap().value, describe(&format!("{{\"schema\":{bare}}}")).unwrap().value);
    for result in ["{}", "null", "[]", "\"1\"", r#"{"schema":null}"#, r#"{"schema":[]}"#, r#"{"name":"a"}"#] {
        let error = describe(result).unwrap_err();
        assert_eq!(error.host_code(), Some(HostCode::BadSchema), "{result}");
        assert!(error.to_string().contains("an object with `protocol`, or one with `schema`, is needed"));
    }
}

#[test]
fn only_protocol_one_is_spoken_and_a_number_is_forgiven() {
    assert_eq!(
        warnings(r#"{"name":"a","protocol":1}"#),
        ["`protocol` is the number 1, it should be the text \"1\""]
    );
    for (protocol, found) in [
        ("\"2\"", "\"2\""),
        ("2", "2"),
        ("1.0", "1.0"),
        ("\"1.0\"", "\"1.0\""),
        ("null", "(null)"),
        ("true", "(a bool)"),
        ("\"\\u001b[2J\"", "\"\\u{1b}[2J\""),
    ] {
        let error =
            Schema::from_value(&json(&format!("{{\"name\":\"a\",\"protocol\":{protocol}}}"))).unwrap_err();
        let error = ProviderError::from(error);
        assert_eq!(
            error.to_string(),
            format!(
                "host.unsupported_protocol: the provider speaks protocol {found}, this host speaks \"1\""
            )
        );
    }
    let none = Schema::from_value(&json(r#"{"schema":{"name":"a"}}"#)).unwrap_err();
    assert_eq!(none.to_string(), "the provider speaks protocol (none named), this host speaks \"1\"");
}

#[test]
fn every_fault_is_named_with_its_place() {
    assert_eq!(
        faults(
            r#""config":{"a":{"type":"strin"},"b":{},"c":{"type":7},"d":{"type":"number","default":"many"}},
            "actions":{"x":{"attrs":{"y":{"type":"list(string"}},"outputs":{"type":"object({a})"}},"z":7}"#
        ),
        [
            "config.a.type: unknown type `strin` at column 1",
            "config.b: a type is needed",
            "config.c.type: the type should be a string, this is a number",
            "config.d.default: `d`: number needed, and this string is none",
            "actions.z: an object is needed, this is a number",
            "actions.x.outputs.type: `=` is missing at column 10",
            "actions.x.attrs.y.type: `)` is missing at column 12",
        ]
    );
}

#[test]
fn a_name_is_needed_and_names_are_identifiers() {
    for name in ["\"\"", "null"] {
        let document = format!("{{\"protocol\":\"1\",\"name\":{name}}}");
        let error = Schema::from_value(&json(&document)).unwrap_err();
        assert_eq!(error.to_string(), "name: a name is needed");
    }
    let rule = "the name should be letters, digits, `_` and `-`";
    assert_eq!(faults(r#""config":{"a b":{"type":"string"}}"#), [format!("config.a b: {rule}")]);
    assert_eq!(
        faults(r#""actions":{"":{},"1x":{}}"#),
        [format!("actions.: {rule}"), format!("actions.1x: {rule}")]
    );
    assert_eq!(
        faults(r#""actions":{"a":{"attrs":{"x.y":{"type":"any"}}}}"#),
        [format!("actions.a.attrs.x.y: {rule}")]
    );
}

#[test]
fn members_of_other_types_are_faults_also_those_of_ours() {
    let flag = |place: &str| format!("{place}: true or false is needed, this is a string");
    assert_eq!(faults(r#""config":{"a":{"type":"string","required":"yes"}}"#), [flag("config.a.required")]);
    assert_eq!(
        faults(r#""config":{"a":{"type":"string","x_sensitive":"yes"}}"#),
        [flag("config.a.x_sensitive")]
    );
    assert_eq!(faults(r#""actions":{"a":{"x_idempotent":"yes"}}"#), [flag("actions.a.x_idempotent")]);
    assert_eq!(
        faults(r#""actions":{"a":{"x_timeout_ms":-1}}"#),
        ["actions.a.x_timeout_ms: a whole number that is not negative is needed"]
    );
    assert_eq!(
        faults(r#""config":{"a":{"type":"string","description":1}}"#),
        ["config.a.description: a string is needed, this is a number"]
    );
    assert_eq!(faults(r#""config":[]"#), ["config: an object is needed, this is a list"]);
    assert_eq!(
        faults(r#""actions":{"a":{"outputs":"string"}}"#),
        ["actions.a.outputs: an object is needed, this is a string"]
    );
    assert_eq!(
        faults(r#""config":{"a":{"type":"number","x_enum":["x"]}}"#),
        ["config.a.x_enum: `a`: number needed, and this string is none"]
    );
    assert_eq!(
        faults(r#""config":{"a":{"type":"number","x_enum":1}}"#),
        ["config.a.x_enum: a list is needed, this is a number"]
    );
    assert_eq!(faults(r#""x_extensions":[]"#), ["x_extensions: an object is needed, this is a list"]);
    assert_eq!(faults(r#""x_extensions":{"cancel":"yes"}"#), [flag("x_extensions.cancel")]);
    assert_eq!(
        faults(r#""x_extensions":{"require":[1]}"#),
        ["x_extensions.require: a list of strings is needed"]
    );
    assert_eq!(faults(r#""x_protocols":"2""#), ["x_protocols: a list of strings is needed"]);
}

#[test]
fn what_is_odd_but_works_is_a_warning() {
    assert_eq!(
        warnings(
            r#"{"name":"a","protocol":"1","config":{"a":{"type":"number","required":true,"default":1}}}"#
        ),
        ["config.a: a required attribute needs no default"]
    );
    assert_eq!(
        warnings(
            r#"{"name":"a","protocol":"1","config":{"a":{"type":"string","default":"C","x_enum":["A"]}}}"#
        ),
        ["config.a.default: the default is none of the values allowed"]
    );
    assert_eq!(
        warnings(r#"{"name":"a","protocol":"1","x_extensions":{"max_in_flight":0}}"#),
        ["x_extensions.max_in_flight: 0 is read as 1"]
    );
    assert!(warnings(FULL).is_empty());
}

#[test]
fn a_bad_schema_is_one_short_line_with_all_faults_in_its_detail() {
    let many: Vec<String> = (0..200).map(|n| format!("\"a{n}\":{{\"type\":\"x\\u001b\"}}")).collect();
    let document = format!("{{\"name\":\"a\",\"protocol\":\"1\",\"config\":{{{}}}}}", many.join(","));
    let error = ProviderError::from(Schema::from_value(&json(&document)).unwrap_err());
    assert_eq!(
        error.to_string(),
        "host.bad_schema: config.a0.type: unknown type `x` at column 1 (and 49 more)"
    );
    assert_eq!(error.detail.unwrap().lines().count(), 50);
}

#[test]
fn a_probe_is_one_document_also_over_several_lines() {
    let probe = |stdout: &str| Schema::from_probe(stdout.as_bytes());
    let pretty = "\u{feff}{\r\n  \"name\": \"a\",\r\n  \"protocol\": \"1\"\r\n}\r\n\n";
    assert_eq!(probe(pretty).unwrap().value, read(r#"{"name":"a","protocol":"1"}"#));
    assert_eq!(probe(r#"{"schema":{"name":"a","protocol":"1"}}"#).unwrap().value.name, "a");
    assert_eq!(
        probe(r#"{"name":"a","name":"b","protocol":"1"}"#).unwrap().warnings,
        [Warning::Repeated { name: "name".to_owned() }]
    );
    for (stdout, message) in [
        ("", "no schema: nothing was written"),
        (" \r\n", "no schema: nothing was written"),
        ("usage: provider", "no schema: the output is not one JSON document: no JSON value at byte 0"),
        ("{}\n{}", "no schema: the output is not one JSON document: text after the value at byte 3"),
        ("[]", "no schema: an object with `protocol`, or one with `schema`, is needed"),
    ] {
        assert_eq!(probe(stdout).unwrap_err().to_string(), message, "{stdout:?}");
    }
    assert_eq!(
        Schema::from_probe(b"\xff").unwrap_err().to_string(),
        "no schema: the output is not UTF-8 at byte 0"
    );
    let long = format!("{{\"name\":\"{}\",\"protocol\":\"1\"}}", "x".repeat(4 * 1024 * 1024));
    let error = ProviderError::from(probe(&long).unwrap_err());
    assert!(
        error.to_string().contains("is over the limit of 4194304")
            && error.host_code() == Some(HostCode::BadSchema)
    );
}

#[test]
fn a_schema_is_written_canonically_and_reads_back() {
    let schema = read(FULL);
    let written = schema.to_value();
    assert_eq!(Schema::from_value(&written).unwrap().value, schema);
    let text = written.to_json();
    assert!(text.contains(r#""type":"object({fqdn=string,record_id=string})""#), "{text}");
    assert!(!text.contains("x_future") && !text.contains("homepage"));
}

#[test]
fn defaults_that_look_like_json_are_written_so_that_they_read_back() {
    let document = r#"{"name":"a","protocol":"1","config":{"s":{"type":"string","default":"\"\\\"quoted\\\"\""},"a":{"type":"any","default":"\"[1]\""},"p":{"type":"string","default":"30"}}}"#;
    let schema = read(document);
    assert_eq!(schema.config["s"].default, Some(Value::from("\"quoted\"")));
    assert_eq!(schema.config["a"].default, Some(Value::from("[1]")));
    assert_eq!(Schema::from_value(&schema.to_value()).unwrap().value, schema);
}

#[test]
fn documents_that_mean_the_same_have_the_same_digest() {
    let one = read(
        r#"{"name":"a","protocol":"1","config":{"x":{"type":"object({b=string,a=number})","default":"{\"a\":1.0,\"b\":\"\"}"}}}"#,
    );
    let same = read(
        r#"{"actions":{},"protocol":1,"config":{"x":{"required":false,"default":{"b":"","a":1},"type":"object({ a = number\n b = string })"}},"name":"a","other":1}"#,
    );
    assert_eq!(one.digest(), same.digest());
    assert!(one.differences(&same).is_empty());
    let other = read(r#"{"name":"a","protocol":"1","config":{"x":{"type":"object({b=string,a=number})"}}}"#);
    assert_ne!(one.digest(), other.digest());
}

#[test]
fn differences_are_told_one_by_one() {
    let before = read(FULL);
    let after = FULL
        .replace("\"0.4.1\"", "\"0.5.0\"")
        .replace("\"default\":3", "\"default\":5")
        .replace("\"zone_list\":{}", "\"zone_drop\":{}")
        .replace("record_id = string", "record_id = number");
    let sentences = [
        r#"`actions.record_create.outputs.type` was "object({fqdn=string,record_id=string})", is "object({fqdn=string,record_id=number})""#,
        "`actions.zone_list` is gone",
        "`actions.zone_drop` is new",
        "`config.retries.default` was 3, is 5",
        r#"`version` was "0.4.1", is "0.5.0""#,
    ];
    assert_eq!(before.differences(&read(&after)), sentences);
}

#[test]
fn people_read_a_schema_as_plain_text() {
    let expected = "\
dns 0.4.1 (protocol 1)
extensions: cancel, 8 calls at a time

config
  endpoint  string (required)  where the API is
  retries   number (default 3)
  token     string (required, sensitive)

action record_create
  create one record
  file  string (path, deprecated: use text)
  kind  string (default \"A\", one of \"A\" \"AAAA\")
  zone  string (required)
  gives object({fqdn=string,record_id=string})
  safe to repeat, runs alone, limit 5000 ms, can be undone

action zone_list
  takes nothing
  gives nothing
";
    assert_eq!(read(FULL).to_text(), expected);
    let least = read(r#"{"name":"a","protocol":"1"}"#).to_text();
    assert_eq!(least, "a (protocol 1)\n\nconfig\n  takes nothing\n\nno actions\n");
}

#[test]
fn what_people_read_moves_no_cursor_and_shows_no_secret() {
    let text = read(
        r#"{"name":"a\u001b[2J","version":"1\n2","protocol":"1","config":{"k":{"type":"string","x_sensitive":true,"default":"hunter2","x_enum":["hunter2"],"description":"\u202e"}}}"#,
    )
    .to_text();
    assert!(!text.contains("hunter2") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    assert!(text.contains("k  string (has a default, sensitive)"), "{text}");
}
