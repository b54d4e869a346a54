//! Compare-and-set on one key of a bucket whose API is reached under a prefix (choria.md 7). Only the two subjects that a
//! Choria broker opens to provisioners are used: the stream's description and a write to the key itself.

use std::time::Duration;

use async_nats::{HeaderMap, RequestErrorKind};
use base64::Engine as _;
use serde::Deserialize;

use super::LinkHandle;
use super::text::printable;

/// Header with the sequence number the key's last write must have; 0 wants no write at all.
pub(super) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";

/// The error numbers that say "somebody else wrote": wrong last sequence, and its form on replicated streams.
const CONFLICTS: [u64; 2] = [10_071, 10_164];

/// The error number that says "no such message".
const NO_MESSAGE: u64 = 10_037;

/// Answers above this many bytes are not read.
const MAX_ANSWER: usize = 256 * 1024;

/// Where a key lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CasKey {
    /// Prefix of the API and of the key's subject, `choria.streams` on a Choria broker; empty in the bucket's own account.
    pub prefix: String,
    /// The bucket.
    pub bucket: String,
    /// The key.
    pub key: String,
}

/// Why a write or a look did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CasFault {
    /// Somebody else has written the key.
    #[error("somebody else has written the key")]
    Conflict,
    /// Nobody answers: the bucket does not exist, or this account may not reach it.
    #[error("nobody answers for bucket {bucket}: it does not exist, or this account may not reach it")]
    NoBucket {
        /// The bucket.
        bucket: String,
    },
    /// Anything else; whether the key was written is unknown.
    #[error("{0}")]
    Other(String),
}

