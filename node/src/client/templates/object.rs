//! One object of a JetStream object store, read with consumers of our own.

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use quartermaster_proto::mesh::report::Why;
use serde::Deserialize;

use super::fetch::FetchError;
use crate::{
    archive::MAX_FETCHED,
    client::bus::{Bus, FrameError, Policy, Target, read_all},
};

#[derive(Deserialize)]
struct InfoIn {
    #[serde(default)]
    nuid: String,
    #[serde(default)]
    size: usize,
    #[serde(default)]
    chunks: u64,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    options: OptionsIn,
}

#[derive(Default, Deserialize)]
struct OptionsIn {
    link: Option<serde::de::IgnoredAny>,
}

/// Reads an object whole.
///
/// # Errors
/// It is not there, nobody answers, or it is none that can be read.
pub(super) async fn read(bus: &Bus, bucket: &str, name: &str) -> Result<Vec<u8>, FetchError> {
    let stream = format!("OBJ_{bucket}");
    let target = |filter: String| Target { stream: stream.clone(), filter, is_bucket: false };
    let about = target(format!("$O.{bucket}.M.{}", URL_SAFE.encode(name)));
    let found =
        read_all(bus, &about, Policy::LastPerSubject, 1, 64 * 1024).await.map_err(|error| waiting(&error))?;
    let Some(info) = found.into_iter().next().and_then(|entry| entry.body) else {
        return Err(FetchError::Waiting(Why::Absent));
    };
    let info: InfoIn = serde_json::from_slice(&info).map_err(|_| FetchError::Waiting(Why::NoAnswer))?;
    if info.deleted {
        return Err(FetchError::Waiting(Why::Absent));
    }
    if info.options.link.is_some() || !info.nuid.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(FetchError::Failed("the object is a link, or none that can be read".to_owned()));
    }
    if info.size > MAX_FETCHED {
        return Err(FetchError::TooLong);
    }
    if info.size == 0 {
        return Ok(Vec::new());
    }
    let chunks = target(format!("$O.{bucket}.C.{}", info.nuid));
    let found = read_all(bus, &chunks, Policy::All, info.chunks, MAX_FETCHED)
        .await
        .map_err(|error| waiting(&error))?;
    let bytes: Vec<u8> = found.into_iter().filter_map(|entry| entry.body).flatten().collect();
    // Somebody is replacing it right now.
    if bytes.len() == info.size { Ok(bytes) } else { Err(FetchError::Waiting(Why::NoAnswer)) }
}

const fn waiting(error: &FrameError) -> FetchError {
    match error {
        FrameError::NoStream => FetchError::Waiting(Why::NoBucket),
        _ => FetchError::Waiting(Why::NoAnswer),
    }
}
