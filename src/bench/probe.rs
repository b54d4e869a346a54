//! Looks at the provisioner from outside while it works: `/metrics` and control, each with its time.

use std::time::{Duration, Instant};

use async_nats::Client;

use super::figures::Answers;
use crate::stage::{Sample, samples};

/// How long an answer is waited for.
const LIMIT: Duration = Duration::from_secs(5);
/// How long the connection for control is waited for.
const CONNECT: Duration = Duration::from_secs(2);
/// What control is asked: everything an operator sees first.
const QUESTION: &str = "quartermaster.status";

/// Asks again and again, and keeps what it took.
pub(super) struct Probe {
    port: u16,
    control: Option<Client>,
    metrics_taken: Vec<Option<Duration>>,
    control_taken: Vec<Option<Duration>>,
    latest: Vec<Sample>,
}

/// Whether control answers: metrics are there before it is.
async fn answers(client: &Client) -> bool {
    let end = Instant::now() + LIMIT;
    while client.request(QUESTION, "{}".into()).await.is_err() {
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(CONNECT / 40).await;
    }
    true
}

impl Probe {
    /// A probe of the provisioner with that port for metrics; with an address of its broker, control is asked too, if
    /// somebody answers there.
    pub(super) async fn new(port: u16, broker: Option<&str>) -> Self {
        let mut probe = Self {
            port,
            control: None,
            metrics_taken: Vec::new(),
            control_taken: Vec::new(),
            latest: Vec::new(),
        };
        if let Some(broker) = broker {
            let options =
                async_nats::ConnectOptions::new().connection_timeout(CONNECT).request_timeout(Some(LIMIT));
            if let Ok(Ok(client)) = tokio::time::timeout(CONNECT, options.connect(broker)).await
                && answers(&client).await
            {
                probe.control = Some(client);
            }
        }
        probe
    }

    /// Asks once.
    pub(super) async fn ask(&mut self) {
        let begin = Instant::now();
        let told = samples(self.port).await;
        self.metrics_taken.push(told.as_ref().map(|_| begin.elapsed()));
        if let Some(told) = told {
            self.latest = told;
        }
        if let Some(control) = &self.control {
            let begin = Instant::now();
            let answered = control.request(QUESTION, "{}".into()).await.is_ok();
            self.control_taken.push(answered.then(|| begin.elapsed()));
        }
    }

    /// The series of the latest look that was answered.
    pub(super) fn latest(&self) -> &[Sample] {
        &self.latest
    }

    /// A series of that look, over all its labels.
    pub(super) fn sum(&self, name: &str) -> f64 {
        self.latest.iter().filter(|sample| sample.name == name).map(|sample| sample.value).sum()
    }

    /// Forgets what was asked so far: it was the warm-up.
    pub(super) fn forget(&mut self) {
        self.metrics_taken.clear();
        self.control_taken.clear();
    }

    /// What `/metrics` took.
    pub(super) fn metrics_answer(&self) -> Answers {
        Answers::of(&self.metrics_taken)
    }

    /// What control took; none where it cannot be asked.
    pub(super) fn control_answer(&self) -> Option<Answers> {
        self.control.as_ref().map(|_| Answers::of(&self.control_taken))
    }
}
