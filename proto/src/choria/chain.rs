//! The chain of trust between tokens.
