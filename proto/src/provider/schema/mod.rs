//! The schema that a provider declares.

mod attrs;
mod compare;
mod document;
mod extension;
mod people;
mod read;
mod write;

pub use attrs::Declared;
pub use document::{ActionSchema, AttrSchema, Attrs, MAX_NAME, PROTOCOL, Schema, is_name};
pub use extension::{Extension, Extensions, HostHello, HostOffer};
pub use read::{SchemaError, SchemaFault};
