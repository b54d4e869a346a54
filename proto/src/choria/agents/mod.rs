//! Typed arguments and outputs of the actions that provisioning uses (choria.md 4).

mod inputs;
mod names;
mod outputs;

pub use inputs::{
    ConfigureInput, CsrInput, Gen25519Input, JwtInput, RestartInput, ShutdownInput, UpdateInput, decode_input,
};
pub use names::{CHORIA_PROVISION, CHORIA_UTIL, DISCOVERY, RPCUTIL};
pub use outputs::{
    CsrReply, Fields, Gen25519Reply, InventoryReply, JwtReply, MessageReply, Output, decode_output,
};
