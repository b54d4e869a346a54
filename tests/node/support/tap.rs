//! Everything that crosses the bus, written down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::watch;

/// One message.
#[derive(Debug, Clone)]
pub struct Heard {
    /// Where.
    pub subject: String,
    /// Where an answer was to go.
    pub reply: Option<String>,
    /// What it says about itself.
    pub headers: Option<HeaderMap>,
    /// What it says.
    pub body: Bytes,
}

impl Heard {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Where the tap tells itself that it has heard everything before.
const MARK: &str = "qm.test.mark";

/// Hears everything.
#[derive(Debug, Clone)]
pub struct Tap {
    heard: Arc<Mutex<Vec<Heard>>>,
    client: Client,
    marked: watch::Receiver<u64>,
    marks: Arc<AtomicU64>,
}

impl Tap {
    /// Begins to hear.
    pub async fn start(client: &Client) -> Self {
        let mut all = client.subscribe(">").await.unwrap();
        client.flush().await.unwrap();
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let keep = Arc::clone(&heard);
        let (mark, marked) = watch::channel(0);
        tokio::spawn(async move {
            while let Some(message) = all.next().await {
                if message.subject.as_str() == MARK {
                    mark.send_replace(String::from_utf8_lossy(&message.payload).parse().unwrap());
                    continue;
                }
                let heard = Heard {
                    subject: message.subject.to_string(),
                    reply: message.reply.map(|reply| reply.to_string()),
                    headers: message.headers,
                    body: message.payload,
                };
                keep.lock().unwrap().push(heard);
            }
        });
        Self { heard, client: client.clone(), marked, marks: Arc::default() }
    }

    /// Waits until all that the broker has passed on by now is written down.
    pub async fn caught_up(&self) {
        let mark = self.marks.fetch_add(1, Ordering::Relaxed) + 1;
        let mut marked = self.marked.clone();
        // While the broker is away nothing is passed on either.
        let told = self.client.publish(MARK, mark.to_string().into());
        let heard = async { told.await.is_ok() && marked.wait_for(|last| *last >= mark).await.is_ok() };
        drop(tokio::time::timeout(Duration::from_secs(10), heard).await);
    }

    /// How much was heard so far: a place to look from.
    pub fn here(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    /// What was heard from this place on, on subjects that begin so.
    pub fn since(&self, place: usize, subject: &str) -> Vec<Heard> {
        let heard = self.heard.lock().unwrap();
        heard[place..].iter().filter(|message| message.subject.starts_with(subject)).cloned().collect()
    }

    /// All of it.
    pub fn all(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until something that `pick` takes is heard, from this place on.
    pub async fn until<T>(&self, place: usize, what: &str, mut pick: impl FnMut(&Heard) -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(45);
        loop {
            if let Some(found) = self.heard.lock().unwrap()[place..].iter().find_map(&mut pick) {
                return found;
            }
            assert!(Instant::now() < end, "never heard: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
