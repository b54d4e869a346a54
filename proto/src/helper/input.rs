//! What a helper reads: one JSON object, keys in the order of the peer.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    choria::{
        agents::{CsrReply, Gen25519Reply},
        identity::Identity,
    },
    json,
};

/// All that a helper learns about one host. Tokens, keys and paths of ours are no part of it; the host's own claims are.
#[derive(Clone, Serialize)]
pub struct HelperInput {
    /// The identity under which the host was discovered.
    pub identity: Identity,
    /// The signing request, when x509 enrolment is on.
    pub csr: Option<CsrReply>,
    /// The host's Ed25519 key, when issuer enrolment is on.
    pub ed25519_pubkey: Option<Gen25519Reply>,
    /// The inventory as the *text* of a JSON object with sorted keys ([`json::sorted`]): the helper decodes it again.
    pub inventory: String,
    /// The verified claims of the host's provisioning token, when that is fetched.
    pub jwt: Option<Box<RawValue>>,
}

impl std::fmt::Debug for HelperInput {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The claims hold the shared provisioning token.
        out.debug_struct("HelperInput").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl HelperInput {
    /// The bytes for the helper's stdin: compact JSON without a final newline, as from the peer.
    pub fn to_json(&self) -> Vec<u8> {
        std::mem::take(&mut *json::to_secret_bytes(self))
    }
}
