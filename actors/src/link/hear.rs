//! Listening to subjects with their headers, across reconnects.

use std::time::Duration;

use async_nats::Subscriber;
use futures::stream::{BoxStream, SelectAll, unfold};
use futures::{StreamExt, future};

use super::ClientWatch;
use super::cas::EXPECTED;

/// Between two attempts to subscribe.
const AGAIN: Duration = Duration::from_millis(500);

/// A message that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Its subject.
    pub subject: String,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// The sequence number that a write asks the key's last write to have; none for a message without one.
    pub after: Option<u64>,
}

struct Ears {
    clients: ClientWatch,
    subjects: Vec<String>,
    subscriptions: Option<SelectAll<Subscriber>>,
}

/// Listens to these subjects for ever. What is said while there is no connection is missed.
pub fn listen(clients: ClientWatch, subjects: Vec<String>) -> BoxStream<'static, Heard> {
    let ears = Ears { clients, subjects, subscriptions: None };
    unfold(ears, |mut ears| async move {
        let heard = ears.next().await;
        Some((heard, ears))
    })
    .boxed()
}

impl Ears {
    async fn next(&mut self) -> Heard {
        loop {
            let Some(subscriptions) = &mut self.subscriptions else {
                match self.subscribe().await {
                    Some(subscriptions) => self.subscriptions = Some(subscriptions),
                    None => tokio::time::sleep(AGAIN).await,
                }
                continue;
            };
            tokio::select! {
                message = subscriptions.next() => if let Some(message) = message {
                    let headers = message.headers.as_ref();
                    let after = headers.and_then(|headers| headers.get(EXPECTED)?.as_str().parse().ok());
                    return Heard { subject: message.subject.into_string(), payload: message.payload.into(), after };
                },
                () = self.clients.changed() => {},
            }
            self.subscriptions = None;
        }
    }

    async fn subscribe(&mut self) -> Option<SelectAll<Subscriber>> {
        let Some(client) = self.clients.connected().await else { return future::pending().await };
        let mut subscriptions = SelectAll::new();
        for subject in &self.subjects {
            subscriptions.push(client.subscribe(subject.clone()).await.ok()?);
        }
        Some(subscriptions)
    }
}
