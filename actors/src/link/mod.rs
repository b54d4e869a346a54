//! The one connection to the broker.
