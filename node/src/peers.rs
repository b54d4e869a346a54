//! Connections on a Unix socket, taken only from accounts that may ask (node.md D22, D28).

use std::future::Future;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::net::{UnixListener, UnixStream};

/// A pause after a connection could not be accepted, so that a lack of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Accepts for ever, at most `most` connections at once, each from an account whose user id `may` holds for; others are closed
/// without being read. Further ones wait in the system's queue.
pub(crate) async fn serve<Talk: Future<Output = ()>>(
    listener: UnixListener,
    most: usize,
    may: impl Fn(u32) -> bool,
    converse: impl Fn(UnixStream) -> Talk,
) {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < most => match accepted {
                Ok((stream, _)) => match stream.peer_cred() {
                    Ok(peer) if may(peer.uid()) => connections.push(converse(stream)),
                    Ok(peer) => tracing::warn!(uid = peer.uid(), "a connection of another account was closed"),
                    Err(error) => tracing::warn!(%error, "a connection of nobody known was closed"),
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(()) = connections.next(), if !connections.is_empty() => {}
        }
    }
}
