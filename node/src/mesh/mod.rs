//! The mesh: what an operator sets up and looks at.
mod broker;

pub use broker::{User, configuration};
