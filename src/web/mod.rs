//! The web listener: metrics, health, the pages and the API. It reads snapshots, asks with a limit, and decides nothing;
//! no page waits for an actor longer than that, and monitors' pages wait for none but the metrics' own keeper.
mod answers;
mod api;
mod browse;
mod clients;
mod desk;
mod events;
mod guard;
mod html;
mod live;
mod locked;
mod openapi;
mod pages;
mod plain;
mod rate;
mod server;
mod site;
mod state;
#[cfg(test)]
mod tests;
mod views;
mod words;

pub use desk::{Answer, Desk, DeskError, HostSearch, MAX_PAGE, MAX_SEARCH, Wish};
pub use guard::{AccessSettings, MAX_TOKEN, MIN_TOKEN, TokenError, TokenSource};
pub use server::{BoundWeb, WebError, WebServer};
pub use state::WebState;
pub use views::ErrorView;
