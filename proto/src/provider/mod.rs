//! The provider protocol: JSON Lines between a host and its providers (docs/protocols.md).
//!
//! In reading order: [`Value`]s and [`Type`]s, the [`Schema`] that a provider declares, and the frames that pass.

pub mod kit;
mod schema;
mod types;
mod values;
mod wire;

pub use crate::json::Limits;
pub use schema::{
    ActionSchema, AttrSchema, Attrs, Declared, Extension, Extensions, HostHello, HostOffer, MAX_NAME,
    PROTOCOL, Schema, SchemaError, SchemaFault, is_name,
};
pub use types::{AnyEncoding, Field, MAX_TYPE_DEPTH, Type, TypeError, validate};
pub use values::{Complaint, Members, Number, NumberError, Path, Segment, SyntaxError, Value};
pub use wire::{
    Body, Call, CallContext, CallId, CallIds, Cancel, Configure, Decoded, Diagnostic, DoneState, EncodeError,
    ErrorCode, Execute, Executed, Found, Frame, FrameError, HostCode, Incoming, Invocation, Level, Lines,
    LogEvent, LogReader, Mask, More, Overlong, Progress, ProviderError, Read, Relay, Reply, Request,
    RequestError, Severity, Validate, Warning, decode, decode_incoming, encode, encode_cancel,
    encode_progress, encode_relay, encode_reply, excerpt,
};
