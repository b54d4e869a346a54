//! Frames without an id. They are never answered.

use zeroize::Zeroizing;

use crate::{
    json::Limits,
    provider::values::{Members, Number, Part, Value},
};

use super::{
    id::CallId,
    names,
    request::{EncodeError, encode_frame},
};

/// From the provider: how far an open call is (extension `progress`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The call.
    pub id: CallId,
    /// How much is done.
    pub done: Option<Number>,
    /// Of how much.
    pub total: Option<Number>,
    /// What is going on, as it was written.
    pub message: Option<String>,
}

/// From the host: stop an open call; it must be answered all the same (extension `cancel`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The call.
    pub id: CallId,
    /// Why.
    pub reason: String,
    /// Milliseconds until the process is killed.
    pub grace_ms: u64,
}

/// The frame of a cancel.
///
/// # Errors
/// [`EncodeError`] when it is over the limits.
pub fn encode_cancel(cancel: &Cancel, limits: &Limits) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
    let params = vec![
        (names::ID, Part::Int(cancel.id.0)),
        (names::REASON, Part::Text(&cancel.reason)),
        (names::GRACE_MS, Part::Count(cancel.grace_ms)),
    ];
    let fields = vec![(names::METHOD, Part::Text(names::CANCEL)), (names::PARAMS, Part::Fields(params))];
    encode_frame(fields, limits)
}

/// The frame of a progress note, for who writes a provider.
///
/// # Errors
/// [`EncodeError`] when it is over the limits.
pub fn encode_progress(progress: &Progress, limits: &Limits) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
    let [done, total] = [&progress.done, &progress.total].map(|number| number.clone().map(Value::Number));
    let mut params = vec![(names::ID, Part::Int(progress.id.0))];
    params.extend(done.as_ref().map(|done| (names::DONE, Part::Value(done))));
    params.extend(total.as_ref().map(|total| (names::TOTAL, Part::Value(total))));
    params.extend(progress.message.as_ref().map(|message| (names::MESSAGE, Part::Text(message))));
    let fields = vec![(names::METHOD, Part::Text(names::PROGRESS)), (names::PARAMS, Part::Fields(params))];
    encode_frame(fields, limits)
}

/// The id that a note is about.
fn about(params: &Members) -> Option<CallId> {
    id_of(params.get(names::ID)?)
}

/// A JSON integer as an id: no text, no fraction, no exponent.
pub fn id_of(value: &Value) -> Option<CallId> {
    let number = value.as_number()?.as_str();
    number.parse().ok().map(CallId)
}

impl Progress {
    pub(super) fn from_params(params: &Members) -> Option<Self> {
        let number = |name| params.get(name).and_then(Value::as_number).cloned();
        let message = params.get(names::MESSAGE).and_then(Value::as_str).map(str::to_owned);
        Some(Self { id: about(params)?, done: number(names::DONE), total: number(names::TOTAL), message })
    }
}

impl Cancel {
    pub(super) fn from_params(params: &Members) -> Option<Self> {
        let reason = params.get(names::REASON).and_then(Value::as_str).unwrap_or_default().to_owned();
        let grace_ms = params.get(names::GRACE_MS).and_then(Value::as_number).and_then(Number::as_u64);
        Some(Self { id: about(params)?, reason, grace_ms: grace_ms.unwrap_or_default() })
    }
}
