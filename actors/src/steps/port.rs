//! Providers, as steps need them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use quartermaster_proto::provider::{CallContext, ErrorCode, Executed, Found, HostCode};

use super::going::StepCall;
use crate::provider::{Action, Answer, Ask, Call, CallError, Outcome, ProviderHandle};

/// A future that need not be sent to another thread.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// What steps ask of providers.
pub trait StepPort: Send + Sync {
    /// Makes a call.
    fn execute(&self, call: StepCall) -> Boxed<Result<Executed, CallError>>;
    /// Asks what became of the call with this key.
    fn lookup(&self, provider: String, key: String) -> Boxed<Result<Found, CallError>>;
    /// Asks whether an action is safe to repeat with the same attributes.
    fn repeatable(&self, provider: String, action: String) -> Boxed<Result<bool, CallError>>;
}

/// The providers of a site by their local names.
#[derive(Debug, Clone, Default)]
pub struct Providers(BTreeMap<String, ProviderHandle>);

impl Providers {
    /// These providers.
    pub fn new(handles: impl IntoIterator<Item = ProviderHandle>) -> Self {
        Self(handles.into_iter().map(|handle| (handle.name().to_owned(), handle)).collect())
    }

    fn get(&self, name: &str) -> Result<ProviderHandle, CallError> {
        self.0.get(name).cloned().ok_or_else(|| {
            let message = format!("there is no provider `{name}` any more");
            CallError::host(Outcome::NotSent, HostCode::Closed, message)
        })
    }
}

impl StepPort for Providers {
    fn execute(&self, call: StepCall) -> Boxed<Result<Executed, CallError>> {
        let handle = self.get(&call.provider);
        Box::pin(async move {
            let handle = handle?;
            let StepCall { step, action, attrs, undo, key, attempt, timeout, .. } = call;
            let run = key.split('/').next().unwrap_or_default().to_owned();
            let context = CallContext { run, step, attempt, key, deadline_ms: None, traceparent: None };
            let ask = Ask::Execute(Action { action, attrs, undo, context: Some(context) });
            match handle.call(Call { ask, timeout, about: None }, None).await? {
                Answer::Executed(executed) => Ok(executed),
                Answer::Found(_) | Answer::Diagnosed(_) => Err(odd(Outcome::Unknown)),
            }
        })
    }

    fn lookup(&self, provider: String, key: String) -> Boxed<Result<Found, CallError>> {
        let handle = self.get(&provider);
        Box::pin(async move {
            match handle?.call(Call { ask: Ask::Lookup(key), timeout: None, about: None }, None).await? {
                Answer::Found(found) => Ok(found),
                Answer::Executed(_) | Answer::Diagnosed(_) => Err(odd(Outcome::NotSent)),
            }
        })
    }

    fn repeatable(&self, provider: String, action: String) -> Boxed<Result<bool, CallError>> {
        let handle = self.get(&provider);
        Box::pin(async move {
            let schema = handle?.start().await?;
            Ok(schema.actions.get(&action).is_some_and(|action| action.idempotent))
        })
    }
}

fn odd(outcome: Outcome) -> CallError {
    CallError::refused(ErrorCode::Internal, "the answer is one to another question").with_outcome(outcome)
}
