//! Keys and values of the node side: what lies in the mesh's buckets, what its programs ask each other, and what passes
//! over the engine's socket (docs/node.md).
//!
//! In reading order: [`token`]s and [`key`]s; the assignment with its [`plan`]; the [`registry`] of owners; [`value`]s;
//! what is asked of the [`vault`]; [`report`]s; [`ask`]; [`accounts`]; [`signature`]s; the engine's [`fill`] socket.
//!
//! Readers ignore members they do not know; the plan's reader names them, so that they can be said. Every fault has a
//! place, and repeats nothing of a value.

pub mod accounts;
pub mod ask;
pub mod bound;
pub mod collect;
pub mod consumer;
mod fault;
mod fields;
pub mod fill;
pub mod key;
pub mod kind;
pub mod need;
pub mod plan;
pub mod registry;
pub mod report;
pub mod signature;
pub mod stamp;
pub mod token;
pub mod value;
pub mod vault;

pub use fault::Fault;
pub use kind::Kind;
pub use token::{esc, is_bucket_name, is_name, unesc};
