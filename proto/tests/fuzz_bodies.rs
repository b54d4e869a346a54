//! Every fuzz body runs over the recorded messages, over hand-made nasties, and over nasties inside good layers.
#![cfg(test)]

mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use quartermaster_proto::{
    choria::{
        agents::{CsrReply, JwtReply, decode_output},
        envelope::{open_reply, open_request},
        event, rpc,
    },
    fuzzing::{self, BODIES},
};
use support::{
    Kind, RECORDINGS,
    forged::{REPLY_V1, REPLY_V2, reply_v1, reply_v2, request_v1, request_v2, transport_v1, transport_v2},
    recording, replies, requests, vector,
};

fn run_all(bytes: &[u8]) {
    for (_, body) in BODIES {
        body(bytes);
    }
}

/// Recorded messages and their payloads.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for name in RECORDINGS {
        seeds.extend(recording(name).into_iter().map(|line| line.data.into_bytes()));
        seeds.extend(requests(name).into_iter().map(|open| open.signed.to_vec()));
        seeds.extend(requests(name).into_iter().map(|open| open.request.payload.to_vec()));
        seeds.extend(replies(name).into_iter().map(|open| open.reply.payload));
    }
    for name in RECORDINGS {
        let answers =
            replies(name).into_iter().filter_map(|open| rpc::decode_reply(&open.reply.payload).ok());
        for answer in answers {
            seeds.extend(decode_output::<JwtReply>(&answer).ok().map(|answer| answer.jwt.into_bytes()));
            seeds.extend(decode_output::<CsrReply>(&answer).ok().map(|answer| answer.csr.into_bytes()));
        }
    }
    for name in ["v2.signer.jwt", "v1-x509.provisioner.pem", "v1-x509-key.plaintext-key.pem"] {
        seeds.push(vector(name).into_bytes());
    }
    for name in ["v1-insecure", "v1-x509", "v2"] {
        seeds.push(vector(&format!("{name}.helper-input.json")).into_bytes());
    }
    let exchange = vector("provider-exchange.txt");
    seeds.extend(exchange.lines().filter_map(|line| line.get(2..)).map(|line| line.as_bytes().to_vec()));
    seeds.extend(PROVIDER_SEEDS.map(|text| text.as_bytes().to_vec()));
    seeds.push(exchange.into_bytes());
    seeds
}

/// What the exchange with a provider does not show.
const PROVIDER_SEEDS: [&str; 14] = [
    r#"{"id":6,"error":{"code":"failed","message":"m","detail":"d","x_retry_after_ms":5,"x_state":"partial","x_undo":[{"action":"a","attrs":{"b":1e3}}],"x_diagnostics":[{"severity":"warning","path":["a",1],"message":"m"}]}}"#,
    r#"{"id":8,"result":{"state":"done","outputs":{"a":"\u2028\ud800"},"undo":{"action":"a"}}}"#,
    r#"{"id":8,"result":{"diagnostics":[{"message":"m"}]}}"#,
    r#"{"method":"x/progress","params":{"id":7,"done":3,"total":10.5,"message":"m"}}"#,
    r#"{"method":"x/cancel","params":{"id":7,"reason":"timeout","grace_ms":10000}}"#,
    r#"{"id":10,"method":"execute","params":{"action":"a","attrs":{"n":-0.10},"undo":true,"x_call":{"run":"r","step":"s","attempt":1,"key":"k","deadline_ms":600000,"traceparent":"t"}}}"#,
    r#"{"id":12,"method":"x/validate","params":{"action":"a","attrs":{"name":null},"unknown":[["name",3]]}}"#,
    r#"{"id":2,"method":"configure","params":{"config":{},"x_host":{"name":"h","version":"0","protocol":"1","extensions":["cancel"],"max_in_flight":8,"max_frame_bytes":16777216}}}"#,
    r#"{"id":1,"result":{"name":"a","protocol":1,"x_protocols":["1"],"x_extensions":{"max_in_flight":8,"new":[1],"require":["cancel"]},"config":{"s":{"type":"string","default":"\"\\\"q\\\"\"","x_enum":["a"]},"a":{"type":"any","default":"\"[1]\"","x_sensitive":true}}}}"#,
    r#"{"name":"a","protocol":"1","actions":{"b":{"attrs":{"c":{"type":"set(number)","default":"[2,1.0,1]"}},"outputs":{"type":"object({a=optional(tuple([any])), b:string\n})"},"x_timeout_ms":0}}}"#,
    "object({ status = number, body: string,\n headers = optional(map(set(list(tuple([any,bool,]))))) })",
    "[1, 1.0, 10e-1, 1e400, -0, {\"a\": {\"b\": null}, \"b\": \"12\"}, [[\"1\", 2]], [true, {}]]",
    "{\"level\":\"warn\",\"msg\":\"m\",\"k\":1}\n[ERROR] x\r\npanic: y\n\ngoroutine 1\nthread 'main' panicked at z",
    "\u{feff}{\"id\":1}\r\n\r\nstray\u{2028}text\u{85}\r",
];

