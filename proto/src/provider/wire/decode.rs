//! What a provider writes, one line at a time.

use crate::{
    json::{JsonError, Limits},
    provider::values::{Members, Parsed, SyntaxError, Value, parse},
};

use super::{
    body::{Body, Reply},
    code::HostCode,
    error::ProviderError,
    id::CallId,
    names,
    note::{Progress, id_of},
    warning::{Warning, shown},
};

/// One line of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Nothing but white space.
    Blank,
    /// An answer.
    Reply(Reply),
    /// How far an open call is. Whether the provider may say so is for the host to know.
    Progress(Progress),
    /// A frame without an id that says nothing known; a warning tells its method.
    Dropped,
}

/// A frame, and what was forgiven in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The frame.
    pub frame: Frame,
    /// What was forgiven.
    pub warnings: Vec<Warning>,
}

/// Why a line is no frame, or an answer fits no call. Nothing of the line is repeated; [`excerpt`](super::excerpt) shows its
/// beginning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The line is longer than allowed.
    #[error("a line over the limit of {limit} bytes")]
    TooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The line holds more values than allowed.
    #[error("a line with more than {limit} values")]
    TooMany {
        /// Values allowed.
        limit: usize,
    },
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// The line is not JSON.
    #[error("the line is not JSON: {0}")]
    NotJson(SyntaxError),
    /// The line is JSON but not an object.
    #[error("the line is {found}, not an object")]
    NotObject {
        /// What it is.
        found: &'static str,
    },
    /// An id that is no JSON integer of 64 bits.
    #[error("the id is {found}, not an integer of 64 bits")]
    BadId {
        /// What it is.
        found: &'static str,
    },
    /// An answer without an id.
    #[error("an answer without an id")]
    NoId,
    /// An answer that is both.
    #[error("the answer to call {id} has both `result` and `error`")]
    Both {
        /// Its id.
        id: CallId,
    },
    /// A frame that asks; only the host asks.
    #[error("a request with id {id}, but only the host makes requests")]
    Asks {
        /// Its id.
        id: CallId,
    },
    /// An error whose shape is not known.
    #[error("the error of call {id} has a `{member}` of another type than it should")]
    BadError {
        /// The call.
        id: CallId,
        /// The member, `error` for the whole.
        member: &'static str,
    },
    /// An answer to a call that was never made.
    #[error("an answer to call {id}, which was never made")]
    NotIssued {
        /// Its id.
        id: CallId,
    },
    /// An answer without `result` where one is needed.
    #[error("the answer has neither `result` nor `error`")]
    NoResult,
    /// A result that says something else than was asked.
    #[error("{0}")]
    BadResult(String),
}

impl FrameError {
    /// The host's code for this.
    pub const fn code(&self) -> HostCode {
        match self {
            Self::TooLarge { .. } | Self::TooMany { .. } => HostCode::FrameTooLarge,
            _ => HostCode::BadFrame,
        }
    }

    /// Whether the line is something else than protocol (a banner, a log line), which `stray_stdout: log` forgives after the
    /// handshake.
    pub const fn is_stray(&self) -> bool {
        matches!(self, Self::NotUtf8 { .. } | Self::NotJson(_) | Self::NotObject { .. })
    }
}

impl From<FrameError> for ProviderError {
    fn from(error: FrameError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<SyntaxError> for FrameError {
    fn from(error: SyntaxError) -> Self {
        match error {
            SyntaxError::Limit(JsonError::TooLarge { limit, .. }) => Self::TooLarge { limit },
            SyntaxError::Limit(JsonError::TooMany { limit }) => Self::TooMany { limit },
            other => Self::NotJson(other),
        }
    }
}

/// Reads one line of a provider, with or without its end. A byte-order mark and a carriage return are no part of it.
///
/// # Errors
/// [`FrameError`]. The session is then at its end, unless the host forgives stray lines.
pub fn decode(line: &[u8], limits: &Limits) -> Result<Decoded, FrameError> {
    let Some((members, mut warnings)) = members(line, limits)? else {
        return Ok(Decoded { frame: Frame::Blank, warnings: Vec::new() });
    };
    let frame = frame(members, &mut warnings)?;
    Ok(Decoded { frame, warnings })
}

/// The members of a line's one object; `None` for a blank line.
pub fn members(line: &[u8], limits: &Limits) -> Result<Option<(Members, Vec<Warning>)>, FrameError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    if line.len() > limits.max_bytes {
        return Err(FrameError::TooLarge { limit: limits.max_bytes });
    }
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let text =
        std::str::from_utf8(line).map_err(|error| FrameError::NotUtf8 { offset: error.valid_up_to() })?;
    let Parsed { value, repeated, replaced } = parse(text, limits)?;
    let Value::Object(members) = value else { return Err(FrameError::NotObject { found: value.kind() }) };
    let mut warnings: Vec<Warning> = repeated.map(|name| Warning::Repeated { name }).into_iter().collect();
    warnings.extend(replaced.then_some(Warning::Replaced));
    Ok(Some((members, warnings)))
}

fn frame(mut members: Members, warnings: &mut Vec<Warning>) -> Result<Frame, FrameError> {
    let result = members.remove(names::RESULT);
    // As Go's decoder has it, an error that is null is none.
    let error = members.remove(names::ERROR).filter(|error| !error.is_null());
    let Some(id) = members.get(names::ID) else {
        if result.is_some() || error.is_some() {
            return Err(FrameError::NoId);
        }
        return Ok(note(&members, warnings));
    };
    let id = id_of(id).ok_or(FrameError::BadId { found: id.kind() })?;
    let body = match (result, error) {
        (None | Some(Value::Null), Some(error)) => ProviderError::from_wire(&error, warnings)
            .map(|error| Body::Error(Box::new(error)))
            .map_err(|member| FrameError::BadError { id, member })?,
        (Some(_), Some(_)) => return Err(FrameError::Both { id }),
        (Some(result), None) => Body::Result(result),
        (None, None) if members.contains_key(names::METHOD) => return Err(FrameError::Asks { id }),
        (None, None) => Body::Neither,
    };
    Ok(Frame::Reply(Reply { id, body }))
}

fn note(members: &Members, warnings: &mut Vec<Warning>) -> Frame {
    let method = members.get(names::METHOD).and_then(Value::as_str);
    let none = Members::new();
    let params = members.get(names::PARAMS).and_then(Value::as_object).unwrap_or(&none);
    match method {
        Some(names::PROGRESS) => {
            if let Some(progress) = Progress::from_params(params) {
                return Frame::Progress(progress);
            }
            warnings.push(Warning::Ignored { member: names::PROGRESS });
        }
        Some(method) => warnings.push(Warning::Dropped { method: format!("`{}`", shown(method)) }),
        None => warnings.push(Warning::Dropped { method: "absent".to_owned() }),
    }
    Frame::Dropped
}
