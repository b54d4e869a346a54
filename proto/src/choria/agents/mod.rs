//! Typed arguments and outputs of the actions that provisioning uses (choria.md 4).

mod inputs;
mod outputs;

pub use inputs::{
    ConfigureInput, CsrInput, Gen25519Input, JwtInput, RestartInput, ShutdownInput, UpdateInput, decode_input,
};
pub use outputs::{
    CsrReply, Fields, Gen25519Reply, InventoryReply, JwtReply, MessageReply, Output, decode_output,
};

/// The agent with the provisioning actions.
pub const CHORIA_PROVISION: &str = "choria_provision";
/// The agent with `inventory` and `ping`.
pub const RPCUTIL: &str = "rpcutil";
/// The agent that answers discovery.
pub const DISCOVERY: &str = "discovery";
/// The fourth agent of a host in provisioning mode.
pub const CHORIA_UTIL: &str = "choria_util";
