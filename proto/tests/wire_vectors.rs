//! Every message recorded from real peers comes apart and together again, byte for byte.
#![cfg(test)]

mod support;

use quartermaster_proto::choria::{
    Generation, Identity,
    agents::{
        self, ConfigureInput, CsrInput, CsrReply, Gen25519Input, Gen25519Reply, InventoryReply, JwtInput,
        JwtReply, MessageReply, RestartInput, decode_input, decode_output,
    },
    discovery,
    envelope::{OpenRequest, Proof, Reply, request_body, seal_reply, seal_request},
    event::{self, EventFormat},
    ksuid::Ksuid,
    rpc, subject,
};
use quartermaster_proto::time::WallClock;
use support::{Kind, Line, RECORDINGS, recording, replies, requests, vector};

const PROVISIONING: &str = "provisioning";

fn generation(name: &str) -> Generation {
    if name == "v2" { Generation::V2 } else { Generation::V1 }
}

fn borrowed(hop: &[String; 3]) -> [&str; 3] {
    [&hop[0], &hop[1], &hop[2]]
}

#[test]
fn requests_are_rebuilt_to_the_identical_bytes() {
    let mut seen = 0;
    for name in RECORDINGS {
        for line in recording(name) {
            let Kind::Request(open) = line.kind() else { continue };
            assert_eq!(open.generation, generation(name));
            assert_eq!(line.reply, "", "the reply subject travels in the header alone");
            let body = request_body(open.generation, &open.request).unwrap();
            assert_eq!(body, open.signed, "{name}: the signed bytes");
            let sent = seal_request(
                open.generation,
                &body,
                &open.proof,
                &open.reply_to,
                &open.transport_sender,
                Some(borrowed(&line.hop())),
            );
            assert_eq!(String::from_utf8(sent.unwrap()).unwrap(), line.data, "{name}: the transport bytes");
            seen += 1;
        }
    }
    assert_eq!(seen, 6 + 6 + 6 + 6);
}

