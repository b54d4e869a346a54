//! Who may look and who may change: tokens, sessions, and where a request comes from.
mod access;
mod origin;
mod sessions;
mod throttle;
mod token;

pub use access::AccessSettings;
pub(super) use access::{Access, Denied, Visitor};
pub(super) use sessions::Session;
pub use token::{MAX_TOKEN, MIN_TOKEN, TokenError, TokenSource};
