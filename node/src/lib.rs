//! The node side of Quartermaster: a client that keeps every module's files on a machine filled from NATS KV, with
//! secrets sealed to a key that lives in memory only.
//!
//! The package is empty but for this purpose. It exists so that its place in the house (it may use `proto`, async-nats,
//! the file system and, of `actors`, only `supervise` and `link`) is settled before its code arrives.
