//! What a panic or a careless log line can show of the types that carry secrets is their Debug form: it shows none of them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use quartermaster::config::{Config, load};
use quartermaster::emulate::{Network, PrepareSettings, prepare};
use quartermaster_actors::helper::RunHelper;
use quartermaster_actors::host::{Effect, Features, HostCall, Input, PlanSettings, SealedForHost, Step};
use quartermaster_actors::link::{Answer, Call, ConflictFlag, Login};
use quartermaster_actors::vault::VaultSettings;
use quartermaster_proto::choria::agents::{ConfigureInput, Gen25519Input, JwtInput, JwtReply};
use quartermaster_proto::choria::rpc;
use quartermaster_proto::choria::sign::SigningKey;
use quartermaster_proto::helper;
use secrecy::SecretString;
use serde_json::json;
use zeroize::Zeroizing;

use super::canary_forms::Canaries;

const SECRET: &str = "canary-of-every-kind-6b1f";

/// The Debug form, also of the bytes as a list of numbers.
fn unseen(what: &str, value: &impl Debug) {
    let numbers = format!("{:?}", SECRET.as_bytes());
    let numbers = numbers.trim_matches(['[', ']']).to_owned();
    for shown in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(!shown.is_empty() && !shown.contains(&numbers), "{what} shows its bytes: {shown}");
        let mut canaries = Canaries::default();
        canaries.text("the secret", SECRET);
        canaries.assert_unseen(&BTreeMap::from([(what.to_owned(), shown.into_bytes())]));
    }
}

fn secret() -> SecretString {
    SecretString::from(SECRET.to_owned())
}

#[test]
fn a_configuration_shows_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let settings = PrepareSettings { token: SECRET.to_owned(), ..PrepareSettings::default() };
    let files = prepare(dir.path(), &settings).unwrap().issuer;
    let yaml = std::fs::read_to_string(&files.config).unwrap().replace("provSecret", SECRET);
    std::fs::write(&files.config, yaml).unwrap();
    let loaded = load(&files.config, Some(&files.choria_config), &quartermaster::machine::surroundings());
    let config: &Config = loaded.config.as_ref().unwrap();
    unseen("Config", config);
    unseen("Faults", &loaded.faults);
    let network = Network::load(&files.dir).unwrap();
    assert_eq!(network.claims.cht, SECRET);
    unseen("ProvisioningClaims", &network.claims);
    unseen("Network", &network);
    let mut vault = VaultSettings::new("provisioner.mcollective".to_owned());
    vault.broker_password = Some(secret());
    vault.provisioning_token = secret();
    unseen("VaultSettings", &vault);
    let login =
        Login { password: Some(secret()), token: Some(secret()), jwt: Some(secret()), ..Login::default() };
    unseen("Login", &login);
}

#[test]
fn a_call_and_its_answer_show_no_secret() {
    let identity = quartermaster_proto::choria::Identity::parse("web1.example.net").unwrap();
    let (agent, action) = ("choria_provision", "configure");
    let data = || Zeroizing::new(json!({"token": SECRET}).to_string());
    let conflict = ConflictFlag::default();
    unseen(
        "HostCall",
        &HostCall { identity: identity.clone(), agent, action, data: data(), conflict: conflict.clone() },
    );
    unseen("Call", &Call { identity: identity.clone(), agent, action, data: data(), conflict });
    unseen("Effect::Call", &Effect::Call { step: Step::Configure, agent, action, data: data() });
    unseen("Effect::VerifyToken", &Effect::VerifyToken { jwt: SECRET.to_owned() });
    unseen("Effect::RunHelper", &Effect::RunHelper { input: SECRET.as_bytes().to_vec() });
    unseen("Effect::SealKey", &Effect::SealKey { pem: secret(), host_public: String::new() });
    unseen("Input::Replied", &Input::Replied(Ok(SECRET.as_bytes().to_vec())));
    unseen("Input::Issued", &Input::Issued(Ok(secret())));
    let sealed = SealedForHost { pem: SECRET.to_owned(), ecdh_public: String::new() };
    unseen("Input::Sealed", &Input::Sealed(Ok(sealed)));
    unseen("Answer", &Answer { payload: SECRET.as_bytes().to_vec(), took: Duration::ZERO });
    unseen("RunHelper", &RunHelper { identity, input: SECRET.as_bytes().to_vec() });
    unseen("JwtInput", &JwtInput { token: SECRET.into() });
    unseen("Gen25519Input", &Gen25519Input { token: SECRET.into(), nonce: "n".into() });
    unseen("JwtReply", &JwtReply { jwt: SECRET.to_owned(), ecdh_public: String::new() });
    let configure = ConfigureInput {
        config: SECRET.into(),
        key: SECRET.into(),
        server_jwt: SECRET.into(),
        token: SECRET.into(),
        ..ConfigureInput::default()
    };
    unseen("ConfigureInput", &configure);
    let payload = rpc::encode_request(agent, action, &configure.to_json()).unwrap();
    unseen("RpcRequest", &rpc::decode_request(&payload).unwrap());
    let plan = PlanSettings {
        steps: quartermaster_actors::host::SiteSteps::default(),
        features: Features::default(),
        token: secret(),
        deny: Vec::new(),
        upgrades_repository: None,
        upgrades_optional: false,
    };
    unseen("PlanSettings", &plan);
}

#[test]
fn a_decision_shows_no_secret_whether_it_can_be_read_or_not() {
    let good = json!({
        "key": SECRET, "configuration": {"password": SECRET}, "action_policies": {"a.policy": SECRET},
        "opa_policies": {"a.rego": SECRET},
    });
    let reply = helper::decode_reply(good.to_string().as_bytes()).unwrap();
    unseen("HelperReply", &reply);
    unseen("Input::Decided", &Input::Decided(Ok(Box::new(reply))));
    for bad in [
        json!({"configuration": {"password": [SECRET]}}),
        json!({"configuration": SECRET}),
        json!({"key": {"pem": SECRET}}),
        json!({"defer": SECRET}),
        json!({"action_policies": [SECRET]}),
        json!({"server_claims": SECRET}),
        json!({"server_claims": {"exp": SECRET}}),
        json!([SECRET]),
    ] {
        let error = helper::decode_reply(bad.to_string().as_bytes()).unwrap_err();
        unseen(&bad.to_string().replace(SECRET, ".."), &error);
        unseen(&bad.to_string().replace(SECRET, ".."), &format_args!("{error}"));
    }
}

#[test]
fn a_key_shows_no_seed() {
    let seed = hex::encode([0xa5_u8; 32]);
    let shown = format!("{:?}", SigningKey::from_text(&seed).unwrap());
    assert!(!shown.contains("a5a5") && !shown.contains("165, 165"), "{shown}");
}
