//! The two generations of the protocol. One process speaks exactly one (choria.md 3).

use serde::{Deserialize, Serialize};

/// Protocol generation of an envelope, chosen by the peer's security provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// Protocol 1: x509 or unsigned networks, times in seconds, 32-character request ids.
    V1,
    /// Protocol 2: organisation issuers, times in nanoseconds, KSUID request ids.
    V2,
}
