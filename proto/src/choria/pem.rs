//! The legacy encryption of private keys in PEM.
