//! Archives of templates: fetched, tested against their digest, kept.

mod cache;
mod fetch;
mod keeper;
mod object;

pub use cache::{Cache, CacheError};
pub use fetch::{FetchError, Fetcher};
pub use keeper::TemplatesKeeper;

#[cfg(test)]
mod tests;
