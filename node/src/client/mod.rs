//! The client's own decisions beyond one module (what the vault is asked, what a bucket holds, who is bound to whom), and its
//! connections: to the broker, to the engine, and to where templates lie. [`service`] is the program: the actors that carry events
//! and effects between them.

pub mod asking;
pub mod bucket;
pub mod bus;
pub mod engine;
pub mod mirror;
pub mod seen;
pub mod service;
pub mod templates;
pub mod vault;
pub mod watching;
