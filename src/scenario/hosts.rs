//! The providers of a run: their runners, what they said of themselves, and what is asked of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::Arbiter;
use futures::future::join_all;
use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{
    Action, Answer, Ask, Call, CallError, Happening, Note, Outcome, ProgressSink, ProviderFact,
    ProviderHandle, ProviderParts, ProviderSettings,
};
use quartermaster_actors::steps::StepCall;
use quartermaster_proto::provider::{
    CallContext, Diagnostic, Executed, Found, HostCode, Members, Path, Schema,
};

use super::secrets::Secrets;
use super::stop::Stop;
use crate::app::beside::provider_beside;
use crate::provider::TraceFile;

/// How long open calls have at the end; there should be none.
const DRAIN: Duration = Duration::ZERO;
/// Signs of progress that may wait to be shown.
pub const PROGRESS: usize = 16;

/// All providers of a run.
pub struct Hosts {
    run: String,
    hosts: BTreeMap<String, Host>,
}

struct Host {
    handle: ProviderHandle,
    schema: tokio::sync::OnceCell<Arc<Schema>>,
    /// Its thread ends with it.
    arbiter: Arbiter,
    /// It may be asked for undos.
    undo: bool,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("names", &self.hosts.keys()).finish_non_exhaustive()
    }
}

impl Hosts {
    /// Runners for these providers; processes start when they are needed.
    pub fn new(
        run: &str,
        settings: impl IntoIterator<Item = ProviderSettings>,
        secrets: &Secrets,
        trace: Option<&TraceFile>,
    ) -> Self {
        let mut hosts = BTreeMap::new();
        for mut settings in settings {
            run.clone_into(&mut settings.run);
            let (name, undo) = (settings.name.clone(), settings.compat.undo);
            let covered = secrets.clone();
            let record = Arc::new(move |fact: ProviderFact| masked(fact, &covered).log());
            let mut parts = ProviderParts::new(settings, record, Orphans::unadopted());
            if let Some(trace) = trace {
                let covered = secrets.clone();
                parts = parts.traced(trace.sink(&name, move |frame| covered.text(frame)));
            }
            let (handle, arbiter) = provider_beside(parts);
            hosts.insert(name, Host { handle, schema: tokio::sync::OnceCell::new(), arbiter, undo });
        }
        Self { run: run.to_owned(), hosts }
    }

    /// Starts, describes and configures all of them at once. What is in the answer could not be.
    pub async fn start_all(&self) -> Vec<CallError> {
        let each = self.hosts.keys().map(|name| async move { self.schema(name).await.err() });
        join_all(each).await.into_iter().flatten().collect()
    }

    /// What a provider says of itself; it is started for that.
    pub async fn schema(&self, name: &str) -> Result<Arc<Schema>, CallError> {
        let host = self.host(name)?;
        host.schema.get_or_try_init(|| host.handle.start()).await.map(Arc::clone)
    }

    fn host(&self, name: &str) -> Result<&Host, CallError> {
        self.hosts.get(name).ok_or_else(|| {
            CallError::host(Outcome::NotSent, HostCode::Closed, format!("there is no provider `{name}`"))
        })
    }

    /// Does an action. Once `stop` is asked for it is called back, and nothing is sent any more.
    pub async fn execute(
        &self,
        call: StepCall,
        progress: Option<ProgressSink>,
        stop: &Stop,
    ) -> Result<Executed, CallError> {
        let host = self.host(&call.provider)?;
        if stop.asked().is_some() {
            return Err(CallError::host(
                Outcome::NotSent,
                HostCode::Closed,
                "it was called off before it was sent",
            ));
        }
        let about = Some(Arc::from(call.step.as_str()));
        let context = CallContext {
            run: self.run.clone(),
            step: call.step,
            attempt: call.attempt,
            key: call.key,
            deadline_ms: None,
            traceparent: None,
        };
        let action =
            Action { action: call.action, attrs: call.attrs, undo: call.undo, context: Some(context) };
        let call = Call { ask: Ask::Execute(action), timeout: call.timeout, about };
        match host.handle.call_until(call, progress, stop.wait()).await? {
            Answer::Executed(executed) => Ok(executed),
            Answer::Found(_) | Answer::Diagnosed(_) => Err(odd()),
        }
    }

    /// What became of the call with this key.
    pub async fn lookup(&self, name: &str, key: &str) -> Result<Found, CallError> {
        let call = Call { ask: Ask::Lookup(key.to_owned()), timeout: None, about: None };
        match self.host(name)?.handle.call(call, None).await? {
            Answer::Found(found) => Ok(found),
            Answer::Executed(_) | Answer::Diagnosed(_) => Err(odd()),
        }
    }

    /// Whether this provider may be asked for undos.
    pub fn asks_undo(&self, name: &str) -> bool {
        self.hosts.get(name).is_some_and(|host| host.undo)
    }

    /// Whether an action may be repeated with the same attributes.
    pub async fn is_repeatable(&self, name: &str, action: &str) -> Result<bool, CallError> {
        let schema = self.schema(name).await?;
        Ok(schema.actions.get(action).is_some_and(|action| action.idempotent))
    }

    /// What the provider thinks of these attributes, of which those at the paths are not known yet.
    pub async fn validate(
        &self,
        name: &str,
        action: &str,
        attrs: Members,
        unknown: Vec<Path>,
    ) -> Result<Vec<Diagnostic>, CallError> {
        let action = Action { action: action.to_owned(), attrs, undo: false, context: None };
        let call = Call { ask: Ask::Validate(action, unknown), timeout: None, about: None };
        match self.host(name)?.handle.call(call, None).await? {
            Answer::Diagnosed(diagnostics) => Ok(diagnostics),
            Answer::Executed(_) | Answer::Found(_) => Err(odd()),
        }
    }

    /// Ends all processes, each as the protocol wants it.
    pub async fn close(self) {
        let each = self.hosts.values().map(|host| host.handle.close(DRAIN));
        join_all(each).await;
        for host in self.hosts.into_values() {
            host.arbiter.stop();
            // Its thread ends by itself; what it owned has ended.
            drop(host.arbiter);
        }
    }
}

fn odd() -> CallError {
    CallError::host(Outcome::Unknown, HostCode::BadFrame, "the answer belongs to another question")
}

/// The same without any secret of the run: those that are given to attributes which their provider does not call sensitive.
fn masked(mut fact: ProviderFact, secrets: &Secrets) -> ProviderFact {
    match &mut fact.what {
        Happening::Said(_, said) => said.text = secrets.text(&said.text),
        Happening::Noted(Note::Odd(_, what) | Note::Crashed(_, what, _) | Note::Replaced(_, what)) => {
            *what = secrets.text(what);
        }
        Happening::Noted(Note::Failed(_, error)) => *error = masked_error(error.clone(), secrets),
        _ => {}
    }
    fact
}

/// An error without any secret of the run.
pub fn masked_error(mut error: CallError, secrets: &Secrets) -> CallError {
    error.error.message = secrets.text(&error.error.message);
    error.error.detail = error.error.detail.map(|detail| secrets.text(&detail));
    for line in &mut error.stderr {
        *line = secrets.text(line);
    }
    error
}
