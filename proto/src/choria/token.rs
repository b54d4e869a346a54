//! Provisioning, server and client tokens.
