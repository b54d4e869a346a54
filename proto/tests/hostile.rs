//! Messages made to hurt: each malformation that has brought a peer down is an error here, named for what it is.
#![cfg(test)]

mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use quartermaster_proto::{
    choria::{
        envelope::{open_reply, open_request},
        event, rpc,
    },
    json::Limits,
};
use sha2::{Digest as _, Sha256};
use support::forged::{
    REPLY_V1, REPLY_V2, REQUEST_V1, REQUEST_V2, reply_v1, reply_v2, request_v1, request_v2, transport_v1,
    transport_v2,
};

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn reply_fault(text: &str) -> String {
    chain(&open_reply(text.as_bytes()).expect_err(text))
}

fn request_fault(text: &str) -> String {
    chain(&open_request(text.as_bytes()).expect_err(text))
}

/// `good` with one part replaced must be refused for a reason that contains `reason`.
fn check_reply(good: &str, part: &str, replacement: &str, reason: &str) {
    assert!(good.contains(part), "{part} stands in {good}");
    let changed = good.replacen(part, replacement, 1);
    let wrap = if good == REPLY_V1 { reply_v1 } else { reply_v2 };
    let fault = reply_fault(&wrap(&changed));
    assert!(fault.contains(reason), "{changed}: {fault}");
}

fn check_request(good: &str, part: &str, replacement: &str, reason: &str) {
    assert!(good.contains(part), "{part} stands in {good}");
    let changed = good.replacen(part, replacement, 1);
    let wrap = if good == REQUEST_V1 { request_v1 } else { request_v2 };
    let fault = request_fault(&wrap(&changed));
    assert!(fault.contains(reason), "{changed}: {fault}");
}

#[test]
fn the_samples_of_this_file_are_good() {
    for text in [reply_v1(REPLY_V1), reply_v2(REPLY_V2)] {
        assert_eq!(open_reply(text.as_bytes()).unwrap().reply.payload, b"pong");
    }
    for text in [request_v1(REQUEST_V1), request_v2(REQUEST_V2)] {
        assert_eq!(*open_request(text.as_bytes()).unwrap().request.payload, b"cGluZw==");
    }
}

#[test]
fn headers_must_be_an_object() {
    let secure = "{}";
    for headers in ["null", "[]", "[\"a\",\"b\"]", "\"\"", "7"] {
        for text in [transport_v1(headers, secure), transport_v2(headers, secure)] {
            assert!(reply_fault(&text).contains("expected an object"), "{text}");
            assert!(request_fault(&text).contains("expected an object"), "{text}");
        }
    }
    let none = r#"{"protocol":"choria:transport:1","data":"e30="}"#;
    assert!(reply_fault(none).contains("missing field `headers`"));
}

