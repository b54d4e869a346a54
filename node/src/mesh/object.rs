//! Archives of templates put into the object store.

use async_nats::HeaderMap;
use async_nats::jetstream;
use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use bytes::Bytes;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::plan::{Digest, Reference};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::error::MeshError;
use super::rows::publish;
use crate::archive;
use crate::client::bus::{Bus, Policy, Target, read_all};

/// Bytes of an object in one message.
const CHUNK: usize = 128 * 1024;

/// A published archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// How a plan names it.
    pub reference: Reference,
    /// What a plan says it hashes to.
    pub digest: Digest,
    /// It was not there before in this form.
    pub is_new: bool,
}

#[derive(Serialize)]
struct InfoOut<'a> {
    name: &'a str,
    options: OptionsOut,
    bucket: &'a str,
    nuid: &'a str,
    size: usize,
    chunks: usize,
    mtime: String,
    digest: &'a str,
}

#[derive(Serialize)]
struct OptionsOut {
    max_chunk_size: usize,
}

#[derive(Default, Deserialize)]
struct InfoIn {
    #[serde(default)]
    nuid: String,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    deleted: bool,
}

/// Puts an archive under a name and answers how a plan means it. One that is there with the same content is left alone; another
/// one of that name is replaced, and its old content goes.
///
/// # Errors
/// A client would refuse it, or it is not stored.
pub async fn publish_archive(bus: &Bus, name: &str, bytes: Vec<u8>) -> Result<Published, MeshError> {
    archive::read(&bytes).map_err(|error| MeshError::Refused(vec![error.to_string()]))?;
    let bucket = key::TEMPLATES;
    let reference = Reference::NatsObject { bucket: bucket.to_owned(), name: name.to_owned() };
    let is_good = reference.to_string().parse() == Ok(reference.clone());
    if !is_good || name.is_empty() {
        return Err(MeshError::Refused(vec![format!("`{}` is no name of an archive", name.escape_debug())]));
    }
    let digest = Digest::of(&bytes);
    let as_stored = format!("SHA-256={}", URL_SAFE.encode(Sha256::digest(&bytes)));
    let about = format!("$O.{bucket}.M.{}", URL_SAFE.encode(name));
    let before = info(bus, &about).await?;
    if before.as_ref().is_some_and(|before| !before.deleted && before.digest == as_stored) {
        return Ok(Published { reference, digest, is_new: false });
    }
    let nuid = Uuid::new_v4().simple().to_string();
    let bytes = Bytes::from(bytes);
    let mut chunks = 0;
    for start in (0..bytes.len()).step_by(CHUNK) {
        let chunk = bytes.slice(start..bytes.len().min(start + CHUNK));
        publish(bus, format!("$O.{bucket}.C.{nuid}"), HeaderMap::new(), chunk, name).await?;
        chunks += 1;
    }
    let info = InfoOut {
        name,
        options: OptionsOut { max_chunk_size: CHUNK },
        bucket,
        nuid: &nuid,
        size: bytes.len(),
        chunks,
        mtime: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
        digest: &as_stored,
    };
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Rollup", "sub");
    publish(bus, about, headers, serde_json::to_vec(&info).unwrap_or_default().into(), name).await?;
    if let Some(before) = before.filter(|before| !before.nuid.is_empty()) {
        forget(bus, &before.nuid).await;
    }
    Ok(Published { reference, digest, is_new: true })
}

async fn info(bus: &Bus, about: &str) -> Result<Option<InfoIn>, MeshError> {
    let target =
        Target { stream: format!("OBJ_{}", key::TEMPLATES), filter: about.to_owned(), is_bucket: false };
    let found = read_all(bus, &target, Policy::LastPerSubject, 1, 64 * 1024).await;
    let found = found.map_err(|error| match error {
        crate::client::bus::FrameError::NoStream => {
            MeshError::NoStream(format!("object store {}", key::TEMPLATES))
        }
        _ => MeshError::NoAnswer(format!("reading {}", key::TEMPLATES)),
    })?;
    let body = found.into_iter().next().and_then(|entry| entry.body);
    Ok(body.map(|body| serde_json::from_slice(&body).unwrap_or_default()))
}

/// The content of a replaced archive takes room and nothing else, so that it could not be purged is no failure.
async fn forget(bus: &Bus, nuid: &str) {
    let context = jetstream::new(bus.client().clone());
    let purged = match context.get_stream(format!("OBJ_{}", key::TEMPLATES)).await {
        Ok(stream) => stream.purge().filter(format!("$O.{}.C.{nuid}", key::TEMPLATES)).await.is_ok(),
        Err(_) => false,
    };
    if !purged {
        tracing::warn!("the old content of a replaced archive stays in the object store");
    }
}
