//! What passes between a host and a provider, line by line.

mod body;
mod code;
mod decode;
mod error;
mod execute;
mod id;
mod incoming;
mod lines;
mod log;
mod mask;
pub(super) mod names;
mod note;
mod relay;
mod request;
mod warning;

pub use body::{Body, Found, Reply, encode_reply};
pub use code::{ErrorCode, HostCode};
pub use decode::{Decoded, Frame, FrameError, decode};
pub use error::{Diagnostic, DoneState, More, ProviderError, Severity};
pub use execute::{Executed, Invocation};
pub use id::{CallId, CallIds};
pub use incoming::{Incoming, RequestError, decode_incoming};
pub use lines::{Lines, Overlong};
pub use log::{Level, LogEvent, LogReader};
pub(super) use mask::MASKED;
pub use mask::{Mask, excerpt};
pub use note::{Cancel, Progress, encode_cancel, encode_progress};
pub use relay::{Relay, encode_relay};
pub use request::{Call, CallContext, Configure, EncodeError, Execute, Request, Validate, encode};
pub(super) use warning::shown;
pub use warning::{Read, Warning};
