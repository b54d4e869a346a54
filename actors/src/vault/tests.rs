//! The canary: no secret shows in any `Debug` or error of the vault.

use std::error::Error;
use std::path::Path;

use quartermaster_proto::choria::chain::TokenIssuer;
use quartermaster_proto::choria::sign::SigningKey;
use secrecy::SecretString;
use tempfile::TempDir;

use super::messages::{Login, SealedKey};
use super::store::{Store, parse_key, parse_token};
use super::{ClientTls, Outside, Security, TlsMode, VaultSettings, files, tls};

/// 64 hexadecimal digits, so that it is a seed as well as a word to look for.
const CANARY: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

fn no_canary(shown: &str) {
    assert!(!shown.to_lowercase().contains("c0ffee"), "{shown}");
    let seed = hex::decode(CANARY).unwrap();
    let as_list = format!("{seed:?}");
    assert!(!shown.contains(as_list.trim_matches(['[', ']'])), "{shown}");
}

fn no_canary_in_error(error: &dyn Error) {
    no_canary(&format!("{error} {error:?} {error:#?}"));
    if let Some(source) = error.source() {
        no_canary_in_error(source);
    }
}

fn secret() -> SecretString {
    SecretString::from(CANARY)
}

#[test]
fn debug_of_settings_logins_and_keys_shows_no_secret() {
    let settings = VaultSettings {
        broker_password: Some(secret()),
        provisioning_token: secret(),
        ..VaultSettings::new("provisioner.mcollective")
    };
    let shown = format!("{settings:?} {settings:#?}");
    assert!(shown.contains("provisioner.mcollective") && shown.contains("[redacted]"), "{shown}");
    no_canary(&shown);
    let login = Login {
        user: Some("provisioner".into()),
        password: Some(secret()),
        token: Some(secret()),
        jwt: Some(secret()),
        signature: Some(hex::decode(CANARY).unwrap()),
    };
    no_canary(&format!("{login:?} {login:#?}"));
    no_canary(&format!("{:?}", SealedKey { pem: CANARY.into(), ecdh_public: "00".into() }));
    let key = SigningKey::from_text(CANARY).unwrap();
    no_canary(&format!(
        "{key:?} {:?}",
        TokenIssuer::new(SigningKey::from_text(CANARY).unwrap(), None).unwrap()
    ));
    no_canary(&format!("{:?}", Outside::real()));
}

#[test]
fn errors_of_every_file_and_request_show_no_secret() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    let almost = format!("{CANARY}{CANARY}");
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n");
    let token = format!("{CANARY}.{CANARY}.{CANARY}");
    let claims = hex::decode(CANARY).unwrap();
    for text in [almost.as_str(), &pem, &token, &String::from_utf8_lossy(&claims), ""] {
        std::fs::write(&path, text).unwrap();
        no_canary_in_error(&parse_key("seed")(text, &path).unwrap_err());
        no_canary_in_error(&parse_token("token")(text, &path).err().unwrap());
        no_canary_in_error(&tls::chain("CA", &path).unwrap_err());
        if !text.contains("PRIVATE") {
            no_canary_in_error(&tls::private_key(&path).unwrap_err());
        }
        let mut settings = VaultSettings::new("x");
        settings.security =
            Security::Choria { token_file: path.clone(), seed_file: path.clone(), tls: ClientTls::default() };
        settings.tls = TlsMode::Insecure;
        settings.broker_password = Some(secret());
        settings.jwt_verify_cert = Some(almost.clone());
        settings.jwt_signing_key = Some(path.clone());
        settings.jwt_signing_token = Some(path.clone());
        let store = Store::new(settings, Outside::real());
        no_canary_in_error(&store.sign_request(CANARY.as_bytes()).unwrap_err());
        no_canary_in_error(&store.login(Some(CANARY.as_bytes())).unwrap_err());
        no_canary_in_error(&store.caller().unwrap_err());
        no_canary_in_error(&store.verify_provisioning(&token).unwrap_err());
        no_canary_in_error(
            &store
                .seal_private_key(&SecretString::from(pem.as_str()), CANARY)
                .err()
                .unwrap_or(super::VaultError::Panicked),
        );
        no_canary_in_error(&store.seal_private_key(&secret(), &"1".repeat(64)).unwrap_err());
    }
    std::fs::write(&path, [0xff, 0xc0]).unwrap();
    no_canary_in_error(&files::read("seed", &path).err().unwrap());
    no_canary_in_error(&files::read("seed", Path::new("/")).err().unwrap());
}
