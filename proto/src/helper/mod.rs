//! The helper contract: what a helper reads on stdin and writes on stdout (docs/protocols.md).

mod claims;
mod input;
mod reply;
mod value;

pub use claims::{PermissionsOrder, ServerClaimsOrder};
pub use input::HelperInput;
pub use reply::{HelperReply, decode_reply};
pub use value::HelperReplyError;
