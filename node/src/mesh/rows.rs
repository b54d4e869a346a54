//! Entries of buckets as an operator writes and reads them: acknowledged, signed where that is asked for.

use async_nats::HeaderMap;
use async_nats::jetstream::{self, context::PublishErrorKind};
use bytes::Bytes;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::signature::{HEADER, PublicNkey, SignatureError, verify};

use super::error::MeshError;
use super::signer::Signer;
use crate::client::bus::{Bus, FrameError, Policy, Target, read_all};

/// Most that is read of one bucket, in bytes.
const MAX_READ: usize = 1024 * 1024 * 1024;

/// One entry of a bucket; deleted ones are markers without a value.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its key.
    pub key: String,
    /// Its place in the bucket's stream.
    pub revision: u64,
    /// Its value; none for the marker of a deleted key.
    pub value: Option<Bytes>,
    subject: String,
    signature: Option<String>,
}

impl Row {
    /// Whether the controller signed it.
    ///
    /// # Errors
    /// Why it is not believed.
    pub fn is_signed_by(&self, key: &PublicNkey) -> Result<(), SignatureError> {
        let body = self.value.as_deref().unwrap_or_default();
        verify(self.signature.as_deref(), std::slice::from_ref(key), &self.subject, body)
    }
}

/// What the entry must be, for a write that tramples on nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Anything.
    Any,
    /// The entry of this revision; 0 for none.
    Revision(u64),
}

/// Every entry of a bucket whose key the broker's filter takes, markers of deleted ones included.
///
/// # Errors
/// The bucket is not there, or the broker says nothing.
pub async fn rows(bus: &Bus, bucket: &str, keys: &str) -> Result<Vec<Row>, MeshError> {
    let target = Target::bucket(bucket, keys);
    let found = read_all(bus, &target, Policy::LastPerSubject, u64::MAX, MAX_READ).await;
    let found = found.map_err(|error| match error {
        FrameError::NoStream => MeshError::NoStream(format!("bucket {bucket}")),
        FrameError::Unreadable => MeshError::NoAnswer(format!("reading {bucket}")),
        error @ FrameError::Refused { .. } => {
            MeshError::Broker { what: format!("reading {bucket}"), why: error.to_string() }
        }
    })?;
    let prefix = key::kv_subject(bucket, "");
    let row = |entry: crate::client::bus::Arrived| {
        let key = entry.subject.strip_prefix(&prefix)?.to_owned();
        let signature = entry.headers.get(HEADER).map(|value| value.as_str().to_owned());
        Some(Row { key, revision: entry.revision, value: entry.body, subject: entry.subject, signature })
    };
    Ok(found.into_iter().filter_map(row).collect())
}

/// Writes an entry and answers its revision once the broker has stored it.
///
/// # Errors
/// It is not stored.
pub(super) async fn put(
    bus: &Bus,
    bucket: &str,
    key: &str,
    value: Vec<u8>,
    signer: Option<&Signer>,
    before: Before,
) -> Result<u64, MeshError> {
    let mut headers = HeaderMap::new();
    let subject = key::kv_subject(bucket, key);
    if let Some(signer) = signer {
        headers.insert(HEADER, signer.sign(&subject, &value).as_str());
    }
    if let Before::Revision(revision) = before {
        headers.insert("Nats-Expected-Last-Subject-Sequence", revision.to_string());
    }
    publish(bus, subject, headers, value.into(), &format!("{key} in {bucket}")).await
}

/// Deletes an entry: a marker takes its place.
///
/// # Errors
/// It is not stored.
pub(super) async fn delete(bus: &Bus, bucket: &str, key: &str) -> Result<u64, MeshError> {
    let mut headers = HeaderMap::new();
    headers.insert("KV-Operation", "DEL");
    let subject = key::kv_subject(bucket, key);
    publish(bus, subject, headers, Bytes::new(), &format!("{key} in {bucket}")).await
}

/// Publishes into a stream and waits until it is stored.
pub(super) async fn publish(
    bus: &Bus,
    subject: String,
    headers: HeaderMap,
    body: Bytes,
    what: &str,
) -> Result<u64, MeshError> {
    let context = jetstream::new(bus.client().clone());
    let stored = match context.publish_with_headers(subject, headers, body).await {
        Ok(stored) => stored.await,
        Err(error) => Err(error),
    };
    stored.map(|stored| stored.sequence).map_err(|error| match error.kind() {
        PublishErrorKind::StreamNotFound => MeshError::NoStream(format!("place for {what}")),
        PublishErrorKind::WrongLastSequence => MeshError::Changed(what.to_owned()),
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => MeshError::NoAnswer(what.to_owned()),
        _ => MeshError::Broker { what: what.to_owned(), why: error.to_string() },
    })
}
