//! Templates: bytes in which only `${kind:name}` means anything.

mod fill;
mod filter;
mod grammar;

pub use filter::{Filter, FilterError};
pub use grammar::{Placeholder, Template, TemplateError};

#[cfg(test)]
mod tests;
