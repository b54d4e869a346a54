//! What the host asks.

use zeroize::Zeroizing;

use crate::{
    json::Limits,
    provider::{
        schema::HostHello,
        values::{Members, Part, Path, measure, write},
    },
};

use super::{code::HostCode, error::ProviderError, id::CallId, names};

/// One question of the host and the id of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its id.
    pub id: CallId,
    /// What is asked.
    pub call: Call,
}

/// What is asked. A provider that declares nothing is only asked the first four, without their parts of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Your schema?
    Describe,
    /// Take this configuration; once per process, before the first action.
    Configure(Configure),
    /// Do this.
    Execute(Execute),
    /// End.
    Shutdown,
    /// Are you alive? (extension `ping`)
    Ping,
    /// What became of the step with this key? (extension `lookup`)
    Lookup {
        /// The key from the call's context.
        key: String,
    },
    /// Would this work? (extension `validate`)
    Validate(Validate),
}

/// A configuration, its values converted to their declared types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configure {
    /// The values.
    pub config: Members,
    /// What the host can do; only for a provider that declares extensions.
    pub host: Option<HostHello>,
}

/// An action to do, its attributes converted to their declared types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Execute {
    /// The action's name.
    pub action: String,
    /// Its attributes.
    pub attrs: Members,
    /// Whether the answer should say how to undo it; `false` is never written.
    pub undo: bool,
    /// Whence the call comes; only with extension `call_context`.
    pub context: Option<CallContext>,
}

/// Whence a call comes, so that the provider can drop duplicates and join traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallContext {
    /// The run's id.
    pub run: String,
    /// The step's name.
    pub step: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The same for every attempt of the step.
    pub key: String,
    /// Milliseconds left; `None` without a limit.
    pub deadline_ms: Option<u64>,
    /// A W3C trace parent.
    pub traceparent: Option<String>,
}

/// An action that might be done later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validate {
    /// The action's name.
    pub action: String,
    /// Its attributes, with `null` where a value is not known yet.
    pub attrs: Members,
    /// Where those values are.
    pub unknown: Vec<Path>,
}

/// Why a frame was not made. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The frame would be longer than allowed.
    #[error("the frame would have {size} bytes, over the limit of {limit}; nothing was sent")]
    TooLarge {
        /// Bytes without the line's end.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The frame would nest deeper than allowed.
    #[error("the frame would nest {depth} levels deep, over the limit of {limit}; nothing was sent")]
    TooDeep {
        /// Levels.
        depth: usize,
        /// Levels allowed.
        limit: usize,
    },
}

impl From<EncodeError> for ProviderError {
    fn from(error: EncodeError) -> Self {
        Self::new(HostCode::FrameTooLarge, error.to_string()).with_state(super::error::DoneState::None)
    }
}

/// The frame of a request with its line's end, in a buffer that is wiped when dropped.
///
/// # Errors
/// [`EncodeError`] when the frame is over the limits; nothing is made then.
pub fn encode(request: &Request, limits: &Limits) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
    let params = request.call.to_params();
    let fields = vec![
        (names::ID, Part::Int(request.id.0)),
        (names::METHOD, Part::Text(request.call.method())),
        (names::PARAMS, Part::Fields(params)),
    ];
    encode_frame(fields, limits)
}

/// A frame of these fields.
pub fn encode_frame(
    fields: Vec<(&str, Part<'_>)>,
    limits: &Limits,
) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
    let frame = Part::Fields(fields);
    let (size, depth) = measure(&frame);
    if size > limits.max_bytes {
        return Err(EncodeError::TooLarge { size, limit: limits.max_bytes });
    }
    if depth > limits.max_depth {
        return Err(EncodeError::TooDeep { depth, limit: limits.max_depth });
    }
    let mut text = write(&frame, 1);
    text.push('\n');
    Ok(Zeroizing::new(std::mem::take(&mut *text).into_bytes()))
}

impl Call {
    /// The method's name on the wire.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Describe => names::DESCRIBE,
            Self::Configure(_) => names::CONFIGURE,
            Self::Execute(_) => names::EXECUTE,
            Self::Shutdown => names::SHUTDOWN,
            Self::Ping => names::PING,
            Self::Lookup { .. } => names::LOOKUP,
            Self::Validate(_) => names::VALIDATE,
        }
    }

    fn to_params(&self) -> Vec<(&'static str, Part<'_>)> {
        match self {
            Self::Describe | Self::Shutdown | Self::Ping => Vec::new(),
            Self::Configure(configure) => {
                let mut params = vec![(names::CONFIG, Part::Members(&configure.config))];
                params.extend(configure.host.as_ref().map(|host| (names::HOST, host.to_part())));
                params
            }
            Self::Execute(execute) => {
                let mut params = vec![
                    (names::ACTION, Part::Text(&execute.action)),
                    (names::ATTRS, Part::Members(&execute.attrs)),
                ];
                params.extend(execute.undo.then_some((names::UNDO, Part::Flag(true))));
                params.extend(execute.context.as_ref().map(|context| (names::CALL, context.to_part())));
                params
            }
            Self::Lookup { key } => vec![(names::KEY, Part::Text(key))],
            Self::Validate(validate) => vec![
                (names::ACTION, Part::Text(&validate.action)),
                (names::ATTRS, Part::Members(&validate.attrs)),
                (names::UNKNOWN, Part::List(validate.unknown.iter().map(Path::to_part).collect())),
            ],
        }
    }
}

impl CallContext {
    pub(super) fn to_part(&self) -> Part<'_> {
        let mut fields = vec![
            (names::RUN, Part::Text(&self.run)),
            (names::STEP, Part::Text(&self.step)),
            (names::ATTEMPT, Part::Count(self.attempt.into())),
            (names::KEY, Part::Text(&self.key)),
        ];
        fields.extend(self.deadline_ms.map(|left| (names::DEADLINE_MS, Part::Count(left))));
        fields.extend(self.traceparent.as_ref().map(|parent| (names::TRACEPARENT, Part::Text(parent))));
        Part::Fields(fields)
    }
}
