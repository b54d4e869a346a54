//! What a host writes, for who writes a provider.

use crate::{
    json::Limits,
    provider::{
        schema::HostHello,
        values::{Members, Number, Path, Value},
    },
};

use super::{
    code::ErrorCode,
    decode::members,
    error::ProviderError,
    id::CallId,
    names,
    note::{Cancel, id_of},
    request::{Call, CallContext, Configure, Execute, Request, Validate},
};

/// One line of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// Nothing but white space.
    Blank,
    /// A question, to be answered.
    Request(Request),
    /// Stop a call, and answer it all the same.
    Cancel(Cancel),
    /// A frame without an id that says nothing known, not to be answered.
    Unknown,
}

/// Why a line of the host is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct RequestError {
    /// The id to answer; `None` when the line has none that can be read.
    pub id: Option<CallId>,
    /// What to answer.
    pub error: ProviderError,
}

/// Reads one line of a host, with or without its end.
///
/// # Errors
/// What to answer, and to which id.
pub fn decode_incoming(line: &[u8], limits: &Limits) -> Result<Incoming, RequestError> {
    let fail = |id, code, message: String| RequestError { id, error: ProviderError::new(code, message) };
    let members =
        members(line, limits).map_err(|error| fail(None, ErrorCode::InvalidRequest, error.to_string()))?;
    let Some((mut members, _)) = members else { return Ok(Incoming::Blank) };
    let params = match members.remove(names::PARAMS) {
        None | Some(Value::Null) => Some(Members::new()),
        Some(Value::Object(params)) => Some(params),
        Some(_) => None,
    };
    let method = members.get(names::METHOD).and_then(Value::as_str);
    let Some(id) = members.get(names::ID) else {
        let cancel = params.filter(|_| method == Some(names::CANCEL));
        let cancel = cancel.and_then(|params| Cancel::from_params(&params));
        return Ok(cancel.map_or(Incoming::Unknown, Incoming::Cancel));
    };
    let id = id_of(id);
    if id.is_none() {
        return Err(fail(None, ErrorCode::InvalidRequest, "`id` should be an integer of 64 bits".to_owned()));
    }
    let bad =
        |name: &str| fail(id, ErrorCode::InvalidRequest, format!("`{name}` is missing or of another type"));
    let (Some(id), Some(method), Some(params)) = (id, method, params) else {
        return Err(bad("method` or `params"));
    };
    let call = match method {
        names::DESCRIBE => Call::Describe,
        names::SHUTDOWN => Call::Shutdown,
        names::PING => Call::Ping,
        names::CONFIGURE => Call::Configure(configure(params).map_err(bad)?),
        names::EXECUTE => Call::Execute(execute(params).map_err(bad)?),
        names::LOOKUP => Call::Lookup { key: text(&params, names::KEY).map_err(bad)? },
        names::VALIDATE => Call::Validate(validate(params).map_err(bad)?),
        other => {
            let known = "describe, configure, execute, shutdown";
            let message = format!("no such method: {}; known: {known}", super::warning::shown(other));
            return Err(fail(Some(id), ErrorCode::UnknownMethod, message));
        }
    };
    Ok(Incoming::Request(Request { id, call }))
}

fn text(params: &Members, name: &'static str) -> Result<String, &'static str> {
    params.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(name)
}

/// An object that may be absent or null.
fn object(params: &mut Members, name: &'static str) -> Result<Members, &'static str> {
    match params.remove(name) {
        None | Some(Value::Null) => Ok(Members::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err(name),
    }
}

fn configure(mut params: Members) -> Result<Configure, &'static str> {
    let host =
        params.get(names::HOST).map(|host| HostHello::from_value(host).ok_or(names::HOST)).transpose()?;
    Ok(Configure { config: object(&mut params, names::CONFIG)?, host })
}

fn execute(mut params: Members) -> Result<Execute, &'static str> {
    let undo = match params.get(names::UNDO) {
        None | Some(Value::Null) => false,
        Some(flag) => flag.as_bool().ok_or(names::UNDO)?,
    };
    let context =
        params.get(names::CALL).map(|context| context_of(context).ok_or(names::CALL)).transpose()?;
    Ok(Execute {
        action: text(&params, names::ACTION)?,
        attrs: object(&mut params, names::ATTRS)?,
        undo,
        context,
    })
}

fn context_of(value: &Value) -> Option<CallContext> {
    let members = value.as_object()?;
    let text = |name| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name| members.get(name).and_then(Value::as_number).and_then(Number::as_u64);
    Some(CallContext {
        run: text(names::RUN)?,
        step: text(names::STEP)?,
        attempt: number(names::ATTEMPT)?.try_into().ok()?,
        key: text(names::KEY)?,
        deadline_ms: number(names::DEADLINE_MS),
        traceparent: text(names::TRACEPARENT),
    })
}

fn validate(mut params: Members) -> Result<Validate, &'static str> {
    let unknown = match params.get(names::UNKNOWN) {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => {
            let paths = list.as_list().and_then(|paths| paths.iter().map(Path::from_value).collect());
            paths.ok_or(names::UNKNOWN)?
        }
    };
    Ok(Validate { action: text(&params, names::ACTION)?, attrs: object(&mut params, names::ATTRS)?, unknown })
}