#[test]
fn replies_are_rebuilt_to_the_identical_bytes() {
    let mut seen = 0;
    for name in RECORDINGS {
        for line in recording(name) {
            let Kind::Reply(open) = line.kind() else { continue };
            assert_eq!(open.generation, generation(name));
            assert_eq!(open.transport_sender, open.reply.sender);
            let sent = seal_reply(open.generation, &open.reply, Some(borrowed(&line.hop()))).unwrap();
            assert_eq!(String::from_utf8(sent).unwrap(), line.data, "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, 6 + 6 + 6 + 6);
}

#[test]
fn events_are_rebuilt_to_the_identical_bytes_in_both_encodings() {
    let mut seen = [0, 0];
    for name in RECORDINGS {
        for line in recording(name).iter().filter(|line| matches!(line.kind(), Kind::Event)) {
            let decoded = event::decode(line.data.as_bytes()).unwrap();
            let format = if line.data.starts_with("{\"specversion\"") {
                EventFormat::CloudEvent
            } else {
                EventFormat::Choria
            };
            assert_eq!(String::from_utf8(event::encode(&decoded, format)).unwrap(), line.data);
            assert_eq!(line.subject, subject::event(decoded.kind, &decoded.component));
            seen[usize::from(format == EventFormat::Choria)] += 1;
        }
    }
    assert_eq!(seen, [4 + 3 + 3 + 3, 4], "cloud events, and each provisioner's own start");
}

fn is_discovery(open: &OpenRequest) -> bool {
    open.request.agent == agents::DISCOVERY
}

#[test]
fn requests_go_to_and_ask_for_the_subjects_we_would_use() {
    let web1 = Identity::parse("web1.example.net").unwrap();
    for name in RECORDINGS {
        for line in recording(name) {
            let Kind::Request(open) = line.kind() else { continue };
            let expected = if is_discovery(&open) {
                subject::broadcast(PROVISIONING, agents::DISCOVERY)
            } else {
                subject::node(PROVISIONING, &web1)
            };
            assert_eq!(line.subject, expected);
            let request = &open.request;
            assert_eq!(open.reply_to, subject::reply(&request.collective, &request.caller, &request.id));
        }
    }
}

#[test]
fn replies_answer_the_request_before_them_at_its_reply_subject() {
    for name in RECORDINGS {
        let mut asked: Option<OpenRequest> = None;
        for line in recording(name) {
            match line.kind() {
                Kind::Event => {}
                Kind::Request(open) => asked = Some(*open),
                Kind::Reply(open) => {
                    let asked = asked.take().expect("a request before each reply");
                    assert_eq!(line.subject, asked.reply_to);
                    assert_eq!(open.reply.request, asked.request.id);
                    assert_eq!(open.reply.agent, asked.request.agent);
                }
            }
        }
    }
}

#[test]
fn discovery_payloads_are_ours() {
    for name in RECORDINGS {
        let asked = requests(name).into_iter().find(is_discovery).unwrap();
        assert_eq!(*asked.request.payload, discovery::ping_payload(asked.generation));
        assert!(discovery::is_ping(&asked.request.payload));
        assert!(asked.request.filter.matches(&[agents::CHORIA_PROVISION], "web1.example.net"));
        assert!(!asked.request.filter.matches(&[agents::RPCUTIL], "web1.example.net"));
        let answer = replies(name).into_iter().find(|open| open.reply.agent == agents::DISCOVERY).unwrap();
        assert_eq!(answer.reply.payload, discovery::PONG);
    }
}

/// The typed arguments of a recorded request, written again.
fn rewritten(action: &str, data: &serde_json::value::RawValue) -> String {
    match action {
        "jwt" => decode_input::<JwtInput<'_>>(data).unwrap().to_json().to_string(),
        "gen25519" => decode_input::<Gen25519Input<'_>>(data).unwrap().to_json().to_string(),
        "gencsr" => decode_input::<CsrInput<'_>>(data).unwrap().to_json().to_string(),
        "configure" => decode_input::<ConfigureInput<'_>>(data).unwrap().to_json().to_string(),
        "restart" => decode_input::<RestartInput<'_>>(data).unwrap().to_json().to_string(),
        "inventory" => "{}".to_owned(),
        other => panic!("no such action was recorded: {other}"),
    }
}

#[test]
fn action_requests_are_rebuilt_from_typed_arguments() {
    for name in RECORDINGS {
        let mut actions = Vec::new();
        for open in requests(name).into_iter().filter(|open| !is_discovery(open)) {
            let asked = rpc::decode_request(&open.request.payload).unwrap();
            assert_eq!(asked.agent, open.request.agent);
            assert_eq!(
                open.request.filter,
                quartermaster_proto::choria::filter::Filter::for_agent(&asked.agent)
            );
            let data = rewritten(&asked.action, &asked.data);
            let payload = rpc::encode_request(&asked.agent, &asked.action, &data).unwrap();
            assert_eq!(payload, open.request.payload, "{name} {}", asked.action);
            actions.push(asked.action);
        }
        let key = if name.starts_with("v1-x509") { "gencsr" } else { "gen25519" };
        actions.sort();
        let mut expected = ["jwt", key, "inventory", "configure", "restart"];
        expected.sort_unstable();
        assert_eq!(actions, expected, "{name}");
    }
}

#[test]
fn configurations_travel_as_the_text_we_would_write() {
    for name in RECORDINGS {
        let open = requests(name)
            .into_iter()
            .find(|open| open.request.payload.windows(9).any(|w| w == b"configure"));
        let asked = rpc::decode_request(&open.unwrap().request.payload).unwrap();
        let input: ConfigureInput<'_> = decode_input(&asked.data).unwrap();
        let configuration = serde_json::from_str(&input.config).unwrap();
        assert_eq!(*ConfigureInput::config_text(&configuration), *input.config, "{name}");
    }
}

#[test]
fn action_replies_decode_and_are_rebuilt() {
    for name in RECORDINGS {
        for open in replies(name).into_iter().filter(|open| open.reply.agent != agents::DISCOVERY) {
            let answer = rpc::decode_reply(&open.reply.payload).unwrap();
            assert_eq!(rpc::encode_reply(&answer), open.reply.payload);
            match answer.action.as_str() {
                "jwt" => {
                    let outputs: JwtReply = decode_output(&answer).unwrap();
                    assert_eq!((outputs.jwt.split('.').count(), outputs.ecdh_public.len()), (3, 64));
                }
                "gen25519" => {
                    let outputs: Gen25519Reply = decode_output(&answer).unwrap();
                    assert_eq!((outputs.public_key.len(), outputs.signature.len()), (64, 128));
                    assert_eq!(outputs.directory, "/etc/choria");
                }
                "gencsr" => {
                    let outputs: CsrReply = decode_output(&answer).unwrap();
                    assert!(outputs.csr.starts_with("-----BEGIN CERTIFICATE REQUEST-----\n"));
                    assert!(outputs.public_key.starts_with("-----BEGIN PUBLIC KEY-----\n"));
                    assert_eq!(outputs.ssldir, "/etc/choria/ssl");
                }
                "inventory" => {
                    let outputs: InventoryReply = decode_output(&answer).unwrap();
                    assert_eq!(
                        (outputs.version.as_str(), outputs.upgradable),
                        ("0.29.4", name == "v1-insecure")
                    );
                }
                "configure" | "restart" => {
                    let outputs: MessageReply = decode_output(&answer).unwrap();
                    assert!(
                        outputs.message.starts_with("Wrote ") || outputs.message.starts_with("Restarting ")
                    );
                }
                other => panic!("no such action was recorded: {other}"),
            }
        }
    }
}

#[test]
fn ids_and_times_have_the_form_of_their_generation() {
    for name in RECORDINGS {
        for open in requests(name) {
            let request = &open.request;
            assert_eq!((request.collective.as_str(), request.ttl), (PROVISIONING, 60));
            match open.generation {
                Generation::V1 => {
                    let id: uuid::Uuid = request.id.parse().unwrap();
                    assert_eq!(id.simple().to_string(), request.id);
                    assert_eq!(request.time.nanos() % 1_000_000_000, 0);
                }
                Generation::V2 => {
                    let id: Ksuid = request.id.parse().unwrap();
                    assert_eq!(id.to_string(), request.id);
                    assert!((request.time.seconds() - id.seconds()).abs() <= 1);
                    assert_ne!(request.time.nanos() % 1_000_000_000, 0);
                }
            }
        }
    }
}

#[test]
fn proofs_are_of_the_network_they_were_recorded_in() {
    let certificate = vector("v1-x509.provisioner.pem");
    let token = vector("v2.signer.jwt");
    for name in RECORDINGS {
        for open in requests(name) {
            match (name, &open.proof) {
                ("v1-insecure", Proof::Insecure) => {}
                ("v1-x509", Proof::V1 { certificate_pem, .. }) => assert_eq!(*certificate_pem, certificate),
                ("v1-x509-key", Proof::V1 { certificate_pem, .. }) => {
                    assert!(certificate_pem.starts_with("-----BEGIN CERTIFICATE-----\n"));
                }
                ("v2", Proof::V2 { caller_jwt, signature }) => {
                    assert_eq!((caller_jwt.trim(), signature.len()), (token.trim(), 64));
                }
                (_, proof) => panic!("{name} carries {proof:?}"),
            }
        }
    }
}

#[test]
fn a_known_reply_has_its_known_hash() {
    let reply = Reply {
        request: "51255f1a19cb456fb666b4e55870a94b".to_owned(),
        sender: "vm".to_owned(),
        agent: "discovery".to_owned(),
        time: WallClock::from_seconds(1_795_976_868),
        payload: b"pong".to_vec(),
    };
    let sent = seal_reply(Generation::V1, &reply, None).unwrap();
    let line =
        Line { subject: ".reply.".to_owned(), reply: String::new(), data: String::from_utf8(sent).unwrap() };
    let Kind::Reply(open) = line.kind() else { panic!("it is a reply") };
    assert_eq!(open.reply, reply);
    let transport: serde_json::Value = serde_json::from_str(&line.data).unwrap();
    let secure = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        transport["data"].as_str().unwrap(),
    );
    let secure: serde_json::Value = serde_json::from_slice(&secure.unwrap()).unwrap();
    assert_eq!(secure["hash"], "HyEUU304W1T/R1HnxEOCifxnYVHVGlEk8QR+1Skr308=");
}
