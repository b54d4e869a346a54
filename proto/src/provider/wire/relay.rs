//! An action whose attributes are JSON text already: handed on without being read and written again.

use zeroize::Zeroizing;

use crate::{json::Limits, provider::values::Part};

use super::{
    id::CallId,
    names,
    request::{CallContext, EncodeError, encode_frame},
};

/// An action to do, with attributes as they stand. Whoever makes it has seen that they fit their declared types.
#[derive(Debug, Clone, Copy)]
pub struct Relay<'a> {
    /// The action's name.
    pub action: &'a str,
    /// Names of attributes, each with one JSON value.
    pub attrs: &'a [(&'a str, &'a str)],
    /// Whence the call comes; only with extension `call_context`.
    pub context: Option<&'a CallContext>,
}

/// The frame of this action with its line's end, in a buffer that is wiped when dropped.
///
/// # Errors
/// [`EncodeError`] when the frame is over the limits; nothing is made then.
pub fn encode_relay(
    id: CallId,
    relay: &Relay<'_>,
    limits: &Limits,
) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
    let attrs = relay.attrs.iter().map(|(name, json)| (*name, Part::Json(json))).collect();
    let mut params = vec![(names::ACTION, Part::Text(relay.action)), (names::ATTRS, Part::Fields(attrs))];
    params.extend(relay.context.map(|context| (names::CALL, context.to_part())));
    let fields = vec![
        (names::ID, Part::Int(id.0)),
        (names::METHOD, Part::Text(names::EXECUTE)),
        (names::PARAMS, Part::Fields(params)),
    ];
    encode_frame(fields, limits)
}
