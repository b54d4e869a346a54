//! A watcher: a consumer of its own, made anew whenever something may have been missed.

use std::time::Duration;

use async_nats::Subscriber;
use futures::StreamExt as _;
use quartermaster_proto::mesh::accounts;
use tokio::{sync::mpsc, time::timeout};
use uuid::Uuid;

use super::{
    connect::Bus,
    frames::{self, Arrived, Delivered, FrameError, Policy},
};
use crate::backoff::{Backoff, Jitter};

/// Longest wait for the broker's answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Two signs of life missed.
const SILENCE_LIMIT: Duration = Duration::from_secs(11);

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The stream.
    pub stream: String,
    /// The subjects; the permission names exactly these.
    pub filter: String,
    /// It is a bucket: entries that a broker wrote there itself are dropped.
    pub is_bucket: bool,
}

impl Target {
    /// The part of a bucket whose keys begin with this, or all of it.
    pub fn bucket(bucket: &str, keys: &str) -> Self {
        let filter = quartermaster_proto::mesh::key::kv_subject(bucket, keys);
        Self { stream: accounts::kv_stream(bucket), filter, is_bucket: true }
    }
}

/// What a watcher tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromBus {
    /// A snapshot of this many entries begins.
    Begun(u64),
    /// An entry. Of a snapshot, or a change.
    Entry(Arrived),
    /// An entry that a broker's own answer left in a bucket; it counts for the snapshot and for nothing else.
    Misdirected(Arrived),
    /// Something may have been missed; a new snapshot follows.
    Lost,
    /// There is no such bucket; it is tried again.
    NoBucket,
}

/// Watches until nobody listens any more. The lane is bounded: a listener that is slow holds the watcher up, and what the broker
/// then drops shows as a gap.
pub async fn watch(bus: Bus, target: Target, out: mpsc::Sender<FromBus>, jitter: u64) {
    let mut jitter = Jitter::new(jitter);
    let mut failed = 0;
    loop {
        let ended = match begin(&bus, &target, Policy::LastPerSubject).await {
            Ok((inbox, pending)) => {
                failed = 0;
                listen(&bus, &target, inbox, pending, &out).await
            }
            Err(FrameError::NoStream) => out.send(FromBus::NoBucket).await,
            Err(error) => {
                tracing::debug!(stream = target.stream, %error, "a bucket cannot be watched yet");
                Ok(())
            }
        };
        if ended.is_err() || out.is_closed() {
            return;
        }
        let delay = Backoff::NO_ANSWER.delay(failed, &mut jitter);
        failed = failed.saturating_add(1);
        let mut connects = bus.connects();
        connects.mark_unchanged();
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = connects.changed() => {}
            () = out.closed() => return,
        }
    }
}

/// Makes a consumer; answers where it delivers and how many entries its snapshot has.
pub(super) async fn begin(
    bus: &Bus,
    target: &Target,
    policy: Policy,
) -> Result<(Subscriber, u64), FrameError> {
    let client = bus.client();
    let deliver = client.new_inbox();
    let inbox = client.subscribe(deliver.clone()).await.map_err(|_| FrameError::Unreadable)?;
    let name = Uuid::new_v4().simple().to_string();
    let subject = accounts::create(&target.stream, &target.filter).replacen(".*.", &format!(".{name}."), 1);
    let body = frames::create(&target.stream, &name, &target.filter, &deliver, policy);
    let answer = timeout(ANSWER_LIMIT, client.request(subject, body)).await;
    let answer = answer.ok().and_then(Result::ok).ok_or(FrameError::Unreadable)?;
    Ok((inbox, frames::created(&answer.payload)?))
}

type Sent = Result<(), mpsc::error::SendError<FromBus>>;

async fn listen(
    bus: &Bus,
    target: &Target,
    mut inbox: Subscriber,
    pending: u64,
    out: &mpsc::Sender<FromBus>,
) -> Sent {
    let mut connects = bus.connects();
    connects.mark_unchanged();
    out.send(FromBus::Begun(pending)).await?;
    let mut last = 0;
    loop {
        let next = tokio::select! {
            next = timeout(SILENCE_LIMIT, inbox.next()) => next,
            _ = connects.changed() => return out.send(FromBus::Lost).await,
            () = out.closed() => return Ok(()),
        };
        let Ok(Some(message)) = next else { return out.send(FromBus::Lost).await };
        match frames::delivered(message) {
            Delivered::Entry { sequence, entry } if sequence == last + 1 => {
                last = sequence;
                let is_misdirected = target.is_bucket && frames::is_misdirected(&entry);
                let told = if is_misdirected { FromBus::Misdirected(entry) } else { FromBus::Entry(entry) };
                out.send(told).await?;
            }
            Delivered::Alive(delivered) if delivered == last => {}
            Delivered::Other => {}
            Delivered::Entry { .. } | Delivered::Alive(_) => return out.send(FromBus::Lost).await,
        }
    }
}
