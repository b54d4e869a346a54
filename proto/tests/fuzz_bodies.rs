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
    seeds.extend(MESH_SEEDS.map(|text| text.as_bytes().to_vec()));
    seeds
}

/// Keys and values of the node side.
const MESH_SEEDS: [&str; 24] = [
    "web1=2Eexample=2Ecom.forge",
    "web1.forge.http.port",
    "=C3=A9",
    "pair/postgres/postgres/web1/forge/main",
    "own/forge/admin-password/web1",
    "provisioner.web1=2Eexample=2Ecom",
    "v1.UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4.AAAA",
    r##"{"node":"web1","module":"forge","serial":81,"provisioning":{"templates":{"reference":"nats-object:t/a","digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},"files":[{"path":"/a","template":"a","owner-at-runtime":"managed","managed":{"format":"block","comment":"#","comment-end":"*/","at":"start"},"on-change":{"restart":"a.service","start":true},"mode":"0640"},{"path":"/b","template":"b","owner-at-runtime":"seed","filters":true}],"placement":{"port":{"http":1e400}},"secrets":[{"name":"s","path":"/s"}],"provisions":[{"provision":"p","provider":"p","credential":"pair","local":"l","name":"n","at":"web2","on-change":{"command":["/bin/x","y"]}}],"provides":["q"],"items":[{"collection":"c","template":"c"}],"collections":[{"collection":"d","comment":""}],"odd":1}}"##,
    r#"{"node":"web1","module":"forge","provisioning":{"templates":[]}}"#,
    r#"{"kind":"config","owner":"mesh-config","source":{"bucket":"mesh-config_resolved","key":"<node>.<module>.<key>"}}"#,
    r#"{"kind":"secret","owner":"v","source":{"request":"mesh-vault.get","changed":"c","stream":"s","box-key":"AA=="}}"#,
    r#"{"kind":"dir","owner":"c","source":{"plan":"placement"}}"#,
    r#"{"node":"web1","module":"forge","kind":"bound","name":"postgres.main:host","owner":null,"by":["/a","item:c"]}"#,
    r#"{"state":"bound","as":"a","user":1,"values":{"host":null,"port":9007199254740993}}"#,
    r#"{"node":"web1","collection":"c","contributor":"forge","text":"x\n"}"#,
    r#"{"name":"own/forge/pw","key":"B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=","revision":81}"#,
    r#"{"box":"vQv5oSC9M+1Ev4semI3dpo5aXqlbmkynoT8ezJaXrkAlyQWpN4QRZ8u5e3HR5yRF+9A0O92pCGzqa3NE2h8YPw==","version":3}"#,
    r#"{"name":"provision/a/b/c/d","box":"vQv5oSC9M+1Ev4semI3dpo5aXqlbmkynoT8ezJaXrkAlyQWpN4QRZ8u5e3HR5yRF+9A0O92pCGzqa3NE2h8YPw=="}"#,
    r#"{"name":"own/forge/pw","version":4,"at":"2026-11-29T18:00:00.123456789+01:00"}"#,
    r#"{"module":"forge","kind":"config","key":"http.port"}"#,
    r#"{"node":"web1","module":"forge","run":"r","revision":1,"at":"2026-11-29T18:00:00Z","state":"applied","files":[{"path":"/a","action":"kept","digest":"sha256:0"}],"programs":[{"command":["/x"],"result":"failed","reason":"r"}]}"#,
    r#"{"node":"web1","module":"forge","run":"r","revision":1,"at":"2026-11-29T18:00:00Z","state":"failed","reason":"r","retry-at":"2026-11-29T18:10:00Z"}"#,
    r#"{"id":7,"op":"write","module":"forge","plan":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","revision":81,"files":[{"path":"/a","content":"YQD/","sha256":"00","sensitive":true}]}"#,
    r#"{"id":7,"ok":{"files":[{"path":"/a","err":{"code":"io","reason":"r"}}],"programs":[{"reload":"a.service","result":"done"}]}}"#,
];

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