#[test]
fn transport_must_be_known_and_base64() {
    assert_eq!(
        reply_fault("{\"protocol\":\"x\\u001b\",\"data\":\"\",\"headers\":{}}"),
        "the transport layer has unknown protocol `x\\u{1b}`"
    );
    for data in ["e30", "e3=0", "e30=\\n", "-_-_", "é"] {
        let text = format!(r#"{{"protocol":"choria:transport:1","data":"{data}","headers":{{}}}}"#);
        assert_eq!(reply_fault(&text), "field `data` of the transport layer is not base64", "{data}");
    }
    for text in ["", "null", "[]", "{}", "{\"protocol\":7}", "x", "\u{feff}{}"] {
        assert!(reply_fault(text).starts_with("cannot read the transport layer: "), "{text}");
        assert!(request_fault(text).starts_with("cannot read the transport layer: "), "{text}");
    }
}

#[test]
fn a_reply_address_that_is_no_plain_subject_is_refused() {
    for subject in ["a b", "a.>", "*", "a\\r\\nPUB x 0", "a..b"] {
        let headers = format!(r#"{{"reply-to":"{subject}"}}"#);
        assert_eq!(
            request_fault(&transport_v1(&headers, "{}")),
            "field `reply` of the transport layer is not a plain subject"
        );
    }
}

#[test]
fn every_part_of_a_protocol_1_reply_is_checked() {
    check_reply(REPLY_V1, "choria:reply:1", "choria:reply:2", "the message layer has unknown protocol");
    check_reply(REPLY_V1, r#""message":"pong""#, r#""message":7"#, "invalid type integer, expected a string");
    check_reply(REPLY_V1, r#""message":"pong""#, r#""message":null"#, "invalid type null, expected a string");
    check_reply(REPLY_V1, r#""message":"pong","#, "", "missing field `message`");
    check_reply(REPLY_V1, r#""agent":"discovery","#, "", "missing field `agent`");
    check_reply(REPLY_V1, r#""senderid":"n1""#, r#""senderid":["n1"]"#, "invalid type sequence");
    check_reply(REPLY_V1, "1795976868", "1e3", "invalid type floating");
    check_reply(REPLY_V1, "1795976868", "18446744073709551616", "invalid type floating");
    check_reply(REPLY_V1, "1795976868", "9223372036854775808", "invalid value integer");
    check_reply(REPLY_V1, r#""time":"#, r#""time":1,"time":"#, "duplicate field `time`");
    check_reply(REPLY_V1, r#"{"requestid""#, r#"[{"requestid""#, "invalid type sequence, expected an object");
}

#[test]
fn every_part_of_a_protocol_2_reply_is_checked() {
    check_reply(
        REPLY_V2,
        "io.choria.protocol.v2.reply",
        "choria:reply:1",
        "the message layer has unknown protocol",
    );
    check_reply(REPLY_V2, "cG9uZw==", "cG9uZw", "field `message` of the message layer is not base64");
    check_reply(REPLY_V2, r#""request":"x","#, "", "missing field `request`");
    check_reply(REPLY_V2, r#""sender":"n1""#, r#""sender":null"#, "invalid type null");
    check_reply(REPLY_V2, "1795976610702876071", "\"now\"", "invalid type string, expected i64");
    check_reply(REPLY_V2, "1795976610702876071", "17959766107028760710", "invalid value integer");
    check_reply(REPLY_V2, "{", "[{", "invalid type sequence, expected an object");
}

#[test]
fn a_hash_that_does_not_fit_is_refused_and_no_signature_makes_up_for_it() {
    for (good, from, to) in [
        (reply_v1(REPLY_V1), "choria:secure:reply:1", "pong"),
        (reply_v2(REPLY_V2), "io.choria.protocol.v2.secure_reply", "reply"),
    ] {
        let mut transport: serde_json::Value = serde_json::from_str(&good).unwrap();
        let secure = STANDARD.decode(transport["data"].as_str().unwrap()).unwrap();
        let mut secure: serde_json::Value = serde_json::from_slice(&secure).unwrap();
        assert!(secure.to_string().contains(from) && secure.to_string().contains(to));
        for hash in
            ["", "x", &STANDARD.encode(Sha256::digest("other")), &hex::encode(Sha256::digest(REPLY_V2))]
        {
            secure["hash"] = hash.into();
            secure["signature"] = "AAAA".into();
            transport["data"] = STANDARD.encode(secure.to_string()).into();
            assert_eq!(reply_fault(&transport.to_string()), "the hash of the reply does not fit its content");
        }
    }
}

#[test]
fn a_secure_layer_of_another_protocol_is_refused() {
    let relabel = |good: &str, from: &str| {
        let mut transport: serde_json::Value = serde_json::from_str(good).unwrap();
        let secure =
            String::from_utf8(STANDARD.decode(transport["data"].as_str().unwrap()).unwrap()).unwrap();
        assert!(secure.contains(from));
        transport["data"] = STANDARD.encode(secure.replacen(from, "x", 1)).into();
        transport.to_string()
    };
    let expected = "the secure layer has unknown protocol `x`";
    assert_eq!(reply_fault(&relabel(&reply_v1(REPLY_V1), "choria:secure:reply:1")), expected);
    assert_eq!(reply_fault(&relabel(&reply_v2(REPLY_V2), "io.choria.protocol.v2.secure_reply")), expected);
    assert_eq!(request_fault(&relabel(&request_v1(REQUEST_V1), "choria:secure:request:1")), expected);
    assert_eq!(
        request_fault(&relabel(&request_v2(REQUEST_V2), "io.choria.protocol.v2.secure_request")),
        expected
    );
}

#[test]
fn signed_replies_are_taken_for_their_content() {
    let secure = format!(
        r#"{{"protocol":"io.choria.protocol.v2.secure_reply","reply":"{}","hash":"{}","signature":"AAAA","sender":"x.y.z"}}"#,
        STANDARD.encode(REPLY_V2),
        STANDARD.encode(Sha256::digest(REPLY_V2))
    );
    let open = open_reply(transport_v2("{}", &secure).as_bytes()).unwrap();
    assert_eq!((open.reply.sender.as_str(), open.transport_sender.as_str()), ("n1", ""));
}

#[test]
fn every_part_of_a_protocol_1_request_is_checked() {
    let id = "6dc8fa6141484f01838722e1aab10487";
    check_request(REQUEST_V1, id, &id[1..], "field `requestid` of the message layer must have 32 characters");
    check_request(REQUEST_V1, id, &format!("{id}0"), "must have 32 characters");
    check_request(REQUEST_V1, "choria=p", "", "field `callerid` of the message layer may not be empty");
    check_request(REQUEST_V1, r#""provisioning""#, r#""""#, "field `collective`");
    check_request(REQUEST_V1, r#""discovery""#, r#""""#, "field `agent`");
    check_request(REQUEST_V1, "cGluZw==", "", "field `message`");
    check_request(REQUEST_V1, r#""ttl":60"#, r#""ttl":29"#, "must be at least 30");
    check_request(REQUEST_V1, r#""ttl":60"#, r#""ttl":-60"#, "invalid value integer");
    check_request(REQUEST_V1, r#""ttl":60"#, r#""ttl":4294967296"#, "invalid value integer");
    check_request(REQUEST_V1, r#""ttl":60,"#, "", "missing field `ttl`");
    check_request(REQUEST_V1, r#""senderid":"p","#, "", "missing field `senderid`");
    check_request(REQUEST_V1, "choria:request:1", "choria:reply:1", "unknown protocol");
    for list in ["fact", "cf_class", "identity", "compound"] {
        check_request(
            REQUEST_V1,
            &format!(r#""{list}":[]"#),
            &format!(r#""{list}":null"#),
            "invalid type null",
        );
        check_request(
            REQUEST_V1,
            &format!(r#""{list}":[]"#),
            r#""x":[]"#,
            &format!("missing field `{list}`"),
        );
    }
    check_request(REQUEST_V1, r#""agent":["choria_provision"],"#, "", "missing field `agent`");
    check_request(REQUEST_V1, r#""filter":{"#, r#""x":{"#, "missing field `filter`");
    check_request(
        REQUEST_V1,
        r#"{"fact":[],"#,
        r#"null,"x":{"fact":[],"#,
        "invalid type null, expected an object",
    );
}

#[test]
fn every_part_of_a_protocol_2_request_is_checked() {
    check_request(
        REQUEST_V2,
        r#""id":"x""#,
        r#""id":"""#,
        "field `id` of the message layer may not be empty",
    );
    check_request(REQUEST_V2, "choria=p", "", "field `caller`");
    check_request(
        REQUEST_V2,
        r#""ttl":60"#,
        r#""ttl":0"#,
        "field `ttl` of the message layer must be at least 1",
    );
    check_request(
        REQUEST_V2,
        "1795976610697700549",
        "0",
        "field `time` of the message layer must be at least 1",
    );
    check_request(REQUEST_V2, "1795976610697700549", "1.795976610697700549e18", "invalid type floating");
    check_request(REQUEST_V2, "Y0dsdVp3PT0=", "ping=", "field `message` of the message layer is not base64");
    check_request(REQUEST_V2, r#""agent":"discovery","#, "", "missing field `agent`");
    check_request(REQUEST_V2, "io.choria.protocol.v2.request", "choria:request:1", "unknown protocol");
}

#[test]
fn a_protocol_2_request_may_come_without_a_filter() {
    let start = REQUEST_V2.find(",\"filter\"").unwrap();
    let open = open_request(request_v2(&format!("{}}}", &REQUEST_V2[..start])).as_bytes()).unwrap();
    assert!(open.request.filter.matches(&[], "anybody"));
}

#[test]
fn the_secure_layer_of_a_request_must_be_complete() {
    let whole_v1 = r#"{"protocol":"choria:secure:request:1","message":"m","signature":"s","pubcert":"c"}"#;
    let whole_v2 = r#"{"protocol":"io.choria.protocol.v2.secure_request","request":"eA==","signature":"eA==","caller":"c"}"#;
    for (whole, wrap, fields) in [
        (whole_v1, transport_v1 as fn(&str, &str) -> String, ["message", "signature", "pubcert"]),
        (whole_v2, transport_v2 as fn(&str, &str) -> String, ["request", "signature", "caller"]),
    ] {
        for field in fields {
            let mut secure: serde_json::Value = serde_json::from_str(whole).unwrap();
            secure[field] = "".into();
            let fault = request_fault(&wrap("{}", &secure.to_string()));
            assert_eq!(fault, format!("field `{field}` of the secure layer may not be empty"));
            secure.as_object_mut().unwrap().remove(field);
            let fault = request_fault(&wrap("{}", &secure.to_string()));
            assert!(fault.contains(&format!("missing field `{field}`")), "{fault}");
        }
    }
    let unsigned = whole_v2.replacen("eA==\",\"caller", "eA\",\"caller", 1);
    assert_eq!(
        request_fault(&transport_v2("{}", &unsigned)),
        "field `signature` of the secure layer is not base64"
    );
}

#[test]
fn layers_of_the_other_generation_are_refused() {
    let secure = |text: &str| {
        let transport: serde_json::Value = serde_json::from_str(text).unwrap();
        String::from_utf8(STANDARD.decode(transport["data"].as_str().unwrap()).unwrap()).unwrap()
    };
    assert!(open_reply(transport_v2("{}", &secure(&reply_v1(REPLY_V1))).as_bytes()).is_err());
    assert!(open_reply(transport_v1("{}", &secure(&reply_v2(REPLY_V2))).as_bytes()).is_err());
    assert!(open_request(transport_v2("{}", &secure(&request_v1(REQUEST_V1))).as_bytes()).is_err());
    assert!(open_request(transport_v1("{}", &secure(&request_v2(REQUEST_V2))).as_bytes()).is_err());
    assert!(open_reply(request_v1(REQUEST_V1).as_bytes()).is_err());
    assert!(open_request(reply_v2(REPLY_V2).as_bytes()).is_err());
}

#[test]
fn every_layer_is_measured_before_it_is_read() {
    let deep = "[".repeat(200_000);
    for text in [
        deep.clone(),
        transport_v1(&deep, "{}"),
        transport_v1("{}", &deep),
        transport_v2("{}", &deep),
        reply_v1(&deep),
        reply_v2(&deep),
    ] {
        assert!(reply_fault(&text).contains("JSON is nested deeper than 64 levels"), "{}", &text[..60]);
    }
    let many = format!("[{}0]", "0,".repeat(Limits::FRAME.max_items));
    assert!(reply_fault(&reply_v2(&many)).contains("JSON holds more than 200000 values"));
    let large = " ".repeat(Limits::FRAME.max_bytes + 1);
    assert_eq!(
        reply_fault(&large),
        "cannot read the transport layer: JSON of 8388609 bytes is over the limit of 8388608"
    );
    assert!(rpc::decode_reply(large.as_bytes()).is_err());
    assert!(event::decode(&large.as_bytes()[..=Limits::EVENT.max_bytes]).is_err());
}
