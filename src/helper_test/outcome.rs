//! What the daemon would make of a reply. Pure.

use std::borrow::Cow;
use std::cmp::Ordering;

use quartermaster_proto::choria::agents::{ConfigureInput, RestartInput, ShutdownInput, UpdateInput};
use quartermaster_proto::choria::chain::{MIN_VALIDITY, ServerTokenOrder};
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::pem::encrypt_private_key;
use quartermaster_proto::choria::version;
use quartermaster_proto::helper::HelperReply;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::certificate;
use crate::config::{Features, UpgradesConfig};

/// The keys of a reply.
const KEYS: [&str; 12] = [
    "defer",
    "shutdown",
    "msg",
    "key",
    "certificate",
    "ca",
    "ssldir",
    "server_claims",
    "configuration",
    "action_policies",
    "opa_policies",
    "upgrade",
];
/// How alike two keys must be for one to be taken for a slip of the other.
const ALIKE: f64 = 0.8;
/// The configuration key that ends provisioning.
const PROVISION: &str = "plugin.choria.server.provision";

/// What would become of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It gets its configuration.
    Configure,
    /// It is asked again later.
    Defer,
    /// It is stopped.
    Shutdown,
    /// It is brought to another version first.
    Upgrade,
    /// The reply cannot be used.
    Fail,
}

/// One request to the server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Agent and action, as `choria_provision#configure`.
    pub to: String,
    /// Its arguments.
    pub arguments: Value,
}

/// What would happen, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// What would become of the server.
    pub decision: Decision,
    /// The requests to it, in order.
    pub requests: Vec<Request>,
    /// What the server's token would say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_token: Option<Value>,
    /// Why it would not work.
    pub errors: Vec<String>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
}

/// The part of the helper's input that decides with the reply.
#[derive(Debug, Clone, Deserialize)]
pub struct Server {
    /// Its name.
    pub identity: Identity,
    /// Its certificate request.
    #[serde(default)]
    csr: Option<Csr>,
    #[serde(default)]
    ed25519_pubkey: Option<PublicKey>,
    #[serde(default)]
    inventory: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Csr {
    csr: String,
    #[serde(default)]
    ssldir: String,
}

#[derive(Debug, Clone, Deserialize)]
struct PublicKey {
    public_key: String,
}

#[derive(Debug, Default, Deserialize)]
struct Inventory {
    #[serde(default)]
    version: String,
    #[serde(default)]
    upgradable: bool,
}

/// The circumstances.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    /// Which steps run.
    pub features: Features,
    /// Where upgrades come from.
    pub upgrades: &'a UpgradesConfig,
    /// The provisioning token.
    pub token: &'a str,
    /// Unix seconds.
    pub now: i64,
}

