//! The helper contract: what a helper reads on stdin and writes on stdout (docs/protocols.md).

mod attrs;
mod claims;
mod input;
mod reply;
mod value;

pub use attrs::{ATTRS, PROVISION, misfits};
pub use claims::{PermissionsOrder, ServerClaimsOrder};
pub use input::HelperInput;
pub use reply::{HelperReply, decode_reply, reply_of_outputs};
pub use value::HelperReplyError;
