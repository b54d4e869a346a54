//! Buckets, objects and streams as the test itself sees and writes them.

use std::collections::BTreeMap;

use async_nats::jetstream::{self, stream};
use async_nats::{Client, HeaderMap};
use base64::Engine as _;
use bytes::Bytes;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::signature::{HEADER, sign};

/// The seed of the controller's signing key.
pub const SEED: [u8; 32] = [7; 32];

/// The bus as whoever may do everything.
#[derive(Debug, Clone)]
pub struct Bus {
    /// The connection.
    pub client: Client,
    jetstream: jetstream::Context,
}

impl Bus {
    pub fn new(client: Client) -> Self {
        Self { jetstream: jetstream::new(client.clone()), client }
    }

    /// Makes a bucket.
    pub async fn make_bucket(&self, bucket: &str) {
        self.make_stream(&format!("KV_{bucket}"), vec![format!("$KV.{bucket}.>")]).await;
    }

    /// Makes the object store of templates.
    pub async fn make_templates(&self) {
        let config = stream::Config {
            name: format!("OBJ_{}", key::TEMPLATES),
            subjects: vec![format!("$O.{}.>", key::TEMPLATES)],
            allow_rollup: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        self.jetstream.create_stream(config).await.unwrap();
    }

    /// Makes a stream that keeps one message of each subject.
    pub async fn make_stream(&self, name: &str, subjects: Vec<String>) {
        let config = stream::Config {
            name: name.to_owned(),
            subjects,
            max_messages_per_subject: 1,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        self.jetstream.create_stream(config).await.unwrap();
    }

    /// Deletes a bucket with all that is in it.
    pub async fn delete_bucket(&self, bucket: &str) {
        self.jetstream.delete_stream(format!("KV_{bucket}")).await.unwrap();
    }

    /// Deletes the object store of templates.
    pub async fn delete_templates(&self) {
        self.jetstream.delete_stream(format!("OBJ_{}", key::TEMPLATES)).await.unwrap();
    }

    /// Writes an entry; answers its revision.
    pub async fn put(&self, bucket: &str, key: &str, body: impl Into<Bytes>) -> u64 {
        self.publish(&key::kv_subject(bucket, key), HeaderMap::new(), body.into()).await
    }

    /// Writes an entry that the controller signed.
    pub async fn put_signed(&self, bucket: &str, key: &str, body: &str) -> u64 {
        let subject = key::kv_subject(bucket, key);
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, sign(&SEED, &subject, body.as_bytes()).as_str());
        self.publish(&subject, headers, Bytes::copy_from_slice(body.as_bytes())).await
    }

    /// Deletes an entry.
    pub async fn delete(&self, bucket: &str, key: &str) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        self.publish(&key::kv_subject(bucket, key), headers, Bytes::new()).await
    }

    /// Writes a message and waits until it is stored; the broker may just have come back.
    pub async fn publish(&self, subject: &str, headers: HeaderMap, body: Bytes) -> u64 {
        loop {
            let sent = self.jetstream.publish_with_headers(subject.to_owned(), headers.clone(), body.clone());
            if let Ok(stored) = sent.await
                && let Ok(stored) = stored.await
            {
                return stored.sequence;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// The entry of a bucket; none when it, or the bucket, is not there.
    pub async fn get(&self, bucket: &str, key: &str) -> Option<Bytes> {
        let stream = self.jetstream.get_stream_no_info(format!("KV_{bucket}")).await.ok()?;
        let found = stream.direct_get_last_for_subject(key::kv_subject(bucket, key)).await.ok()?;
        let is_gone = found.headers.get("KV-Operation").is_some();
        (!is_gone).then_some(found.payload)
    }

    /// All entries of a bucket whose keys begin so, as text.
    pub async fn entries(&self, bucket: &str, prefix: &str) -> BTreeMap<String, String> {
        let Ok(kv) = self.jetstream.get_key_value(bucket).await else { return BTreeMap::new() };
        let Ok(keys) = kv.keys().await else { return BTreeMap::new() };
        let keys: Vec<String> =
            futures::StreamExt::collect::<Vec<_>>(keys).await.into_iter().flatten().collect();
        let mut found = BTreeMap::new();
        for key in keys.into_iter().filter(|key| key.starts_with(prefix)) {
            if let Some(value) = self.get(bucket, &key).await {
                found.insert(key, String::from_utf8_lossy(&value).into_owned());
            }
        }
        found
    }

    /// Stores an archive as every client of an object store does: the chunks, then what is said of them.
    pub async fn put_object(&self, name: &str, content: &[u8]) {
        let (bucket, nuid) = (key::TEMPLATES, nkeys::KeyPair::new_user().public_key());
        let chunks: Vec<&[u8]> = content.chunks(128 * 1024).collect();
        for chunk in &chunks {
            let subject = format!("$O.{bucket}.C.{nuid}");
            self.publish(&subject, HeaderMap::new(), Bytes::copy_from_slice(chunk)).await;
        }
        let about = serde_json::json!({
            "name": name, "bucket": bucket, "nuid": nuid, "size": content.len(), "chunks": chunks.len(),
        });
        let encoded = base64::engine::general_purpose::URL_SAFE.encode(name);
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        self.publish(&format!("$O.{bucket}.M.{encoded}"), headers, about.to_string().into()).await;
    }
}