/// Texts that parsers have fallen over.
fn nasties() -> Vec<Vec<u8>> {
    let mut nasties: Vec<Vec<u8>> = [
        "",
        " ",
        "null",
        "true",
        "0",
        "-",
        "\"",
        "\"\\",
        "\"\\u",
        "{",
        "[",
        "}",
        "{}",
        "[]",
        "{}{}",
        "{\"a\":1,\"a\":2}",
        "{\"protocol\":\"choria:transport:1\",\"protocol\":\"choria:transport:1\"}",
        "\u{feff}{}",
        "{\"\\ud800\":\"\\ud800\"}",
        "{\"msg\":\"\\udc00\\ud800\"}",
        "{\"message\":\"\\u0000\"}",
        "{\"n\":18446744073709551616,\"m\":-9223372036854775809,\"e\":1e400,\"f\":-0.0}",
        "{\"action\":\"x\",\"statuscode\":18446744073709551615,\"statusmsg\":\"\",\"data\":{}}",
        "{\"action\":\"x\",\"statuscode\":256,\"statusmsg\":\"\",\"data\":{}}",
        "{\"action\":\"x\",\"statuscode\":1.0,\"statusmsg\":\"\",\"data\":{}}",
        "{\"action\":\"x\",\"statuscode\":0,\"statusmsg\":\"OK\",\"data\":[]}",
        "{\"action\":\"x\",\"statuscode\":0,\"statusmsg\":\"OK\",\"data\":null}",
        "{\"action\":\"x\",\"statuscode\":0,\"statusmsg\":\"OK\",\"data\":{\"message\":{}}}",
        "{\"server_claims\":{\"exp\":18446744073709551616}}",
        "{\"server_claims\":{\"exp\":-1e308}}",
        "999999999999999999999999999:1-1",
        "~~~~~~~~",
        "..",
        "eyJhbGciOiJub25lIn0.e30.",
        "eyJhbGciOiJIUzI1NiJ9.bnVsbA.AAAA",
        "eyJhbGciOiJFZERTQSIsImFsZyI6Im5vbmUifQ.eyJjaHQiOjd9.AAAA",
        "-----BEGIN CERTIFICATE REQUEST-----\nMIIC\n-----END CERTIFICATE REQUEST-----\n",
        "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
        "-----BEGIN \u{1b}[2J-----\n%%\n-----END \u{1b}[2J-----\n",
        "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    nasties.push(b"[".repeat(200_000));
    nasties.push(b"{\"a\":".repeat(20_000));
    nasties.push([b"[".repeat(20_000), b"]".repeat(20_000)].concat());
    nasties.push(format!("[{}0]", "0,".repeat(250_000)).into_bytes());
    nasties.push(vec![b'"'; 100_001]);
    nasties.push(vec![b'\\'; 100_001]);
    nasties.push((0..=255).collect());
    nasties.push(b"{\"identity\":\"\xff\xfe\"}".to_vec());
    nasties
}

#[test]
fn every_body_survives_the_recorded_messages_and_the_nasties() {
    for seed in seeds().iter().chain(&nasties()) {
        run_all(seed);
    }
}

#[test]
fn every_body_survives_nasties_inside_good_layers() {
    for nasty in nasties().iter().filter_map(|nasty| std::str::from_utf8(nasty).ok()) {
        for text in [
            transport_v1("{}", nasty),
            transport_v2("{}", nasty),
            reply_v1(nasty),
            reply_v2(nasty),
            request_v1(nasty),
            request_v2(nasty),
            reply_v1(&REPLY_V1.replace("\"pong\"", &serde_json::to_string(nasty).unwrap())),
            reply_v2(&REPLY_V2.replace("cG9uZw==", &STANDARD.encode(nasty))),
        ] {
            fuzzing::open_request(text.as_bytes());
            fuzzing::open_reply(text.as_bytes());
        }
    }
}

#[test]
fn recorded_messages_cut_short_anywhere_are_errors() {
    for name in ["v1-insecure", "v2"] {
        for line in recording(name) {
            for end in (0..line.data.len()).step_by(7) {
                let cut = &line.data.as_bytes()[..end];
                match line.kind() {
                    Kind::Event => assert!(event::decode(cut).is_err()),
                    Kind::Request(_) => assert!(open_request(cut).is_err()),
                    Kind::Reply(_) => assert!(open_reply(cut).is_err()),
                }
            }
        }
    }
}