#[derive(Deserialize)]
struct Ack {
    seq: Option<u64>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Info {
    config: Option<InfoConfig>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct Stored {
    message: Option<StoredMessage>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct StoredMessage {
    seq: u64,
    #[serde(default)]
    data: String,
}

#[derive(Deserialize)]
struct InfoConfig {
    #[serde(default)]
    max_age: u64,
}

impl CasKey {
    /// The subject that writes of the key are sent to.
    pub fn subject(&self) -> String {
        let own = self.own_subject();
        if self.prefix.is_empty() { own } else { format!("{}.{own}", self.prefix) }
    }

    /// The key's subject in the bucket's own account.
    fn own_subject(&self) -> String {
        format!("$KV.{}.{}", self.bucket, self.key)
    }

    fn api(&self, verb: &str) -> String {
        let prefix = if self.prefix.is_empty() { "$JS.API" } else { &self.prefix };
        format!("{prefix}.{verb}.KV_{}", self.bucket)
    }
}

impl ApiError {
    fn fault(&self, bucket: &str) -> CasFault {
        if CONFLICTS.contains(&self.err_code) {
            CasFault::Conflict
        } else if self.code == 404 {
            CasFault::NoBucket { bucket: bucket.to_owned() }
        } else {
            let said = printable(&self.description);
            CasFault::Other(format!("the broker answers {} ({}): {said}", self.code, self.err_code))
        }
    }
}

impl LinkHandle {
    /// How long a value of the key's bucket lives; zero means for ever.
    pub async fn cas_ttl(&self, key: &CasKey, limit: Duration) -> Result<Duration, CasFault> {
        let answer = self.ask_broker(key.api("STREAM.INFO"), None, Vec::new(), &key.bucket, limit).await?;
        let info: Info = parse(&answer)?;
        match (info.config, info.error) {
            (Some(config), None) => Ok(Duration::from_nanos(config.max_age)),
            (_, Some(error)) => Err(error.fault(&key.bucket)),
            (None, None) => Err(CasFault::Other("the broker's answer describes no stream".to_owned())),
        }
    }

    /// Writes the key if its last write has the sequence number `after` (0: if it was never written or has expired).
    /// Answers with the sequence number of this write.
    pub async fn cas_write(
        &self,
        key: &CasKey,
        value: &[u8],
        after: u64,
        limit: Duration,
    ) -> Result<u64, CasFault> {
        let subject = key.subject();
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED, after.to_string().as_str());
        let answer = self.ask_broker(subject, Some(headers), value.to_vec(), &key.bucket, limit).await?;
        let ack: Ack = parse(&answer)?;
        match (ack.seq, ack.error) {
            (_, Some(error)) => Err(error.fault(&key.bucket)),
            (Some(seq), None) if seq > 0 => Ok(seq),
            _ => Err(CasFault::Other("the broker's answer names no sequence number".to_owned())),
        }
    }

    /// The key's last write, as whoever keeps the bucket has it, however far behind its other replicas are: sequence number
    /// and value. None when it was never written or has expired.
    pub async fn cas_read(&self, key: &CasKey, limit: Duration) -> Result<Option<(u64, Vec<u8>)>, CasFault> {
        let ask = serde_json::json!({"last_by_subj": key.own_subject()}).to_string().into_bytes();
        let answer = self.ask_broker(key.api("STREAM.MSG.GET"), None, ask, &key.bucket, limit).await?;
        let stored: Stored = parse(&answer)?;
        match (stored.message, stored.error) {
            (Some(message), None) => {
                let value = base64::engine::general_purpose::STANDARD.decode(message.data);
                let value =
                    value.map_err(|_| CasFault::Other("the broker's answer cannot be read".to_owned()))?;
                Ok(Some((message.seq, value)))
            }
            (_, Some(error)) if error.err_code == NO_MESSAGE => Ok(None),
            (_, Some(error)) => Err(error.fault(&key.bucket)),
            (None, None) => Err(CasFault::Other("the broker's answer holds no message".to_owned())),
        }
    }

    /// Publishes bytes past the link's queue, and waits until the broker has them; false when it did not work out in time.
    pub async fn tell_now(&self, subject: String, payload: Vec<u8>, limit: Duration) -> bool {
        let Some(client) = self.client() else { return false };
        let told =
            async { client.publish(subject, payload.into()).await.is_ok() && client.flush().await.is_ok() };
        tokio::time::timeout(limit, told).await.unwrap_or(false)
    }

    async fn ask_broker(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Vec<u8>,
        bucket: &str,
        limit: Duration,
    ) -> Result<Vec<u8>, CasFault> {
        let client = self.client().ok_or_else(|| CasFault::Other("there is no connection".to_owned()))?;
        let mut request = async_nats::Request::new().payload(payload.into()).timeout(Some(limit));
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        // The library's own limit covers the answer; sending can stall as well.
        let asked = tokio::time::timeout(limit + limit / 2, client.send_request(subject, request)).await;
        match asked {
            Ok(Ok(message)) if message.payload.len() > MAX_ANSWER => {
                Err(CasFault::Other("the broker's answer is too large".to_owned()))
            }
            Ok(Ok(message)) => Ok(message.payload.to_vec()),
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                Err(CasFault::NoBucket { bucket: bucket.to_owned() })
            }
            Ok(Err(error)) => Err(CasFault::Other(printable(&error.to_string()))),
            Err(_) => Err(CasFault::Other(format!("no answer within {limit:?}"))),
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, CasFault> {
    serde_json::from_slice(answer)
        .map_err(|_| CasFault::Other("the broker's answer cannot be read".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_fault(answer: &str, expected: &CasFault) {
        let ack: Ack = parse(answer.as_bytes()).unwrap();
        assert_eq!(&ack.error.unwrap().fault("B"), expected);
    }

    #[test]
    fn both_ways_of_saying_that_somebody_else_wrote_are_understood() {
        for code in ["10071", "10164"] {
            let answer = format!(
                r#"{{"error":{{"code":400,"err_code":{code},"description":"wrong last sequence: 5"}},"stream":"KV_B"}}"#
            );
            check_fault(&answer, &CasFault::Conflict);
        }
    }

    #[test]
    fn a_missing_stream_is_named() {
        let answer = r#"{"type":"x","error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
        check_fault(answer, &CasFault::NoBucket { bucket: "B".to_owned() });
    }

    #[test]
    fn other_errors_are_passed_on_fit_for_a_log() {
        let answer = r#"{"error":{"code":503,"err_code":10008,"description":"temporarily\nunavailable"}}"#;
        let said = r"the broker answers 503 (10008): temporarily\nunavailable".to_owned();
        check_fault(answer, &CasFault::Other(said));
    }
}
