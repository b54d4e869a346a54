//! What passes in a network, as the lab's tap tells it.
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use super::PATIENCE;
use super::process::Process;

/// One message, payload and sender opened where it is a Choria message.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Heard {
    ready: bool,
    /// The NATS subject.
    pub subject: String,
    /// The message as it came.
    pub data: String,
    /// What a Choria request or reply carries inside its envelopes.
    pub payload: String,
    /// Who says so in the inner envelope.
    pub sender: String,
    /// The caller id of a request.
    pub caller: String,
}

impl Heard {
    /// The payload as JSON; null when it is something else.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.payload).unwrap_or_default()
    }
}

#[derive(Default)]
struct Ear {
    heard: Mutex<Vec<Heard>>,
    more: Condvar,
}

/// A running tap, all it has heard in order of arrival.
pub struct Tap {
    ear: Arc<Ear>,
    _process: Process,
}

impl Tap {
    /// Starts the tap and waits until it listens.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let (process, out) = Process::start_piped(command, log);
        let ear = Arc::new(Ear::default());
        let writer = Arc::clone(&ear);
        // Ends by itself when the tap does: its pipe closes.
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let heard = serde_json::from_str(&line).expect("a line of the tap");
                writer.heard.lock().unwrap().push(heard);
                writer.more.notify_all();
            }
        });
        let tap = Self { ear, _process: process };
        tap.wait("the tap to listen", 1, |h| h.ready);
        tap
    }

    /// Waits for the `nth` message (from 1) that `is` what is looked for, counting those that came before.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait(&self, what: &str, nth: usize, is: impl Fn(&Heard) -> bool) -> Heard {
        self.within(PATIENCE, what, nth, is)
    }

    /// The same with another patience.
    ///
    /// # Panics
    /// When it does not come.
    pub fn within(&self, limit: Duration, what: &str, nth: usize, is: impl Fn(&Heard) -> bool) -> Heard {
        let deadline = Instant::now() + limit;
        let mut heard = self.ear.heard.lock().unwrap();
        loop {
            if let Some(found) = heard.iter().filter(|h| is(h)).nth(nth - 1) {
                return found.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(heard);
                panic!("waited {limit:?} for {what}");
            }
            heard = self.ear.more.wait_timeout(heard, left).unwrap().0;
        }
    }

    /// Waits for the `nth` start of a server as `component`.
    pub fn startup(&self, server: &str, component: &str, nth: usize) -> Heard {
        let subject = format!("choria.lifecycle.event.startup.{component}");
        // Where two accounts hear the same event, only one of them counts.
        let mut seen: Vec<String> = Vec::new();
        let what = format!("{server} to start as {component} ({nth})");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.within(deadline.saturating_duration_since(Instant::now()), &what, 1, |h| {
                h.subject == subject && is_of(h, server) && !seen.contains(&h.data)
            });
            seen.push(event.data.clone());
            if seen.len() == nth {
                return event;
            }
        }
    }

    /// Everything heard so far that `is` what is looked for.
    pub fn all(&self, is: impl Fn(&Heard) -> bool) -> Vec<Heard> {
        self.ear.heard.lock().unwrap().iter().filter(|h| is(h)).cloned().collect()
    }

    /// The requests for `action` that somebody sent to `server`.
    pub fn requests(&self, server: &str, action: &str) -> Vec<Heard> {
        self.all(|h| is_request(h, server, action))
    }

    /// Waits for the `nth` request for `action` at `server`.
    pub fn request(&self, server: &str, action: &str, nth: usize) -> Heard {
        self.wait(&format!("request {nth} for {action} at {server}"), nth, |h| is_request(h, server, action))
    }

    /// Waits for the `nth` answer of `server` to `action`.
    pub fn answer(&self, server: &str, action: &str, nth: usize) -> Heard {
        self.wait(&format!("answer {nth} of {server} to {action}"), nth, |h| {
            h.subject.starts_with("provisioning.reply.") && h.sender == server && h.json()["action"] == action
        })
    }
}

fn is_of(event: &Heard, server: &str) -> bool {
    let event: Value = serde_json::from_str(&event.data).unwrap_or_default();
    event["data"]["identity"] == server
}

fn is_request(h: &Heard, server: &str, action: &str) -> bool {
    h.subject.strip_prefix("provisioning.node.") == Some(server) && h.json()["action"] == action
}
