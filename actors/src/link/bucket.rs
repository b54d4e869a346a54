//! A key-value bucket of our own: looked at, or made when it is missing.

use std::time::Duration;

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::{self, kv};

use super::LinkHandle;
use super::text::printable;

/// What a bucket is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketSpec {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// For people who find it.
    pub description: String,
    /// How long a value lives.
    pub lives: Duration,
    /// Brokers that keep a copy; none: three in a cluster of brokers, else one.
    pub replicas: Option<usize>,
}

/// A bucket as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketFound {
    /// How long a value lives; zero means for ever.
    pub lives: Duration,
    /// Brokers that keep a copy.
    pub replicas: usize,
    /// Whether it was made just now.
    pub made: bool,
}

/// Why there is no bucket to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketFault {
    /// The broker could not be asked.
    #[error("the broker could not be asked for it: {0}")]
    Asking(String),
    /// It does not exist and could not be made.
    #[error("it does not exist and could not be made ({reason}); whoever may shall run: {command}")]
    Missing {
        /// What the broker says.
        reason: String,
        /// The command that makes it.
        command: String,
    },
}

impl BucketSpec {
    /// The command of the `nats` tool that makes it.
    pub fn command(&self, replicas: usize) -> String {
        let (name, seconds) = (&self.name, self.lives.as_secs());
        format!("nats kv add {name} --history=1 --ttl={seconds}s --replicas={replicas} --storage=file")
    }

    fn config(&self, replicas: usize) -> kv::Config {
        kv::Config {
            bucket: self.name.clone(),
            description: self.description.clone(),
            history: 1,
            max_age: self.lives,
            storage: jetstream::stream::StorageType::File,
            num_replicas: replicas,
            ..kv::Config::default()
        }
    }
}

impl LinkHandle {
    /// Looks at the bucket, and makes it when it does not exist.
    pub async fn open_bucket(&self, spec: &BucketSpec, limit: Duration) -> Result<BucketFound, BucketFault> {
        let client = self.client().ok_or_else(|| BucketFault::Asking("there is no connection".to_owned()))?;
        let clustered = client.server_info().cluster.is_some();
        let replicas = spec.replicas.unwrap_or(if clustered { 3 } else { 1 });
        // Up to three questions, and a broker that forbids one just does not answer it.
        let asked = tokio::time::timeout(3 * limit, open(jetstream::new(client), spec, replicas)).await;
        asked.unwrap_or_else(|_| Err(BucketFault::Asking(format!("no answer within {limit:?}"))))
    }
}

async fn open(
    context: jetstream::Context,
    spec: &BucketSpec,
    replicas: usize,
) -> Result<BucketFound, BucketFault> {
    let missing = |reason: &dyn std::fmt::Display| BucketFault::Missing {
        reason: printable(&reason.to_string()),
        command: spec.command(replicas),
    };
    let found = context.get_stream(format!("KV_{}", spec.name)).await;
    let (info, made) = match found {
        Ok(stream) => (stream.cached_info().config.clone(), false),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(said) if said.code() == 404 => {
                let made = context.create_key_value(spec.config(replicas)).await;
                (
                    made.map_err(|error| missing(&crate::text::chain(&error)))?
                        .stream
                        .cached_info()
                        .config
                        .clone(),
                    true,
                )
            }
            GetStreamErrorKind::JetStream(said) if said.code() != 503 || said.error_code() == NOT_ENABLED => {
                return Err(missing(&said));
            }
            _ => {
                let said = crate::text::chain(&error);
                // Nobody answers for JetStream where the account has none.
                let nobody = said.contains("no responders");
                return Err(if nobody { missing(&said) } else { BucketFault::Asking(printable(&said)) });
            }
        },
    };
    Ok(BucketFound { lives: info.max_age, replicas: info.num_replicas, made })
}

/// "JetStream not enabled for account".
const NOT_ENABLED: jetstream::ErrorCode = jetstream::ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_makes_what_we_would_make() {
        let spec = BucketSpec {
            name: "QUARTERMASTER_CLAIMS".to_owned(),
            description: String::new(),
            lives: Duration::from_mins(1),
            replicas: None,
        };
        assert_eq!(
            spec.command(3),
            "nats kv add QUARTERMASTER_CLAIMS --history=1 --ttl=60s --replicas=3 --storage=file"
        );
    }
}
