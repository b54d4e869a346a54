//! Answers, read as what was asked.

use zeroize::Zeroizing;

use crate::{
    json::Limits,
    provider::{
        schema::Schema,
        values::{Members, Part, Value},
    },
};

use super::{
    code::ErrorCode,
    decode::FrameError,
    error::{Diagnostic, ProviderError},
    execute::Executed,
    id::CallId,
    names,
    request::{EncodeError, encode_frame},
    warning::Read,
};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The id of its request.
    pub id: CallId,
    /// What it says.
    pub body: Body,
}

/// What an answer says. The host knows what it asked and reads it by the method of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A result.
    Result(Value),
    /// An error.
    Error(Box<ProviderError>),
    /// Neither, which stands for an empty result of `configure` and `shutdown`.
    Neither,
}

/// What became of a step, by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Never seen: it is safe to send it again.
    Absent,
    /// Still being done.
    Running,
    /// Done.
    Done(Executed),
    /// Failed.
    Failed(Box<ProviderError>),
}

impl Body {
    /// The schema, in an object with `schema` or bare.
    ///
    /// # Errors
    /// The provider's error, or one of the host's: `host.bad_frame`, `host.bad_schema`, `host.unsupported_protocol`.
    pub fn describe(self) -> Result<Read<Schema>, ProviderError> {
        Ok(Schema::from_value(&self.needed()?)?)
    }

    /// Any result will do.
    ///
    /// # Errors
    /// The provider's error.
    pub fn configure(self) -> Result<(), ProviderError> {
        if let Self::Error(error) = self { Err(*error) } else { Ok(()) }
    }

    /// Any result will do.
    ///
    /// # Errors
    /// The provider's error.
    pub fn shutdown(self) -> Result<(), ProviderError> {
        self.configure()
    }

    /// Outputs and undo.
    ///
    /// # Errors
    /// The provider's error, or `host.bad_frame`.
    pub fn execute(self) -> Result<Read<Executed>, ProviderError> {
        Executed::from_wire(self.needed()?).map_err(|what| FrameError::BadResult(what).into())
    }

    /// A sign of life; that the method is not known is one too.
    ///
    /// # Errors
    /// The provider's other errors, or `host.bad_frame`.
    pub fn ping(self) -> Result<(), ProviderError> {
        match self.needed() {
            Err(error) if error.code != ErrorCode::UnknownMethod => Err(error),
            _ => Ok(()),
        }
    }

    /// What became of a step.
    ///
    /// # Errors
    /// The provider's error, or `host.bad_frame`.
    pub fn lookup(self) -> Result<Read<Found>, ProviderError> {
        let bad = |what: &str| ProviderError::from(FrameError::BadResult(what.to_owned()));
        let Value::Object(mut members) = self.needed()? else {
            return Err(bad("the result should be an object"));
        };
        let state = members.remove(names::LOOKUP_STATE);
        let found = |value| Ok(Read { value, warnings: Vec::new() });
        match state.as_ref().and_then(Value::as_str) {
            Some("absent") => found(Found::Absent),
            Some("running") => found(Found::Running),
            Some("done") => {
                // Only the named members count: the other members of a lookup are no bare outputs.
                members.entry(names::OUTPUTS.to_owned()).or_default();
                let done = Executed::from_wire(Value::Object(members)).map_err(|what| bad(&what))?;
                Ok(Read { value: Found::Done(done.value), warnings: done.warnings })
            }
            Some("failed") => {
                let mut warnings = Vec::new();
                let error = members.remove(names::ERROR).unwrap_or_else(Value::empty);
                let error = ProviderError::from_wire(&error, &mut warnings)
                    .map_err(|member| bad(&format!("`{member}` has another type than it should")))?;
                Ok(Read { value: Found::Failed(Box::new(error)), warnings })
            }
            _ => Err(bad("`state` should be absent, running, done or failed")),
        }
    }

    /// What is wrong with an action that might be done later.
    ///
    /// # Errors
    /// The provider's error, or `host.bad_frame`.
    pub fn validate(self) -> Result<Vec<Diagnostic>, ProviderError> {
        let result = self.needed()?;
        let found = match result.as_object().and_then(|members| members.get(names::DIAGNOSTICS)) {
            None | Some(Value::Null) if result.is_null() || result.as_object().is_some() => Some(Vec::new()),
            None => None,
            Some(list) => Diagnostic::list_from_wire(list),
        };
        let what = || {
            FrameError::BadResult("`diagnostics` should be a list of severity, path and message".to_owned())
        };
        found.ok_or_else(|| what().into())
    }

    fn needed(self) -> Result<Value, ProviderError> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error(error) => Err(*error),
            Self::Neither => Err(FrameError::NoResult.into()),
        }
    }

    /// The answer to `describe`, for who writes a provider.
    pub fn described(schema: &Schema) -> Self {
        Self::of(names::SCHEMA, schema.to_value())
    }

    /// The answer to `execute`, for who writes a provider.
    pub fn executed(done: Executed) -> Self {
        Self::Result(Value::Object(done.into_members()))
    }

    /// An empty answer, for who writes a provider.
    pub const fn empty() -> Self {
        Self::Result(Value::empty())
    }

    fn of(name: &str, value: Value) -> Self {
        Self::Result(Value::Object(Members::from([(name.to_owned(), value)])))
    }
}

/// The frame of an answer with its line's end, for who writes a provider.
///
/// # Errors
/// [`EncodeError`] when it is over the limits.
pub fn encode_reply(reply: &Reply, limits: &Limits) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
    let mut fields = vec![(names::ID, Part::Int(reply.id.0))];
    match &reply.body {
        Body::Result(result) => fields.push((names::RESULT, Part::Value(result))),
        Body::Error(error) => fields.push((names::ERROR, error.to_part())),
        Body::Neither => {}
    }
    encode_frame(fields, limits)
}
