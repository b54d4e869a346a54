//! The recorded conversations of real peers (tests/vectors/README.md).
#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub mod forged;

use std::{fs, path::PathBuf};

use quartermaster_proto::choria::envelope::{OpenReply, OpenRequest, open_reply, open_request};
use serde::Deserialize;

/// The four recorded networks.
pub const RECORDINGS: [&str; 4] = ["v1-insecure", "v1-x509", "v1-x509-key", "v2"];

/// One recorded message.
#[derive(Deserialize)]
pub struct Line {
    pub subject: String,
    pub reply: String,
    pub data: String,
}

/// What a recorded message is.
pub enum Kind {
    Event,
    Request(Box<OpenRequest>),
    Reply(OpenReply),
}

impl Line {
    pub fn kind(&self) -> Kind {
        if self.subject.starts_with("choria.lifecycle.event.") {
            Kind::Event
        } else if self.subject.contains(".reply.") {
            Kind::Reply(open_reply(self.data.as_bytes()).expect("a recorded reply opens"))
        } else {
            Kind::Request(Box::new(open_request(self.data.as_bytes()).expect("a recorded request opens")))
        }
    }

    /// The one entry of `seen-by` or `trace` in the transport header.
    pub fn hop(&self) -> [String; 3] {
        let transport: serde_json::Value = serde_json::from_str(&self.data).unwrap();
        let headers = &transport["headers"];
        let hops = headers.get("seen-by").or_else(|| headers.get("trace")).expect("a hop is recorded");
        let mut hops: Vec<[String; 3]> = serde_json::from_value(hops.clone()).unwrap();
        assert_eq!(hops.len(), 1);
        hops.remove(0)
    }
}

pub fn vector(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

pub fn recording(name: &str) -> Vec<Line> {
    let lines: Vec<Line> =
        vector(&format!("{name}.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 16, "{name} is complete");
    lines
}

pub fn requests(name: &str) -> Vec<OpenRequest> {
    let found: Vec<_> = recording(name)
        .iter()
        .filter_map(|line| if let Kind::Request(request) = line.kind() { Some(*request) } else { None })
        .collect();
    assert!(found.len() >= 6, "{name} holds requests");
    found
}

pub fn replies(name: &str) -> Vec<OpenReply> {
    let found: Vec<_> = recording(name)
        .iter()
        .filter_map(|line| if let Kind::Reply(reply) = line.kind() { Some(reply) } else { None })
        .collect();
    assert!(found.len() >= 6, "{name} holds replies");
    found
}
