//! A realistic server to try a helper on: what a real one would have told us, with keys made on the spot.

use ed25519_dalek::{Signer as _, SigningKey};
use quartermaster_proto::choria::agents::{CsrReply, Gen25519Reply};
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::helper::HelperInput;
use quartermaster_proto::json;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_RSA_SHA256, PublicKeyData as _, RsaKeySize,
};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::Features;

/// Where the sample server keeps its TLS files.
const SSLDIR: &str = "/etc/choria/ssl";
/// Where it keeps its Ed25519 seed.
const DIRECTORY: &str = "/etc/choria";
const DAY: i64 = 24 * 60 * 60;

/// Why no sample could be made.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// No key or request could be made.
    #[error("failed to make a certificate request for the sample server")]
    Request(#[from] rcgen::Error),
    /// The JSON could not be written.
    #[error("failed to write the sample server's input")]
    Json(#[from] serde_json::Error),
    /// The inventory could not be sorted.
    #[error("failed to sort the sample server's inventory")]
    Inventory(#[from] json::JsonError),
    /// No randomness for the Ed25519 key.
    #[error("the system gave no randomness for the sample server's key")]
    Randomness,
}

/// The helper's input for a server of this name: with exactly the parts that these features would bring. `now` in Unix seconds.
pub fn input(
    identity: &Identity,
    features: Features,
    token: &str,
    now: i64,
) -> Result<HelperInput, SampleError> {
    Ok(HelperInput {
        identity: identity.clone(),
        csr: features.pki.then(|| request(identity)).transpose()?,
        ed25519_pubkey: features.ed25519.then(public_key).transpose()?,
        inventory: inventory(features)?,
        jwt: features.jwt.then(|| claims(features, token, now)).transpose()?,
    })
}

/// RSA with 2048 bits, as a real server makes it; the public key is PKCS#1 under the label of another format, also as there.
fn request(identity: &Identity) -> Result<CsrReply, SampleError> {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, identity.as_str());
    let public = pem::Pem::new("PUBLIC KEY", key.der_bytes().to_vec());
    Ok(CsrReply {
        csr: params.serialize_request(&key)?.pem()?,
        public_key: pem::encode_config(
            &public,
            pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
        ),
        ssldir: SSLDIR.to_owned(),
    })
}

fn public_key() -> Result<Gen25519Reply, SampleError> {
    let mut seed = zeroize::Zeroizing::new([0; 32]);
    let mut nonce = [0; 16];
    aws_lc_rs::rand::fill(seed.as_mut()).map_err(|_| SampleError::Randomness)?;
    aws_lc_rs::rand::fill(&mut nonce).map_err(|_| SampleError::Randomness)?;
    let key = SigningKey::from_bytes(&seed);
    Ok(Gen25519Reply {
        public_key: hex::encode(key.verifying_key().as_bytes()),
        directory: DIRECTORY.to_owned(),
        signature: hex::encode(key.sign(hex::encode(nonce).as_bytes()).to_bytes()),
    })
}

fn inventory(features: Features) -> Result<String, SampleError> {
    let inventory = json!({
        "agents": ["choria_provision", "choria_util", "discovery", "rpcutil"],
        "classes": [],
        "collectives": ["provisioning"],
        "data_plugins": [],
        "facts": {
            "architecture": "x86_64",
            "cores": 4,
            // Beyond what a floating-point number holds exactly.
            "disk_bytes": 9_223_372_036_854_775_807_i64,
            "memory_bytes": 16_777_216_000_i64,
            "os": {"family": "debian", "release": "13"},
            "role": "web",
            "virtual": true,
        },
        "machines": [],
        "main_collective": "provisioning",
        "upgradable": features.upgrades,
        "version": "0.29.4",
    });
    Ok(json::sorted(&inventory.to_string())?)
}

/// In the order of the peer.
fn claims(features: Features, token: &str, now: i64) -> Result<Box<RawValue>, SampleError> {
    #[derive(serde::Serialize)]
    struct Claims<'a> {
        cht: &'a str,
        chs: bool,
        chu: &'a str,
        chpd: bool,
        extensions: serde_json::Value,
        ou: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        v2: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        update: bool,
        purpose: &'a str,
        iss: &'a str,
        sub: &'a str,
        exp: i64,
        nbf: i64,
        iat: i64,
        jti: &'a str,
    }
    Ok(to_raw_value(&Claims {
        cht: token,
        chs: false,
        chu: "nats://broker.example.net:4222",
        chpd: true,
        extensions: json!({"rack": "r1"}),
        ou: "choria",
        v2: features.ed25519,
        update: features.upgrades,
        purpose: "choria_provisioning",
        iss: "sample",
        sub: "choria_provisioning",
        exp: now + 365 * DAY,
        nbf: now - DAY,
        iat: now - DAY,
        jti: "3MnBtJVbpinuJLLeB771eE2ldHc",
    })?)
}
