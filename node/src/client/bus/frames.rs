//! What a consumer is asked for and what it delivers, as plain functions.

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use quartermaster_proto::mesh::signature::{self, BROKER_HEADERS};
use serde::{Deserialize, Serialize};

/// How often an idle consumer gives a sign of life, in nanoseconds.
const HEARTBEAT_NANOS: u64 = 5_000_000_000;
/// How long a consumer outlives its last listener, in nanoseconds.
const INACTIVE_NANOS: u64 = 30_000_000_000;
/// The broker's code for a stream that is not there.
const NO_STREAM: u64 = 10_059;

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Its subject.
    pub subject: String,
    /// Its place in the stream.
    pub revision: u64,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; none for the marker of a deleted key.
    pub body: Option<Bytes>,
}

/// What the broker delivers to a consumer's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivered {
    /// An entry; the number counts the consumer's deliveries.
    Entry {
        /// From 1.
        sequence: u64,
        /// What arrived.
        entry: Arrived,
    },
    /// A sign of life: so many were delivered so far.
    Alive(u64),
    /// Something else.
    Other,
}

/// Why a consumer could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The stream, and so the bucket, is not there.
    #[error("the bucket is not there")]
    NoStream,
    /// The broker says something else.
    #[error("the broker refuses the consumer with code {code}")]
    Refused {
        /// Its code.
        code: u64,
    },
    /// What it says cannot be understood.
    #[error("the broker's answer cannot be understood")]
    Unreadable,
}

#[derive(Serialize)]
struct CreateOut<'a> {
    stream_name: &'a str,
    config: ConfigOut<'a>,
    action: &'static str,
}

#[derive(Serialize)]
struct ConfigOut<'a> {
    name: &'a str,
    deliver_subject: &'a str,
    deliver_policy: &'static str,
    ack_policy: &'static str,
    replay_policy: &'static str,
    filter_subject: &'a str,
    idle_heartbeat: u64,
    inactive_threshold: u64,
    max_deliver: i64,
    mem_storage: bool,
    num_replicas: u32,
}

/// What a consumer delivers first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The latest of each subject.
    LastPerSubject,
    /// Everything.
    All,
}

/// The body of the request for a consumer that delivers what is there by the policy, then what changes.
pub(super) fn create(stream: &str, name: &str, filter: &str, inbox: &str, policy: Policy) -> Bytes {
    let config = ConfigOut {
        name,
        deliver_subject: inbox,
        deliver_policy: match policy {
            Policy::LastPerSubject => "last_per_subject",
            Policy::All => "all",
        },
        ack_policy: "none",
        replay_policy: "instant",
        filter_subject: filter,
        idle_heartbeat: HEARTBEAT_NANOS,
        inactive_threshold: INACTIVE_NANOS,
        max_deliver: 1,
        mem_storage: true,
        num_replicas: 1,
    };
    serde_json::to_vec(&CreateOut { stream_name: stream, config, action: "create" })
        .unwrap_or_default()
        .into()
}

#[derive(Deserialize)]
struct CreatedIn {
    num_pending: Option<u64>,
    error: Option<ErrorIn>,
}

#[derive(Deserialize)]
struct ErrorIn {
    #[serde(default)]
    err_code: u64,
}

/// How many entries the snapshot has.
pub(super) fn created(body: &[u8]) -> Result<u64, FrameError> {
    match serde_json::from_slice::<CreatedIn>(body) {
        Ok(CreatedIn { error: Some(ErrorIn { err_code: NO_STREAM }), .. }) => Err(FrameError::NoStream),
        Ok(CreatedIn { error: Some(ErrorIn { err_code }), .. }) => {
            Err(FrameError::Refused { code: err_code })
        }
        Ok(CreatedIn { num_pending: Some(pending), .. }) => Ok(pending),
        _ => Err(FrameError::Unreadable),
    }
}

/// Reads what was delivered.
pub(super) fn delivered(message: Message) -> Delivered {
    let headers = message.headers.unwrap_or_default();
    if message.status.is_some_and(|status| status.as_u16() == 100) {
        let sequence = headers.get("Nats-Last-Consumer").and_then(|value| value.as_str().parse().ok());
        return sequence.map_or(Delivered::Other, Delivered::Alive);
    }
    let Some((revision, sequence)) = message.reply.as_deref().and_then(numbers) else {
        return Delivered::Other;
    };
    let operation = headers.get("KV-Operation").map(|value| value.as_str().to_owned());
    let is_deleted =
        matches!(operation.as_deref(), Some("DEL" | "PURGE")) || headers.get("Nats-Marker-Reason").is_some();
    let body = (!is_deleted).then_some(message.payload);
    let entry = Arrived { subject: message.subject.to_string(), revision, headers, body };
    Delivered::Entry { sequence, entry }
}

/// The place in the stream and the number of the delivery, from where an acknowledgement would go:
/// `$JS.ACK.<stream>.<consumer>.<delivered>.<place>.<number>.<time>.<pending>`, newer ones with a domain and a hash before the stream.
fn numbers(reply: &str) -> Option<(u64, u64)> {
    let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    let first = if tokens.len() >= 9 { 5 } else { 3 };
    Some((tokens.get(first)?.parse().ok()?, tokens.get(first + 1)?.parse().ok()?))
}

/// True for an entry of a bucket that a broker wrote there itself, because somebody had its answer sent to the bucket's subject.
pub(super) fn is_misdirected(entry: &Arrived) -> bool {
    BROKER_HEADERS.iter().any(|name| entry.headers.get(*name).is_some())
        || entry.body.as_ref().is_some_and(|body| signature::is_broker_answer(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_read_from_both_forms_of_an_acknowledgement() {
        assert_eq!(numbers("$JS.ACK.KV_a.c.1.42.7.1795975200000000000.3"), Some((42, 7)));
        assert_eq!(numbers("$JS.ACK.hub.h4sh.KV_a.c.1.42.7.1795975200000000000.3"), Some((42, 7)));
        assert_eq!(numbers("$JS.ACK.hub.h4sh.KV_a.c.1.42.7.1795975200000000000.3.r4nd"), Some((42, 7)));
        for reply in ["", "_INBOX.x", "$JS.ACK.a.b", "$JS.ACK.KV_a.c.1.x.7.1.3"] {
            assert_eq!(numbers(reply), None, "{reply}");
        }
    }

    #[test]
    fn the_brokers_answers_are_told_apart() {
        for (body, expected) in [
            (
                r#"{"type":"io.nats.jetstream.api.v1.consumer_create_response","num_pending":3,"name":"x"}"#,
                Ok(3),
            ),
            (r#"{"error":{"code":404,"err_code":10059}}"#, Err(FrameError::NoStream)),
            (r#"{"error":{"code":400,"err_code":10131}}"#, Err(FrameError::Refused { code: 10_131 })),
            ("{}", Err(FrameError::Unreadable)),
            ("x", Err(FrameError::Unreadable)),
        ] {
            assert_eq!(created(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn an_answer_that_was_sent_into_a_bucket_is_recognised() {
        let entry = |headers: HeaderMap, body: &'static str| Arrived {
            subject: "$KV.a.b".to_owned(),
            revision: 1,
            headers,
            body: Some(Bytes::from_static(body.as_bytes())),
        };
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Stream", "KV_a");
        assert!(is_misdirected(&entry(headers, "3000")));
        assert!(is_misdirected(&entry(HeaderMap::new(), r#"{"stream":"KV_a","seq":3}"#)));
        assert!(!is_misdirected(&entry(HeaderMap::new(), "3000")));
    }
}
