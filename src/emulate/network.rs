//! The network a fleet lives in: its provisioning token, and the keys that go with it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use quartermaster_proto::choria::Generation;
use quartermaster_proto::choria::token::{ProvisioningClaims, TokenError, VerifyKey, parse_provisioning};
use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::dice::Dice;
use super::malformation::{Malformation, TABLE};
use super::mint::{self, ProvisioningOrder};
use crate::clock;

/// What servers know of their network: the token they carry, and for tests the keys behind it.
#[derive(Clone)]
pub struct Network {
    /// provisioning.jwt.
    pub jwt: String,
    /// Its claims.
    pub claims: ProvisioningClaims,
    /// The key that signed it; none when only the token is known.
    signer: Option<SigningKey>,
    /// The key that server tokens are verified against.
    pub server_key: Option<VerifyKey>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("claims", &self.claims).finish_non_exhaustive()
    }
}

/// Why a network cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A file is missing or unreadable.
    #[error("could not read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold 64 hexadecimal digits.
    #[error("{} does not hold a key of 64 hexadecimal digits", path.display())]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// The token is no provisioning token.
    #[error("could not read the provisioning token")]
    Token(#[source] TokenError),
}

impl Network {
    /// A network of which only the provisioning token is known.
    pub fn from_jwt(jwt: &str) -> Result<Self, NetworkError> {
        let jwt = jwt.trim().to_owned();
        let claims = parse_provisioning(&jwt).map_err(NetworkError::Token)?;
        Ok(Self { jwt, claims, signer: None, server_key: None })
    }

    /// A network made up on the spot, with keys drawn from `seed`: for tests that need no provisioner of another process.
    pub fn generate(
        seed: u64,
        token: &str,
        generation: Generation,
        upgradable: bool,
    ) -> Result<Self, NetworkError> {
        let mut dice = Dice::new(seed, "network");
        let key = SigningKey::from_bytes(&dice.bytes32());
        let order = ProvisioningOrder {
            token: token.to_owned(),
            urls: "nats://127.0.0.1:4222".to_owned(),
            extensions: Some(serde_json::json!({"rack": "r1"})),
            v2: generation == Generation::V2,
            upgradable,
            from: clock::now(),
            valid_seconds: 30 * 86_400,
            id: dice.bytes16(),
        };
        let mut network = Self::from_jwt(&mint::provisioning_token(&order, &key))?;
        network.server_key = Some(VerifyKey::Ed25519(key.verifying_key().to_bytes()));
        network.signer = Some(key);
        Ok(network)
    }

    /// The public key that provisioning tokens are verified with, 64 hexadecimal digits; none when it is not known.
    pub fn verify_key(&self) -> Option<String> {
        self.signer.as_ref().map(|key| hex::encode(key.verifying_key().to_bytes()))
    }

    /// The network in a directory that [`super::prepare()`] has written.
    pub fn load(dir: &Path) -> Result<Self, NetworkError> {
        let read = |name: &str| {
            let path = dir.join(name);
            std::fs::read_to_string(&path)
                .map(Zeroizing::new)
                .map_err(|source| NetworkError::Read { path, source })
        };
        let mut network = Self::from_jwt(&read("provisioning.jwt")?)?;
        // In an issuer network the issuer signs both the provisioning tokens and the provisioner's right to sign.
        let name = if dir.join("issuer.seed").exists() { "issuer.seed" } else { "signer.seed" };
        let mut seed = Zeroizing::new([0_u8; 32]);
        hex::decode_to_slice(read(name)?.trim(), seed.as_mut())
            .map_err(|_| NetworkError::Key { path: dir.join(name) })?;
        let key = SigningKey::from_bytes(&seed);
        network.server_key = Some(VerifyKey::Ed25519(key.verifying_key().to_bytes()));
        network.signer = Some(key);
        Ok(network)
    }

    /// The generation its servers speak.
    pub fn generation(&self) -> Generation {
        if self.claims.v2 { Generation::V2 } else { Generation::V1 }
    }

    /// The same network with a token that says otherwise; the network as it is when nobody can sign that.
    #[must_use]
    pub fn with(&self, generation: Option<Generation>, upgradable: bool, now: WallClock) -> Self {
        let Some(key) = &self.signer else { return self.clone() };
        let mut order = self.order(now);
        order.v2 = generation.map_or(order.v2, |wanted| wanted == Generation::V2);
        order.upgradable |= upgradable;
        let jwt = mint::provisioning_token(&order, key);
        match parse_provisioning(&jwt) {
            Ok(claims) => Self { jwt, claims, ..self.clone() },
            Err(_) => self.clone(),
        }
    }

    /// The tokens of servers that present bad ones; empty when no key is known to make them with.
    pub fn hostile_jwts(&self, now: WallClock) -> HashMap<Malformation, String> {
        let Some(key) = &self.signer else { return HashMap::new() };
        let order = self.order(now);
        let verify = hex::encode(key.verifying_key().to_bytes());
        TABLE
            .iter()
            .filter_map(|(_, kind)| Some((*kind, mint::hostile_token(*kind, &order, key, &verify)?)))
            .collect()
    }

    fn order(&self, now: WallClock) -> ProvisioningOrder {
        ProvisioningOrder {
            token: self.claims.cht.clone(),
            urls: self.claims.chu.clone(),
            extensions: self
                .claims
                .extensions
                .as_deref()
                .and_then(|raw| serde_json::from_str(raw.get()).ok()),
            v2: self.claims.v2,
            upgradable: self.claims.update,
            from: now,
            valid_seconds: 30 * 86_400,
            id: [3; 16],
        }
    }
}
