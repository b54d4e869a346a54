//! The layers around a payload, transport, secure and message, of both generations (choria.md 3).
//!
//! A request is built in two steps, because what is signed is the exact text of the middle: [`request_body`] gives that
//! text, whoever holds the key makes a [`Proof`] of it, [`seal_request`] wraps both. A host opens it with
//! [`open_request`]. Replies go through [`seal_reply`] and [`open_reply`].

mod error;
mod message;
mod transport;
mod v1;
mod v2;

pub use error::{Layer, WireError};
pub use message::{
    OpenReply, OpenRequest, Proof, Reply, Request, open_reply, open_request, request_body, seal_reply,
    seal_request, v1_id,
};
