//! Providers, as steps need them.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use quartermaster_proto::provider::{
    CallContext, ErrorCode, Executed, Found, HostCode, Members, Schema, Value,
};

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
pub struct Providers {
    handles: BTreeMap<String, ProviderHandle>,
    /// Where relative paths among attributes begin: the folder of the file that has the steps.
    folder: PathBuf,
}

impl Providers {
    /// These providers, for steps in a file of this folder.
    pub fn new(handles: impl IntoIterator<Item = ProviderHandle>, folder: PathBuf) -> Self {
        let handles = handles.into_iter().map(|handle| (handle.name().to_owned(), handle)).collect();
        Self { handles, folder }
    }

    fn get(&self, name: &str) -> Result<ProviderHandle, CallError> {
        self.handles.get(name).cloned().ok_or_else(|| {
            let message = format!("there is no provider `{name}` any more");
            CallError::host(Outcome::NotSent, HostCode::Closed, message)
        })
    }
}

impl StepPort for Providers {
    fn execute(&self, call: StepCall) -> Boxed<Result<Executed, CallError>> {
        let (handle, folder) = (self.get(&call.provider), self.folder.clone());
        Box::pin(async move {
            let handle = handle?;
            let StepCall { step, action, mut attrs, undo, key, attempt, timeout, .. } = call;
            // What takes back has its paths from the provider itself.
            if undo {
                let schema = handle.start().await?;
                absolute_paths(&schema, &action, &mut attrs, &folder);
            }
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

/// Paths that the file has are the file's.
fn absolute_paths(schema: &Schema, action: &str, attrs: &mut Members, folder: &Path) {
    let Some(action) = schema.actions.get(action) else { return };
    for (name, _) in action.attrs.iter().filter(|(_, attr)| attr.is_path) {
        if let Some(Value::String(path)) = attrs.get_mut(name)
            && Path::new(path.as_str()).is_relative()
        {
            let whole = folder.join(path.as_str());
            *path = zeroize::Zeroizing::new(whole.to_string_lossy().into_owned());
        }
    }
}

fn odd(outcome: Outcome) -> CallError {
    CallError::refused(ErrorCode::Internal, "the answer is one to another question").with_outcome(outcome)
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::provider::{ActionSchema, AttrSchema, Type};

    use super::*;

    #[test]
    fn relative_paths_begin_at_the_file_and_other_texts_are_left_alone() {
        let mut path = AttrSchema::new(Type::String);
        path.is_path = true;
        let attrs = [("file".to_owned(), path), ("name".to_owned(), AttrSchema::new(Type::String))].into();
        let action = ActionSchema { attrs, ..ActionSchema::default() };
        let schema = Schema { actions: [("copy".to_owned(), action)].into(), ..Schema::default() };
        let changed = |file: &str| {
            let mut attrs: Members =
                [("file".to_owned(), file.into()), ("name".to_owned(), "a/b".into())].into();
            absolute_paths(&schema, "copy", &mut attrs, Path::new("/etc/q"));
            (attrs["file"].as_str().unwrap().to_owned(), attrs["name"].as_str().unwrap().to_owned())
        };
        assert_eq!(changed("zones/a"), ("/etc/q/zones/a".to_owned(), "a/b".to_owned()));
        assert_eq!(changed("/srv/a").0, "/srv/a");
    }
}
