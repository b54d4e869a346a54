//! The node side of Quartermaster: a client that keeps every module's files on a machine filled from NATS KV, with
//! secrets sealed to a key that lives in memory only, and the programs around it.
//!
//! It may use `proto`, async-nats, the file system and, of `actors`, only `supervise` and `link`.
//!
//! The client, in reading order: [`template`]s and [`value`]s, [`archive`]s, the [`check`] of a plan with its templates,
//! [`collection`]s, and [`core`], which decides one module's life.

pub mod archive;
pub mod assigned;
pub mod backoff;
pub mod check;
pub mod client;
pub mod collection;
pub mod core;
pub mod engine;
pub mod mesh;
pub mod near;
pub mod offline;
pub mod sealed;
pub mod secrecy;
pub mod template;
pub mod value;
pub mod vault;

mod lines;
mod peers;
