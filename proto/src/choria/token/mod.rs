//! Choria tokens: provisioning, server and client JSON Web Tokens (choria.md 6).
//!
//! The algorithm is fixed by the type of the *configured* key; what the token's own header says is only ever compared with
//! it. Times are checked here, against a given moment, without leeway.

mod claims;
mod client;
mod error;
mod key;
mod provisioning;
mod server;

pub use claims::{
    DEFAULT_OU, MAX_TOKEN, PURPOSE_CLIENT, PURPOSE_PROVISIONING, PURPOSE_SERVER, StandardClaims,
};
pub use client::{ClientClaims, ClientPermissions, parse_client, verify_client};
pub use error::TokenError;
pub use key::VerifyKey;
pub use provisioning::{ProvisioningClaims, SignedProvisioning, parse_provisioning, verify_provisioning};
pub use server::{ServerClaims, ServerPermissions, parse_server, verify_server};

pub(crate) use claims::{Claims, check_times, decode, decode_unverified};
pub(crate) use error::shown;
