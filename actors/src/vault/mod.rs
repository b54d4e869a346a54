//! Owns every private key and token: signs, verifies, encrypts.
