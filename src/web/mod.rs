//! The web listener: metrics, health and status. It reads snapshots and decides nothing; no request waits on an actor
//! that has other work (a scrape waits a bounded time for the metrics keeper, whose only work it is).
mod pages;
mod server;
mod state;
#[cfg(test)]
mod tests;

pub use server::{BoundWeb, WebError, WebServer};
pub use state::WebState;
