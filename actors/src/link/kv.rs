//! Watching keys across reconnects.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::kv::{Entry, Watch};
use futures::stream::{BoxStream, unfold};
use futures::{StreamExt, future};

use super::ClientWatch;

/// Between two attempts to build the watch.
const REBUILD_WAIT: Duration = Duration::from_millis(500);

/// What a watch tells.
#[derive(Debug)]
pub enum KvSeen {
    /// A key's latest value, a deletion included. After a rebuild the latest values come again.
    Entry(Box<Entry>),
    /// The watch had to be built anew, and why.
    Rebuilt {
        /// What ended the one before.
        why: String,
    },
}

struct Watching {
    clients: ClientWatch,
    bucket: String,
    keys: String,
    watch: Option<Watch>,
}

/// Watches the latest values of `keys` (wildcards allowed) in `bucket` for ever. The client library's own watch may end,
/// or report one missed heartbeat and then stay silent; here any such sign, and every new connection, builds a fresh one.
pub fn watch_rebuilding(
    clients: ClientWatch,
    bucket: impl Into<String>,
    keys: impl Into<String>,
) -> BoxStream<'static, KvSeen> {
    let state = Watching { clients, bucket: bucket.into(), keys: keys.into(), watch: None };
    unfold(state, |mut state| async move {
        let seen = state.next().await;
        Some((seen, state))
    })
    .boxed()
}

impl Watching {
    async fn next(&mut self) -> KvSeen {
        loop {
            let Some(watch) = &mut self.watch else {
                match self.build().await {
                    Ok(watch) => self.watch = Some(watch),
                    Err(why) => {
                        tokio::time::sleep(REBUILD_WAIT).await;
                        return KvSeen::Rebuilt { why };
                    }
                }
                continue;
            };
            let why = tokio::select! {
                entry = watch.next() => match entry {
                    Some(Ok(entry)) => return KvSeen::Entry(Box::new(entry)),
                    Some(Err(error)) => error.to_string(),
                    None => "the watch ended".to_owned(),
                },
                () = self.clients.changed() => "the connection changed".to_owned(),
            };
            self.watch = None;
            return KvSeen::Rebuilt { why };
        }
    }

    async fn build(&mut self) -> Result<Watch, String> {
        let Some(client) = self.clients.connected().await else { return future::pending().await };
        let store =
            jetstream::new(client).get_key_value(&self.bucket).await.map_err(|error| error.to_string())?;
        store.watch_with_history(&self.keys).await.map_err(|error| error.to_string())
    }
}
