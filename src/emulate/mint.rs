//! Mints the tokens of an emulated network: provisioning tokens (choria.md 6.2), the provisioner's client token with its
//! chain data (6.4, 6.5), and the bad tokens that a hostile server presents.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use quartermaster_proto::choria::ksuid::Ksuid;
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};

use super::malformation::Malformation;

const DAY: i64 = 86_400;

/// What a provisioning token shall say.
#[derive(Debug, Clone)]
pub struct ProvisioningOrder {
    /// Claim `cht`: the shared token.
    pub token: String,
    /// Claim `chu`: the brokers, comma separated.
    pub urls: String,
    /// Claim `extensions`.
    pub extensions: Option<Value>,
    /// Claim `v2`: protocol 2.
    pub v2: bool,
    /// Claim `update`.
    pub upgradable: bool,
    /// Claims `nbf` and `iat`.
    pub from: WallClock,
    /// Claim `exp`, in seconds after `from`.
    pub valid_seconds: i64,
    /// The random part of `jti`.
    pub id: [u8; 16],
}

/// The claims in the order in which Choria's own tools write them.
fn provisioning_claims(order: &ProvisioningOrder, purpose: &str) -> String {
    let mut claims = vec![
        ("cht", json!(order.token)),
        ("chs", json!(false)),
        ("chu", json!(order.urls)),
        ("chpd", json!(true)),
        ("extensions", order.extensions.clone().unwrap_or(Value::Null)),
        ("ou", json!("choria")),
    ];
    if order.v2 {
        claims.push(("v2", json!(true)));
    }
    if order.upgradable {
        claims.push(("update", json!(true)));
    }
    claims.push(("purpose", json!(purpose)));
    claims.push(("iss", json!("quartermaster emulate")));
    claims.push(("sub", json!(purpose)));
    claims.extend(times(order.from, order.valid_seconds, order.id));
    object(&claims)
}

fn times(from: WallClock, valid_seconds: i64, id: [u8; 16]) -> Vec<(&'static str, Value)> {
    let issued = from.seconds();
    vec![
        ("exp", json!(issued.saturating_add(valid_seconds))),
        ("nbf", json!(issued)),
        ("iat", json!(issued)),
        ("jti", json!(Ksuid::new(issued, id).to_string())),
    ]
}

/// A provisioning token signed with EdDSA.
pub fn provisioning_token(order: &ProvisioningOrder, key: &SigningKey) -> String {
    sign(&provisioning_claims(order, "choria_provisioning"), key)
}

/// The token that a server with `kind` presents, when `kind` is about tokens.
///
/// `verify_key` is the text of the file the provisioner verifies with: an HS256 token keyed with it is what an attacker
/// can make who knows the public key alone.
pub fn hostile_token(
    kind: Malformation,
    order: &ProvisioningOrder,
    key: &SigningKey,
    verify_key: &str,
) -> Option<String> {
    let good = || provisioning_claims(order, "choria_provisioning");
    let token = match kind {
        Malformation::JwtAlgNone => {
            format!("{}.{}.", encode(br#"{"alg":"none","typ":"JWT"}"#), encode(good().as_bytes()))
        }
        Malformation::JwtHs256 => {
            let text = format!("{}.{}", encode(br#"{"alg":"HS256","typ":"JWT"}"#), encode(good().as_bytes()));
            let mac = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, verify_key.as_bytes());
            format!("{text}.{}", encode(aws_lc_rs::hmac::sign(&mac, text.as_bytes()).as_ref()))
        }
        Malformation::JwtRs256 => {
            let text = format!("{}.{}", encode(br#"{"alg":"RS256","typ":"JWT"}"#), encode(good().as_bytes()));
            format!("{text}.{}", encode(&[0x5a; 256]))
        }
        Malformation::JwtExpired => {
            let expired = ProvisioningOrder {
                from: order.from.plus_seconds(-DAY),
                valid_seconds: DAY - 3600,
                ..order.clone()
            };
            provisioning_token(&expired, key)
        }
        Malformation::JwtNotYetValid => provisioning_token(
            &ProvisioningOrder { from: order.from.plus_seconds(DAY), ..order.clone() },
            key,
        ),
        Malformation::JwtWrongPurpose => sign(&provisioning_claims(order, "choria_server"), key),
        Malformation::JwtOtherKey => {
            let mut stranger = key.to_bytes();
            for byte in &mut stranger {
                *byte ^= 0x5a;
            }
            provisioning_token(order, &SigningKey::from_bytes(&stranger))
        }
        Malformation::JwtGarbage => "this is no token".to_owned(),
        Malformation::JwtEmpty => String::new(),
        _ => return None,
    };
    Some(token)
}

/// What the provisioner's client token shall say.
#[derive(Debug, Clone)]
pub struct ClientOrder {
    /// Claim `callerid`.
    pub caller: String,
    /// The caller's public key.
    pub public_key: [u8; 32],
    /// Claims `nbf` and `iat`.
    pub from: WallClock,
    /// Claim `exp`, in seconds after `from`.
    pub valid_seconds: i64,
    /// The random part of `jti`.
    pub id: [u8; 16],
}

/// The provisioner's client token with the chain data that lets it sign server tokens, signed by the issuer.
pub fn client_token(order: &ClientOrder, issuer: &SigningKey) -> String {
    let public = hex::encode(order.public_key);
    let id = Ksuid::new(order.from.seconds(), order.id).to_string();
    let chain = issuer.sign(format!("{id}.{public}").as_bytes());
    let mut claims = vec![
        ("callerid", json!(order.caller)),
        ("ou", json!("choria")),
        ("permissions", json!({"election_user": true, "provisioner": true, "streams_user": true})),
        ("purpose", json!("choria_client_id")),
        ("tcs", json!(hex::encode(chain.to_bytes()))),
        ("public_key", json!(public)),
        ("iss", json!(format!("I-{}", hex::encode(issuer.verifying_key().to_bytes())))),
    ];
    claims.extend(times(order.from, order.valid_seconds, order.id));
    sign(&object(&claims), issuer)
}

/// A broker's own token: that of a server of this identity, signed by the issuer.
pub fn broker_token(order: &ClientOrder, issuer: &SigningKey) -> String {
    let mut claims = vec![
        ("identity", json!(order.caller)),
        ("collectives", json!(["choria"])),
        ("ou", json!("choria")),
        ("purpose", json!("choria_server")),
        ("public_key", json!(hex::encode(order.public_key))),
        ("iss", json!("quartermaster emulate")),
    ];
    claims.extend(times(order.from, order.valid_seconds, order.id));
    sign(&object(&claims), issuer)
}

fn object(claims: &[(&str, Value)]) -> String {
    let members: Vec<String> =
        claims.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn sign(claims: &str, key: &SigningKey) -> String {
    let text = format!("{}.{}", encode(br#"{"alg":"EdDSA","typ":"JWT"}"#), encode(claims.as_bytes()));
    let signature = key.sign(text.as_bytes());
    format!("{text}.{}", encode(&signature.to_bytes()))
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
