//! The buckets, the object store and the stream of a mesh.

use async_nats::jetstream::{
    self, ErrorCode,
    context::{Context, GetStreamErrorKind},
    kv, stream,
};
use quartermaster_proto::mesh::accounts::kv_stream;
use quartermaster_proto::mesh::key;

use super::error::MeshError;
use crate::client::bus::Bus;

/// The buckets of every mesh; each keeps the latest value of a key.
pub const BUCKETS: [&str; 6] =
    [key::ASSIGNMENTS, key::REGISTRY, key::NEEDS, key::COLLECT, key::APPLIED, key::CONFIG];

/// What became of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The name of the bucket, the object store or the stream.
    pub name: String,
    /// It was not there before.
    pub is_new: bool,
    /// What of it is not as we would make it; it is left alone.
    pub differs: Option<String>,
}

/// Makes what is not there yet, each with so many replicas.
///
/// # Errors
/// The broker refuses one, or says nothing.
pub async fn prepare(bus: &Bus, replicas: usize) -> Result<Vec<Made>, MeshError> {
    let context = jetstream::new(bus.client().clone());
    let mut made = Vec::new();
    for bucket in BUCKETS {
        made.push(make_bucket(&context, bucket, replicas).await?);
    }
    let objects = key::TEMPLATES;
    let store = stream::Config {
        name: format!("OBJ_{objects}"),
        subjects: vec![format!("$O.{objects}.C.>"), format!("$O.{objects}.M.>")],
        discard: stream::DiscardPolicy::New,
        allow_rollup: true,
        allow_direct: true,
        num_replicas: replicas,
        ..stream::Config::default()
    };
    made.push(make(&context, objects, store, |_| None).await?);
    let changed = stream::Config {
        name: key::CHANGED_STREAM.to_owned(),
        subjects: vec![format!("{}.>", key::SECRET_CHANGED)],
        max_messages_per_subject: 1,
        num_replicas: replicas,
        ..stream::Config::default()
    };
    made.push(make(&context, key::CHANGED_STREAM, changed, one_per_subject).await?);
    Ok(made)
}

/// Makes the bucket of a provider, with as many replicas as the mirror has.
///
/// # Errors
/// The broker refuses it, or says nothing.
pub async fn prepare_bound(bus: &Bus, provider: &str) -> Result<Made, MeshError> {
    let context = jetstream::new(bus.client().clone());
    let mirror = found(&context, &kv_stream(key::ASSIGNMENTS)).await?;
    let replicas = mirror.map_or(1, |mirror| mirror.num_replicas);
    make_bucket(&context, &key::bound_bucket(provider), replicas).await
}

async fn make_bucket(context: &Context, bucket: &str, replicas: usize) -> Result<Made, MeshError> {
    if let Some(config) = found(context, &kv_stream(bucket)).await? {
        return Ok(Made { name: bucket.to_owned(), is_new: false, differs: one_per_subject(&config) });
    }
    let config =
        kv::Config { bucket: bucket.to_owned(), history: 1, num_replicas: replicas, ..kv::Config::default() };
    match context.create_key_value(config).await {
        Ok(_) => Ok(Made { name: bucket.to_owned(), is_new: true, differs: None }),
        Err(error) => Err(refused(bucket, &error)),
    }
}

async fn make(
    context: &Context,
    name: &str,
    config: stream::Config,
    differs: impl FnOnce(&stream::Config) -> Option<String>,
) -> Result<Made, MeshError> {
    let name = name.to_owned();
    if let Some(config) = found(context, &config.name).await? {
        return Ok(Made { name, is_new: false, differs: differs(&config) });
    }
    match context.create_stream(config).await {
        Ok(_) => Ok(Made { name, is_new: true, differs: None }),
        Err(error) => Err(refused(&name, &error)),
    }
}

fn refused(name: &str, error: &dyn std::error::Error) -> MeshError {
    MeshError::Broker { what: name.to_owned(), why: error.to_string() }
}

fn one_per_subject(config: &stream::Config) -> Option<String> {
    let kept = config.max_messages_per_subject;
    (kept != 1).then(|| format!("keeps {kept} values of a key instead of one"))
}

async fn found(context: &Context, stream: &str) -> Result<Option<stream::Config>, MeshError> {
    match context.get_stream(stream).await {
        Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Ok(None)
            }
            GetStreamErrorKind::JetStream(error) => Err(refused(stream, &error)),
            _ => Err(MeshError::NoAnswer(stream.to_owned())),
        },
    }
}
