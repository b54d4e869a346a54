//! The node side of Quartermaster: a client that keeps every module's files on a machine filled from NATS KV, with
//! secrets sealed to a key that lives in memory only, and the programs around it.
//!
//! It may use `proto`, async-nats, the file system and, of `actors`, only `supervise` and `link`.

pub mod sealed;
