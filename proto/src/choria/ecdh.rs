//! X25519 key exchange.
