//! The names of the agents of a host in provisioning mode.

/// The agent with the provisioning actions.
pub const CHORIA_PROVISION: &str = "choria_provision";
/// The agent with `inventory` and `ping`.
pub const RPCUTIL: &str = "rpcutil";
/// The agent that answers discovery.
pub const DISCOVERY: &str = "discovery";
/// The fourth agent of a host in provisioning mode.
pub const CHORIA_UTIL: &str = "choria_util";
