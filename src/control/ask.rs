//! Asking instances, and gathering what they answer.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::{Client, Message, StatusCode};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::Instant;

use super::wire::{ErrorBody, ErrorReply};

/// All instances have answered when none has said anything new for this long.
const QUIET: Duration = Duration::from_millis(300);
/// The most answers that are gathered: far more instances than anybody runs.
const MAX_ANSWERS: usize = 1000;

/// A question to one instance or to all.
#[derive(Debug, Clone)]
pub struct Question {
    /// First words of the subjects.
    pub prefix: String,
    /// The endpoint.
    pub verb: &'static str,
    /// The instance; `None` = all.
    pub instance: Option<String>,
    /// The request, a JSON object.
    pub body: Value,
    /// How long answers are waited for.
    pub limit: Duration,
}

/// What one instance answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The instance.
    pub instance: String,
    /// The answer, or why there is none.
    pub body: Result<Value, ErrorBody>,
}

/// What all of them answered, ordered by instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// Those that did.
    pub given: Vec<Answer>,
    /// Instances that are there and did not answer in time.
    pub silent: Vec<String>,
}

/// Why nothing came of a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskFault {
    /// Nobody listens, or nobody answered in time.
    #[error("no instance answered: {0}")]
    Nobody(&'static str),
    /// The connection did not do its part.
    #[error("the broker could not be asked: {0}")]
    Broker(String),
}

impl AskFault {
    fn broker(error: impl std::error::Error) -> Self {
        Self::Broker(quartermaster_actors::text::chain(&error))
    }
}

/// Asks, and waits for everybody who is there. Beside the question to all goes a ping, so that who answers slowly is waited
/// for and who does not is named.
pub async fn ask(client: &Client, question: &Question) -> Result<Answers, AskFault> {
    let Question { prefix, verb, instance, .. } = question;
    let subject = match instance {
        Some(instance) => format!("{prefix}.{verb}.{instance}"),
        None => format!("{prefix}.{verb}"),
    };
    let body = question.body.to_string();
    let (inbox, pings) = (client.new_inbox(), client.new_inbox());
    let mut answers = client.subscribe(inbox.clone()).await.map_err(AskFault::broker)?;
    let mut present = client.subscribe(pings.clone()).await.map_err(AskFault::broker)?;
    client.publish_with_reply(subject, inbox, body.into()).await.map_err(AskFault::broker)?;
    let to_all = instance.is_none() && *verb != "ping";
    if to_all {
        let ping = format!("{prefix}.ping");
        client.publish_with_reply(ping, pings, "{}".into()).await.map_err(AskFault::broker)?;
    }
    client.flush().await.map_err(AskFault::broker)?;

    let end = Instant::now() + question.limit;
    let mut gathering = Gathering { single: instance.is_some(), ..Gathering::default() };
    loop {
        let until = gathering.complete().map_or(end, |quiet| quiet.min(end));
        tokio::select! {
            () = tokio::time::sleep_until(until) => break,
            Some(message) = answers.next() => gathering.answer(&message)?,
            Some(message) = present.next() => gathering.ping(&message),
            else => return Err(AskFault::Broker("the connection was lost".to_owned())),
        }
        if gathering.is_over() {
            break;
        }
    }
    gathering.end()
}

#[derive(Default)]
struct Gathering {
    single: bool,
    present: BTreeSet<String>,
    given: Vec<Answer>,
    last: Option<Instant>,
}

impl Gathering {
    fn answer(&mut self, message: &Message) -> Result<(), AskFault> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Err(AskFault::Nobody("nobody listens there"));
        }
        if let Some(answer) = read(message) {
            self.given.push(answer);
        }
        self.last = Some(Instant::now());
        Ok(())
    }

    fn ping(&mut self, message: &Message) {
        if let Some(answer) = read(message) {
            self.present.insert(answer.instance);
        }
        self.last = Some(Instant::now());
    }

    /// When it may end unless something more comes: none while somebody is still waited for.
    fn complete(&self) -> Option<Instant> {
        let everybody =
            self.present.iter().all(|name| self.given.iter().any(|given| given.instance == *name));
        let quiet = self.last.map(|last| last + QUIET);
        quiet.filter(|_| everybody && !self.given.is_empty())
    }

    /// One instance has one answer.
    fn is_over(&self) -> bool {
        (self.single && !self.given.is_empty()) || self.given.len() >= MAX_ANSWERS
    }

    fn end(mut self) -> Result<Answers, AskFault> {
        self.given.sort_by(|a, b| a.instance.cmp(&b.instance));
        let answered = |name: &String| self.given.iter().any(|given| given.instance == *name);
        let silent: Vec<_> = self.present.iter().filter(|name| !answered(name)).cloned().collect();
        if self.given.is_empty() && silent.is_empty() {
            return Err(AskFault::Nobody("nothing came back in time"));
        }
        Ok(Answers { given: self.given, silent })
    }
}

/// An answer of an instance; what is none is left out.
fn read(message: &Message) -> Option<Answer> {
    let body: Value = serde_json::from_slice(&message.payload).ok()?;
    let instance = body.get("instance")?.as_str()?.to_owned();
    let is_fault =
        message.headers.as_ref().is_some_and(|headers| headers.get("Nats-Service-Error").is_some());
    let body = if is_fault { Err(serde_json::from_value::<ErrorReply>(body).ok()?.error) } else { Ok(body) };
    Some(Answer { instance, body })
}
