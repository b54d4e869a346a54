use secrecy::ExposeSecret as _;

use super::*;
use crate::helper::PermissionsOrder;

fn good(text: &str) -> HelperReply {
    decode_reply(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn bad(text: &str, expected: &str) {
    let error = decode_reply(text.as_bytes()).expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn all_twelve_keys_are_read() {
    let reply = good(
        r#"{"defer":true,"shutdown":true,"msg":"m","key":"k","certificate":"c","ca":"a","ssldir":"/s",
            "server_claims":{"exp":1827512740,"collectives":["x","y"],"ou":"o","pub_subjects":["p.>"],
                "permissions":{"submission":true,"streams":true,"governor":true,"service_host":true}},
            "configuration":{"identity":"n1"},"action_policies":{"a.policy":"p"},"opa_policies":{"o.rego":"r"},
            "upgrade":"1.2.3"}"#,
    );
    assert!(reply.defer && reply.shutdown);
    assert_eq!(reply.msg, "m");
    assert_eq!(reply.key.map(|key| key.expose_secret().to_owned()).as_deref(), Some("k"));
    assert_eq!((reply.certificate.as_str(), reply.ca.as_str(), reply.ssldir.as_str()), ("c", "a", "/s"));
    assert_eq!(
        reply.server_claims,
        Some(ServerClaimsOrder {
            exp: Some(1_827_512_740),
            collectives: vec!["x".to_owned(), "y".to_owned()],
            ou: Some("o".to_owned()),
            permissions: Some(PermissionsOrder {
                submission: true,
                streams: true,
                governor: true,
                service_host: true
            }),
            pub_subjects: vec!["p.>".to_owned()],
        })
    );
    assert_eq!(reply.configuration["identity"], "n1");
    assert_eq!(reply.action_policies["a.policy"], "p");
    assert_eq!(reply.opa_policies["o.rego"], "r");
    assert_eq!(reply.upgrade, "1.2.3");
}

#[test]
fn everything_is_optional_and_null_is_absent() {
    let nulls = r#"{"defer":null,"shutdown":null,"msg":null,"key":null,"certificate":null,"ca":null,"ssldir":null,
        "server_claims":null,"configuration":null,"action_policies":null,"opa_policies":null,"upgrade":null}"#;
    for text in ["{}", nulls] {
        let reply = good(text);
        assert!(!reply.defer && !reply.shutdown && reply.key.is_none() && reply.server_claims.is_none());
        assert!(
            reply.msg.is_empty()
                && reply.certificate.is_empty()
                && reply.ca.is_empty()
                && reply.ssldir.is_empty()
        );
        assert!(
            reply.configuration.is_empty()
                && reply.action_policies.is_empty()
                && reply.opa_policies.is_empty()
        );
        assert!(reply.upgrade.is_empty());
    }
    let empty =
        good(r#"{"server_claims":{"exp":null,"collectives":null,"permissions":null,"ou":""},"key":""}"#);
    assert_eq!(empty.server_claims, Some(ServerClaimsOrder::default()));
    assert!(empty.key.is_none());
}

#[test]
fn permissions_that_are_given_count_as_given_even_when_false() {
    let claims = good(r#"{"server_claims":{"permissions":{}}}"#).server_claims.unwrap();
    assert_eq!(claims.permissions, Some(PermissionsOrder::default()));
}

#[test]
fn unknown_keys_are_ignored_at_every_level() {
    let reply = good(r#"{"x":[{"y":1}],"server_claims":{"iss":7,"permissions":{"z":7}},"defer":true}"#);
    assert!(reply.defer);
}

#[test]
fn of_a_repeated_key_the_last_counts() {
    assert_eq!(good(r#"{"msg":"a","msg":"b"}"#).msg, "b");
    assert_eq!(good(r#"{"configuration":{"a":"1","a":"2"}}"#).configuration["a"], "2");
}

#[test]
fn white_space_around_the_object_is_fine() {
    assert!(good(" \r\n\t{\"defer\":true}\n\n").defer);
}

#[test]
fn nothing_but_white_space_is_the_error_of_the_peer() {
    bad("", "zero bytes received");
    bad(" \n\t\r\n", "zero bytes received");
}

#[test]
fn text_before_the_object_is_refused_at_its_offset() {
    let message = |offset| {
        format!(
            "text before the JSON object, at byte {offset}: stdout must hold the reply alone, logs belong on stderr"
        )
    };
    bad("loading\n{}", &message(0));
    bad("\n  [INFO] start {}", &message(3));
    bad("42 {}", &message(0));
    bad("[1] {}", &message(0));
    bad("null{}", &message(0));
    bad("\u{feff}{}", &message(0));
    bad("hello", &message(0));
}

#[test]
fn text_after_the_object_is_refused_at_its_offset() {
    let message = |offset| {
        format!(
            "text after the JSON object, at byte {offset}: stdout must hold the reply alone, logs belong on stderr"
        )
    };
    bad("{} done", &message(3));
    bad("{}{}", &message(2));
    bad("{\"msg\":\"é\"}\n\n{}", &message(14));
    bad("{},", &message(2));
}

#[test]
fn a_broken_object_is_refused_at_its_offset() {
    bad("{\"a\":1", "the reply is not JSON at byte 5: EOF while parsing an object");
    bad("{\n\"a\" 1}", "the reply is not JSON at byte 6: expected `:`");
    bad("{'a':1}", "the reply is not JSON at byte 1: key must be a string");
    bad(
        "{\"a\":\"\n\"}",
        "the reply is not JSON at byte 5: control character (\\u0000-\\u001F) found while parsing a string",
    );
    assert_eq!(
        decode_reply(b"{\"msg\":\"\xff\"}").unwrap_err().to_string(),
        "the reply is not UTF-8 at byte 8"
    );
}

#[test]
fn a_reply_of_another_type_is_refused() {
    bad("null", "`reply` should be an object but is null");
    bad("[{}]", "`reply` should be an object but is list");
    bad("\"x\"", "`reply` should be an object but is string");
    bad(" 7 ", "`reply` should be an object but is number");
}

#[test]
fn wrong_types_are_named_by_path_and_found_type() {
    bad(
        r#"{"configuration":{"plugin.choria.broker_port":4222}}"#,
        r#"`configuration["plugin.choria.broker_port"]` should be a string but is number 4222"#,
    );
    bad(
        r#"{"configuration":{"a":{"b":"s3cret"}}}"#,
        r#"`configuration["a"]` should be a string but is object"#,
    );
    bad(r#"{"configuration":{"a":null}}"#, r#"`configuration["a"]` should be a string but is null"#);
    bad(r#"{"configuration":{"a":["s3cret"]}}"#, r#"`configuration["a"]` should be a string but is list"#);
    bad(r#"{"configuration":{"a":true}}"#, r#"`configuration["a"]` should be a string but is bool true"#);
    bad(r#"{"configuration":["a"]}"#, "`configuration` should be an object but is list");
    bad(r#"{"defer":"s3cret"}"#, "`defer` should be a boolean but is string");
    bad(r#"{"defer":1}"#, "`defer` should be a boolean but is number 1");
    bad(r#"{"msg":12.5}"#, "`msg` should be a string but is number 12.5");
    bad(r#"{"opa_policies":{"x.rego":7}}"#, r#"`opa_policies["x.rego"]` should be a string but is number 7"#);
    bad(r#"{"server_claims":[]}"#, "`server_claims` should be an object but is list");
    bad(
        r#"{"server_claims":{"collectives":"x"}}"#,
        "`server_claims.collectives` should be a list but is string",
    );
    bad(
        r#"{"server_claims":{"collectives":["x",7]}}"#,
        "`server_claims.collectives[1]` should be a string but is number 7",
    );
    bad(
        r#"{"server_claims":{"permissions":{"streams":"yes"}}}"#,
        "`server_claims.permissions.streams` should be a boolean but is string",
    );
}

#[test]
fn values_that_may_be_secret_are_not_shown() {
    bad(r#"{"key":4711}"#, "`key` should be a string but is number");
    bad(
        r#"{"configuration":{"plugin.nats.pass":4711}}"#,
        r#"`configuration["plugin.nats.pass"]` should be a string but is number"#,
    );
    let reply = good(
        r#"{"key":"s3cret1","configuration":{"plugin.nats.pass":"s3cret2"},"opa_policies":{"a.rego":"s3cret3"}}"#,
    );
    assert!(!format!("{reply:?}").contains("s3cret"));
}

#[test]
fn errors_are_bounded_and_carry_no_control_characters() {
    let long = "x".repeat(5000);
    for text in [
        format!(r#"{{"configuration":{{"{long}":{}}}}}"#, "9".repeat(5000)),
        format!(r#"{{"configuration":{{"a\n\u001b[2J{long}":1}}}}"#),
        format!(r#"{{"configuration":{{"a":1{long}}}}}"#),
    ] {
        let error = decode_reply(text.as_bytes()).unwrap_err().to_string();
        assert!(error.chars().count() <= 300 && !error.contains(|c: char| c.is_control()), "{error}");
    }
}

#[test]
fn expiry_is_read_as_the_token_library_of_the_peer_reads_it() {
    let exp =
        |text: &str| good(&format!(r#"{{"server_claims":{{"exp":{text}}}}}"#)).server_claims.unwrap().exp;
    assert_eq!(exp("157680000"), Some(157_680_000));
    assert_eq!(exp("1827512740.9"), Some(1_827_512_740));
    assert_eq!(exp("1.8e9"), Some(1_800_000_000));
    assert_eq!(exp("\"1827512740\""), Some(1_827_512_740));
    assert_eq!(exp("-5"), Some(-5));
    bad(
        r#"{"server_claims":{"exp":"1y"}}"#,
        "`server_claims.exp` should be a number of seconds since 1970 but is string",
    );
    bad(
        r#"{"server_claims":{"exp":1e300}}"#,
        "`server_claims.exp` should be a number of seconds since 1970 but is number 1e300",
    );
    bad(
        r#"{"server_claims":{"exp":true}}"#,
        "`server_claims.exp` should be a number of seconds since 1970 but is bool true",
    );
}

#[test]
fn deep_and_endless_replies_are_refused_before_they_are_read() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(matches!(
        decode_reply(deep.as_bytes()),
        Err(HelperReplyError::Limit(JsonError::TooDeep { limit: 64 }))
    ));
    let many = format!("{{\"a\":[{}0]}}", "0,".repeat(300_000));
    assert!(matches!(decode_reply(many.as_bytes()), Err(HelperReplyError::Limit(JsonError::TooMany { .. }))));
}
