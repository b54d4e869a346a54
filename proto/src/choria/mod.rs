//! The Choria protocol: envelopes, agents, events, tokens (facts: docs/protocols.md).

pub mod agents;
pub mod certificate;
pub mod chain;
pub mod csr;
pub mod discovery;
pub mod ecdh;
pub mod envelope;
pub mod event;
pub mod filter;
pub mod generation;
pub mod identity;
pub mod ksuid;
pub mod pem;
pub mod rpc;
pub mod sign;
pub mod subject;
pub mod token;
pub mod version;

pub use generation::Generation;
pub use identity::{Identity, IdentityError};
