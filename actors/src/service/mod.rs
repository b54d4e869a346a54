//! A NATS micro service: requests come in over the link, are handed to whoever answers them, and their answers go back.
//!
//! `micro.rs` holds the shapes and numbers of the service protocol (pure), `actor.rs` listens and answers. The client
//! library's own service is not used: it belongs to one connection, so that a new connection would be another service with
//! its numbers begun anew, and it puts every endpoint into a queue group, so that one instance of several would answer where
//! all are asked.
mod actor;
mod handle;
mod messages;
mod micro;
#[cfg(test)]
mod tests;

pub use actor::Attendant;
pub use handle::ServiceHandle;
pub use messages::{Endpoint, Lane, Reply, Request, RequestHandler, ServiceSettings, ServiceSnapshot};