/// What would be done with `reply`.
pub fn outcome(reply: &HelperReply, server: &Server, site: &Site<'_>) -> Outcome {
    let mut outcome = Outcome {
        decision: Decision::Configure,
        requests: Vec::new(),
        server_token: None,
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    if reply.defer {
        outcome.decision = Decision::Defer;
        if reply.shutdown {
            outcome.warnings.push("`defer` and `shutdown` are both true: `defer` counts".to_owned());
        }
        if reply.msg.is_empty() {
            outcome.warnings.push("`defer` without `msg`: the log will not say why".to_owned());
        }
        return outcome;
    }
    if reply.shutdown {
        outcome.decision = Decision::Shutdown;
        let arguments = value(&ShutdownInput { token: site.token.into() });
        outcome.requests.push(Request { to: "choria_provision#shutdown".to_owned(), arguments });
        return outcome;
    }
    check_configuration(reply, server, site, &mut outcome);
    check_certificate(reply, server, site, &mut outcome);
    check_token(reply, server, site, &mut outcome);
    if upgrade(reply, server, site, &mut outcome) {
        outcome.decision = Decision::Upgrade;
    } else {
        configure(reply, server, site, &mut outcome);
    }
    if !outcome.errors.is_empty() {
        outcome.decision = Decision::Fail;
    }
    outcome
}

/// Keys the reply has and a reply has not: harmless, and often a slip.
pub fn unknown_keys(stdout: &[u8]) -> Vec<String> {
    let Ok(Value::Object(members)) = serde_json::from_slice(stdout) else { return Vec::new() };
    let unknown = members.keys().filter(|key| !KEYS.contains(&key.as_str()));
    unknown
        .map(|key| {
            let nearest = KEYS
                .into_iter()
                .map(|known| (strsim::jaro_winkler(known, key), known))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .filter(|(alike, _)| *alike >= ALIKE);
            let key = key.escape_debug();
            match nearest {
                Some((_, known)) => format!("unknown key `{key}` is ignored; was `{known}` meant?"),
                None => format!("unknown key `{key}` is ignored"),
            }
        })
        .collect()
}

fn check_configuration(reply: &HelperReply, server: &Server, site: &Site<'_>, outcome: &mut Outcome) {
    let configuration = &reply.configuration;
    if configuration.is_empty() {
        outcome.errors.push("`configuration` is empty: the server would not be configured".to_owned());
        return;
    }
    let off =
        |text: &str| matches!(text.to_ascii_lowercase().as_str(), "0" | "false" | "f" | "no" | "n" | "off");
    match configuration.get(PROVISION) {
        Some(text) if off(text) => {}
        Some(_) => outcome.warnings.push(format!(
            "`configuration[\"{PROVISION}\"]` is not false: the server comes back to be provisioned again, for ever"
        )),
        None => outcome.warnings.push(format!(
            "`configuration` lacks `{PROVISION}`: unless it is \"false\" the server may come back to be provisioned again, for ever"
        )),
    }
    if let Some(identity) = configuration.get("identity").filter(|name| *name != server.identity.as_str()) {
        let text = format!(
            "`configuration[\"identity\"]` is {identity:?}, but the server was found as {:?}",
            server.identity.as_str()
        );
        if site.features.ed25519 {
            outcome.errors.push(format!("{text}: its token would not match and the broker would refuse it"));
        } else {
            outcome.warnings.push(text);
        }
    }
}

fn check_certificate(reply: &HelperReply, server: &Server, site: &Site<'_>, outcome: &mut Outcome) {
    if let Some(key) = &reply.key {
        check_key(key, site, outcome);
    }
    if reply.certificate.is_empty() {
        if site.features.pki {
            outcome.warnings.push("features.pki is on, but there is no `certificate`".to_owned());
        }
        return;
    }
    // With a key from the helper the server's own request plays no part.
    let csr = server.csr.as_ref().filter(|_| reply.key.is_none()).map(|csr| csr.csr.as_str());
    let misfits =
        certificate::examine(&reply.certificate, &reply.ca, csr, server.identity.as_str(), site.now);
    outcome.errors.extend(misfits.errors);
    outcome.warnings.extend(misfits.warnings);
}

fn check_key(key: &SecretString, site: &Site<'_>, outcome: &mut Outcome) {
    if !site.features.jwt {
        outcome.errors.push(
            "`key` cannot be encrypted for the server: its key for that comes with its token, and features.jwt is off"
                .to_owned(),
        );
    }
    // Tried with a throw-away secret: what matters is whether it can be encrypted at all.
    if let Err(error) = encrypt_private_key(key.expose_secret(), &[0; 32], [0; 16]) {
        outcome.errors.push(format!("`key` cannot be encrypted for the server: {error}"));
    }
}

fn check_token(reply: &HelperReply, server: &Server, site: &Site<'_>, outcome: &mut Outcome) {
    if !site.features.ed25519 {
        if reply.server_claims.is_some() {
            outcome.warnings.push("`server_claims` is ignored: features.ed25519 is off".to_owned());
        }
        return;
    }
    let Some(key) = server.ed25519_pubkey.as_ref() else {
        outcome.errors.push("features.ed25519 is on, but the input holds no `ed25519_pubkey`".to_owned());
        return;
    };
    let mut public = [0; 32];
    if hex::decode_to_slice(&key.public_key, &mut public).is_err() {
        outcome
            .errors
            .push("`ed25519_pubkey.public_key` of the input is not 64 hexadecimal digits".to_owned());
        return;
    }
    let order =
        ServerTokenOrder::new(&server.identity, public, reply.server_claims.as_ref(), &reply.configuration);
    if let Some(exp) = order.exp.filter(|exp| exp - site.now <= MIN_VALIDITY) {
        outcome.warnings.push(format!(
            "`server_claims.exp` is {exp}, a date in the past or less than an hour away: the configured validity is used instead"
        ));
    }
    let permissions = order.permissions.map(|permissions| json!(permissions));
    outcome.server_token = Some(json!({
        "identity": order.identity,
        "public_key": order.public_key,
        "ou": order.ou,
        "collectives": order.collectives,
        "permissions": permissions,
        "pub_subjects": order.pub_subjects,
        "exp": order.exp.filter(|exp| exp - site.now > MIN_VALIDITY),
    }));
}

/// True when the server would be upgraded now; then nothing else happens in this cycle.
fn upgrade(reply: &HelperReply, server: &Server, site: &Site<'_>, outcome: &mut Outcome) -> bool {
    if reply.upgrade.is_empty() {
        return false;
    }
    if !site.features.upgrades {
        outcome.warnings.push("`upgrade` is ignored: features.upgrades is off".to_owned());
        return false;
    }
    let inventory: Inventory = serde_json::from_str(&server.inventory).unwrap_or_default();
    let problem = if site.upgrades.repository.is_empty() {
        "upgrades_repository is not configured"
    } else if inventory.version.is_empty() {
        "the server's inventory names no version"
    } else if version::compare(&reply.upgrade, &inventory.version) == Ordering::Equal {
        return false;
    } else if !inventory.upgradable {
        "the server does not support upgrades"
    } else {
        let arguments = value(&UpdateInput {
            repository: site.upgrades.repository.as_str().into(),
            token: site.token.into(),
            version: reply.upgrade.as_str().into(),
        });
        outcome.requests.push(Request { to: "choria_provision#release_update".to_owned(), arguments });
        return true;
    };
    let text = format!("upgrade to {}: {problem}", reply.upgrade);
    if site.upgrades.optional {
        outcome.warnings.push(format!("{text}; upgrades are optional, so it is configured as it is"));
    } else {
        outcome.errors.push(text);
    }
    false
}

fn configure(reply: &HelperReply, server: &Server, site: &Site<'_>, outcome: &mut Outcome) {
    let config = ConfigureInput::config_text(&reply.configuration);
    let ssldir = server.csr.as_ref().map_or(reply.ssldir.as_str(), |csr| csr.ssldir.as_str());
    let made = |there: bool, text: &'static str| if there { text } else { "" };
    let arguments = value(&ConfigureInput {
        action_policies: Cow::Borrowed(&reply.action_policies),
        ca: reply.ca.as_str().into(),
        certificate: reply.certificate.as_str().into(),
        config: config.as_str().into(),
        ecdh_public: made(reply.key.is_some(), "(our public key for this server)").into(),
        key: made(reply.key.is_some(), "(the private key, encrypted for this server)").into(),
        opa_policies: Cow::Borrowed(&reply.opa_policies),
        server_jwt: made(outcome.server_token.is_some(), "(the server's token, signed)").into(),
        ssldir: ssldir.into(),
        token: site.token.into(),
    });
    outcome.requests.push(Request { to: "choria_provision#configure".to_owned(), arguments });
    let arguments = value(&RestartInput { splay: 1, token: site.token.into() });
    outcome.requests.push(Request { to: "choria_provision#restart".to_owned(), arguments });
}

fn value(input: &impl Serialize) -> Value {
    serde_json::to_value(input).unwrap_or_default()
}
