//! What all servers of one fleet share: tokens, texts, delays.

use std::collections::HashMap;
use std::time::Duration;

use quartermaster_proto::choria::Generation;
use quartermaster_proto::choria::token::VerifyKey;

use super::csr::KeyPool;
use super::malformation::Malformation;

/// The common properties of a fleet. Servers hold it behind an `Arc`, so fifty thousand of them stay cheap.
#[derive(Debug)]
pub struct Profile {
    /// The protocol generation all servers speak.
    pub generation: Generation,
    /// The shared provisioning token (claim `cht`); empty means that any value passes.
    pub token: String,
    /// provisioning.jwt, as `jwt` answers it.
    pub jwt: String,
    /// The tokens of servers that present bad ones.
    pub hostile_jwts: HashMap<Malformation, String>,
    /// Claim `update`: `release_update` works.
    pub upgradable: bool,
    /// The version servers start with.
    pub version: String,
    /// The facts as the text of a JSON object.
    pub facts: String,
    /// The directory of the emulated config file, such as `/etc/choria`.
    pub config_dir: String,
    /// The broker's address as it appears in the hop record of a reply.
    pub hop: String,
    /// Added to every reply.
    pub reply_delay: Duration,
    /// Replaces the real delays of restart and shutdown; none keeps the real ones.
    pub restart_delay: Option<Duration>,
    /// How long the provisioning lock is held for its owner; 2 minutes in reality.
    pub lock_time: Duration,
    /// Server tokens are verified against this key: the organisation's issuer in an issuer network, otherwise the key that
    /// signs them. None leaves them unverified.
    pub server_key: Option<VerifyKey>,
    /// RSA keys for certificate requests.
    pub keys: KeyPool,
    /// The fleet's seed.
    pub seed: u64,
}

impl Profile {
    /// The emulated config file.
    pub fn config_file(&self) -> String {
        format!("{}/server.cfg", self.config_dir)
    }

    /// The emulated directory of TLS files.
    pub fn ssl_dir(&self) -> String {
        format!("{}/ssl", self.config_dir)
    }
}
