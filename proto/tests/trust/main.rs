//! Keys, tokens, chains of trust and certificate requests, shown on recorded bytes, published vectors and attacks.

mod recorded;

mod chain;
mod csr;
mod keys;
mod properties;
mod tokens;
