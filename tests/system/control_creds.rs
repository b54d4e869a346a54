//! Control on another broker than provisioning, which knows nobody but by NATS credentials files.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

use super::control_site::{Instance, verb};
use super::prove_site::Site;
use super::support::{BrokerOptions, eventually};

/// A token as NATS signs them.
fn token(claims: &Value, by: &KeyPair, about: &KeyPair) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let body = json!({
        "jti": "test", "iat": time::OffsetDateTime::now_utc().unix_timestamp(), "name": "test",
        "iss": by.public_key(), "sub": about.public_key(), "nats": claims,
    });
    let signed = format!("{}.{}", part(&json!({"typ": "JWT", "alg": "ed25519-nkey"})), part(&body));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(by.sign(signed.as_bytes()).unwrap());
    format!("{signed}.{signature}")
}

/// The lines for a broker with one account beside its own, which may use JetStream if the broker has it, and the credentials
/// file of a user in it.
pub fn operated() -> (String, String) {
    let (operator, account, user) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let system = KeyPair::new_account();
    let operator_token = token(&json!({"type": "operator", "version": 2}), &operator, &operator);
    let account_token = |account: &KeyPair, storage: i64| {
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
            "leaf": -1, "mem_storage": storage, "disk_storage": storage, "streams": storage, "consumer": storage,
        });
        token(&json!({"type": "account", "version": 2, "limits": limits}), &operator, account)
    };
    let (account_token, system_token) = (account_token(&account, -1), account_token(&system, 0));
    let user_token = token(
        &json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}),
        &account,
        &user,
    );
    let seed = user.seed().unwrap();
    let lines = format!(
        "operator: \"{operator_token}\"\nsystem_account: {system}\nresolver: MEMORY\n\
         resolver_preload: {{ {}: \"{account_token}\", {system}: \"{system_token}\" }}\n",
        account.public_key(),
        system = system.public_key()
    );
    let credentials = format!(
        "-----BEGIN NATS USER JWT-----\n{user_token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    (lines, credentials)
}

#[tokio::test]
async fn instance_and_operator_log_in_to_a_broker_for_control_with_credentials_files() {
    let (lines, credentials) = operated();
    let Some(site) = Site::new() else { return };
    let Some(broker) = BrokerOptions::new().extra(&lines).start() else { return };
    let file: PathBuf = site.path("control.creds");
    std::fs::write(&file, &credentials).unwrap();
    let (url, file) = (broker.url(), file.to_str().unwrap().to_owned());
    let yaml = format!("control:\n  server: {url}\n  credentials: {file}\n");
    let mut instance = Instance::start(&site, "prov1.example.net", &yaml);
    eventually("the instance has both connections", || {
        assert!(instance.exited().is_none(), "{}", instance.log());
        instance.log().contains("The control service listens") && instance.log().contains(" Connected: ")
    })
    .await;

    let ran = verb(&["status", "--json", "--server", &url, "--creds", &file]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = &ran.json()["answers"][0];
    assert_eq!(
        (&status["instance"], &status["link"]["connected"]),
        (&json!("prov1.example.net"), &json!(true))
    );
    assert_eq!(status["link"]["server"], site.broker.url(), "provisioning is elsewhere");
    let (config, choria) = (instance.config.to_str().unwrap(), instance.choria.to_str().unwrap());
    let ran = verb(&["pause", "--why", "x", "--config", config, "--choria-config", choria]).await;
    assert_eq!(ran.code, Some(0), "with the login of the instance: {ran:?}");
    let ran = verb(&["status", "--server", &url]).await;
    assert_eq!(ran.code, Some(5), "without a login: {ran:?}");
    let ran = verb(&["status", "--server", &site.broker.url()]).await;
    assert_eq!(ran.code, Some(7), "nobody listens on the broker of provisioning: {ran:?}");
    let seed = credentials.lines().find(|line| line.starts_with("SU")).unwrap();
    assert!(!instance.log().contains(seed));
}
