//! What is signed and verified in requests and logins.
