//! Carries out what a request asks for.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use quartermaster_actors::fleet::{HostQuery, MAX_PAGE};
use quartermaster_actors::service::{Reply, Request, RequestHandler};
use quartermaster_proto::choria::Identity;
use serde::Serialize;

use super::fields::Fields;
use super::wire::{ConfigReply, ErrorBody, ErrorReply, PingReply, StatusReply};
use crate::operate::{Change, OperateError, Operator, Via};

/// Hosts on a page when nobody says how many.
const PAGE: usize = 100;
/// Failures that a status tells of.
const FAILURES: usize = 5;
/// How long a status waits for the keeper of the fleet, which may have a lot to do.
const OVERVIEW_LIMIT: Duration = Duration::from_millis(500);
/// What hosts may be asked for by.
const STATES: [&str; 7] = ["known", "waiting", "in_flight", "held", "cooling", "gave_up", "done"];

/// Answers requests on behalf of one instance, as soon as it has an operator.
#[derive(Debug, Clone)]
pub struct Desk {
    instance: Arc<str>,
    operator: Arc<OnceLock<Operator>>,
}

/// A request is answered, or the reason why not.
type Done = Result<Bytes, OperateError>;

impl Desk {
    /// A desk of this instance, nobody behind it yet.
    pub fn new(instance: &str) -> Self {
        Self { instance: instance.into(), operator: Arc::new(OnceLock::new()) }
    }

    /// From now on requests are carried out.
    pub fn open(&self, operator: Operator) {
        // A second one would be the same instance's.
        let _ = self.operator.set(operator);
    }

    /// What a service hands its requests to.
    pub fn handler(&self) -> RequestHandler {
        let desk = self.clone();
        Arc::new(move |request| {
            let desk = desk.clone();
            Box::pin(async move { desk.answer(&request).await })
        })
    }

    async fn answer(&self, request: &Request) -> Reply {
        let done = match self.operator.get() {
            Some(operator) => carry_out(operator, request).await,
            None => Err(OperateError::Busy),
        };
        match done {
            Ok(body) if body.len() > request.most => self.fault(ErrorBody {
                code: "too_large".to_owned(),
                status: 413,
                message: format!(
                    "the answer has {} bytes and the broker takes {}: ask for fewer at once",
                    body.len(),
                    request.most
                ),
                at: None,
            }),
            Ok(body) => Reply::Answer(body),
            Err(error) => self.fault(ErrorBody::of(&error)),
        }
    }

    fn fault(&self, error: ErrorBody) -> Reply {
        fault(&self.instance, error)
    }
}

fn fault(instance: &str, error: ErrorBody) -> Reply {
    let (status, text) = (error.status, format!("{}: {}", error.code, error.message));
    let body = ErrorReply { instance: instance.to_owned(), error };
    Reply::Fault { status, text, body: serde_json::to_vec(&body).unwrap_or_default().into() }
}

/// What is answered when too many requests are under way.
pub fn busy(instance: &str) -> Reply {
    fault(instance, ErrorBody::of(&OperateError::Busy))
}

async fn carry_out(operator: &Operator, request: &Request) -> Done {
    let mut fields = Fields::read(&request.payload)?;
    match request.endpoint {
        "ping" => {
            fields.finish()?;
            let about = operator.about();
            json(&PingReply {
                instance: about.instance.clone(),
                site: about.site.clone(),
                version: env!("CARGO_PKG_VERSION"),
                role: operator.ready().role,
            })
        }
        "status" => {
            fields.finish()?;
            let asked = tokio::time::timeout(OVERVIEW_LIMIT, operator.overview(FAILURES));
            let overview = asked.await.ok().and_then(Result::ok);
            json(&StatusReply { status: operator.status(), overview })
        }
        "config" => {
            fields.finish()?;
            json(&ConfigReply { instance: operator.about().instance.clone(), config: operator.config() })
        }
        "hosts" => {
            let mut report = operator.hosts(query(fields)?).await?;
            // A page of them would be larger than a broker takes; `host` tells it of one.
            for failure in report.page.hosts.iter_mut().filter_map(|host| host.failure.as_mut()) {
                failure.helper = None;
            }
            json(&report)
        }
        "host" => {
            let name = fields.needed("name")?;
            fields.finish()?;
            json(&operator.host(&name).await?)
        }
        "retry" | "forget" => {
            let (name, change) = (fields.needed("name")?, change(fields)?);
            match request.endpoint {
                "retry" => json(&operator.retry(&name, &change).await?),
                _ => json(&operator.forget(&name, &change).await?),
            }
        }
        "pause" => json(&operator.pause(&change(fields)?).await?),
        "resume" => json(&operator.resume(&change(fields)?).await?),
        "flip" => json(&operator.flip(&change(fields)?).await?),
        "drain" => json(&operator.drain(&change(fields)?).await?),
        "discover" => json(&operator.discover(&change(fields)?).await?),
        other => {
            let what = format!("`{other}` is answered by nobody");
            Err(OperateError::BadInput { at: String::new(), what })
        }
    }
}

fn json(view: &impl Serialize) -> Done {
    let bad =
        |error: serde_json::Error| OperateError::BadInput { at: String::new(), what: error.to_string() };
    serde_json::to_vec(view).map(Bytes::from).map_err(bad)
}

fn change(mut fields: Fields) -> Result<Change, OperateError> {
    let (who, why) = (fields.needed("who")?, fields.needed("why")?);
    fields.finish()?;
    Change::new(&who, &why, Via::Message)
}

fn query(mut fields: Fields) -> Result<HostQuery, OperateError> {
    let bad = |at: &str, what: String| OperateError::BadInput { at: at.to_owned(), what };
    let state = fields.text("state")?;
    if let Some(state) = state.as_ref().filter(|state| !STATES.contains(&state.as_str())) {
        let shown: String = state.chars().take(100).collect();
        return Err(bad("/state", format!("there is no state {shown:?}: there are {}", STATES.join(", "))));
    }
    let text = fields.text("text")?;
    let after = fields.text("after")?;
    let after = after.map(|name| Identity::parse(&name).map_err(|error| bad("/after", error.to_string())));
    let most = fields.count("most", MAX_PAGE)?.unwrap_or(PAGE);
    fields.finish()?;
    Ok(HostQuery { state, text, after: after.transpose()?, most })
}
