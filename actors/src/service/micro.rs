//! The service protocol of NATS (its architecture decision 32): who is there, what it offers, what it has done.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

/// The header that says in words why a request was not done.
pub(super) const ERROR: &str = "Nats-Service-Error";
/// The same as a number.
pub(super) const ERROR_CODE: &str = "Nats-Service-Error-Code";

/// What every service is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Ping,
    Info,
    Stats,
}

impl Verb {
    pub(super) const ALL: [Self; 3] = [Self::Ping, Self::Info, Self::Stats];

    /// The subjects on which it is asked: of everybody, of services of that name, of this one.
    pub(super) fn subjects(self, name: &str, id: &str) -> [String; 3] {
        let verb = match self {
            Self::Ping => "PING",
            Self::Info => "INFO",
            Self::Stats => "STATS",
        };
        [format!("$SRV.{verb}"), format!("$SRV.{verb}.{name}"), format!("$SRV.{verb}.{name}.{id}")]
    }
}

/// What is published of the service as a whole.
#[derive(Debug, Clone, Serialize)]
pub(super) struct About {
    pub(super) name: &'static str,
    /// Of this process: it stays the same over connections.
    pub(super) id: String,
    pub(super) version: &'static str,
    pub(super) metadata: BTreeMap<String, String>,
}

/// What is published of one endpoint.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Offer {
    pub(super) name: &'static str,
    pub(super) subject: String,
    /// Always empty: everybody who is asked answers.
    pub(super) queue_group: &'static str,
    pub(super) metadata: BTreeMap<String, String>,
}

/// What one endpoint has done.
#[derive(Debug, Clone, Default)]
struct Done {
    requests: u64,
    errors: u64,
    took: Duration,
    last_error: String,
}

/// The service as others see it, and its numbers.
#[derive(Debug)]
pub(super) struct Book {
    about: About,
    description: &'static str,
    started: String,
    offers: Vec<Offer>,
    done: Vec<Done>,
}

impl Book {
    pub(super) fn new(about: About, description: &'static str, started: String, offers: Vec<Offer>) -> Self {
        let done = vec![Done::default(); offers.len()];
        Self { about, description, started, offers, done }
    }

    pub(super) fn id(&self) -> &str {
        &self.about.id
    }

    /// Notes that a request to the endpoint of this number was answered.
    pub(super) fn note(&mut self, endpoint: usize, took: Duration, error: Option<String>) {
        let Some(done) = self.done.get_mut(endpoint) else { return };
        done.requests = done.requests.saturating_add(1);
        done.took = done.took.saturating_add(took);
        if let Some(error) = error {
            done.errors = done.errors.saturating_add(1);
            done.last_error = error;
        }
    }

    /// The answer to one of the questions that every service is asked.
    pub(super) fn answer(&self, verb: Verb) -> Bytes {
        let json = match verb {
            Verb::Ping => serde_json::to_vec(&Answer {
                kind: "io.nats.micro.v1.ping_response",
                about: &self.about,
                rest: Nothing {},
            }),
            Verb::Info => serde_json::to_vec(&Answer {
                kind: "io.nats.micro.v1.info_response",
                about: &self.about,
                rest: Info { description: self.description, endpoints: &self.offers },
            }),
            Verb::Stats => serde_json::to_vec(&Answer {
                kind: "io.nats.micro.v1.stats_response",
                about: &self.about,
                rest: Stats { started: &self.started, endpoints: self.stats() },
            }),
        };
        // Maps with text for keys always serialise.
        json.unwrap_or_default().into()
    }

    fn stats(&self) -> Vec<EndpointStats<'_>> {
        let both = self.offers.iter().zip(&self.done);
        both.map(|(offer, done)| EndpointStats {
            name: offer.name,
            subject: &offer.subject,
            queue_group: offer.queue_group,
            num_requests: done.requests,
            num_errors: done.errors,
            last_error: &done.last_error,
            processing_time: nanos(done.took),
            average_processing_time: nanos(done.took).checked_div(done.requests).unwrap_or_default(),
        })
        .collect()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
struct Answer<'a, R> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    about: &'a About,
    #[serde(flatten)]
    rest: R,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Info<'a> {
    description: &'static str,
    endpoints: &'a [Offer],
}

#[derive(Serialize)]
struct Stats<'a> {
    started: &'a str,
    endpoints: Vec<EndpointStats<'a>>,
}

#[derive(Serialize)]
struct EndpointStats<'a> {
    name: &'static str,
    subject: &'a str,
    queue_group: &'static str,
    num_requests: u64,
    num_errors: u64,
    last_error: &'a str,
    processing_time: u64,
    average_processing_time: u64,
}
