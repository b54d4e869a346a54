//! Everything of a stream that is there now, read once.

use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::timeout;

use super::{
    connect::Bus,
    frames::{self, Arrived, Delivered, FrameError, Policy},
    watch::{Target, begin},
};

/// Longest wait for the next entry.
const NEXT_LIMIT: Duration = Duration::from_secs(10);

/// The entries of a target, in order; at most `most` of them.
///
/// # Errors
/// The stream is not there, nobody answers, something was lost on the way, or the bodies are longer than `limit` together.
pub async fn read_all(
    bus: &Bus,
    target: &Target,
    policy: Policy,
    most: u64,
    limit: usize,
) -> Result<Vec<Arrived>, FrameError> {
    let (mut inbox, pending) = begin(bus, target, policy).await?;
    let (mut found, mut length) = (Vec::new(), 0);
    let wanted = pending.min(most);
    for number in 1..=wanted {
        let entry = loop {
            let next =
                timeout(NEXT_LIMIT, inbox.next()).await.ok().flatten().ok_or(FrameError::Unreadable)?;
            match frames::delivered(next) {
                Delivered::Entry { sequence, entry } if sequence == number => break entry,
                Delivered::Entry { .. } => return Err(FrameError::Unreadable),
                Delivered::Alive(_) | Delivered::Other => {}
            }
        };
        length += entry.body.as_ref().map_or(0, bytes::Bytes::len);
        if length > limit {
            return Err(FrameError::Unreadable);
        }
        found.push(entry);
    }
    Ok(found)
}
