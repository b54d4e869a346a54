//! What the vault does for the rest of the process.

use std::collections::BTreeMap;

use quartermaster_actors::vault::{VaultError, VaultSettings};
use quartermaster_proto::choria::Identity;
use quartermaster_proto::choria::chain::{ISSUER_TEXT, ServerTokenOrder};
use quartermaster_proto::choria::ecdh::{EcdhError, KeyPair};
use quartermaster_proto::choria::envelope::Proof;
use quartermaster_proto::choria::pem::{decrypt_der, first_block};
use quartermaster_proto::choria::sign::{SigningKey, ed25519_verifies, rsa_verifies};
use quartermaster_proto::choria::token::{VerifyKey, parse_client, verify_server};
use quartermaster_proto::choria::{chain::sign_claims, token::TokenError};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::site::{
    EXPIRES, ISSUED, MEMBER, NOW, ORGANISATION, RSA, Site, chain, client_token, public, vault,
};

fn order() -> ServerTokenOrder {
    ServerTokenOrder::new(&Identity::parse("web1.example.net").unwrap(), [5; 32], None, &BTreeMap::new())
}

fn secret(text: &str) -> SecretString {
    SecretString::from(text)
}

// Requests.

#[actix::test]
async fn requests_of_an_unsigned_network_carry_no_signature() {
    assert_eq!(vault(Site::new().plain()).sign_request(b"body".to_vec()).await.unwrap(), Proof::Insecure);
}

#[actix::test]
async fn requests_of_an_x509_network_carry_certificate_and_rsa_signature() {
    let site = Site::new();
    let Proof::V1 { signature, certificate_pem } =
        vault(site.x509()).sign_request(b"body".to_vec()).await.unwrap()
    else {
        panic!("another proof");
    };
    let key = SigningKey::from_text(&RSA[0].serialize_pem()).unwrap();
    assert!(rsa_verifies(key.rsa_public_der().unwrap(), b"body", &signature));
    assert_eq!(certificate_pem, std::fs::read_to_string(site.path("certificate.pem")).unwrap(), "verbatim");
}

#[actix::test]
async fn requests_of_an_issuer_network_carry_token_and_ed25519_signature() {
    let site = Site::new();
    site.put("token", &format!("{}\n", client_token(MEMBER, |_| {})));
    let Proof::V2 { signature, caller_jwt } =
        vault(site.issuer()).sign_request(b"body".to_vec()).await.unwrap()
    else {
        panic!("another proof");
    };
    assert!(ed25519_verifies(&public(MEMBER), b"body", &signature));
    assert_eq!(caller_jwt, client_token(MEMBER, |_| {}), "trimmed");
}

#[actix::test]
async fn callers_are_named_by_certname_or_by_their_token() {
    let site = Site::new();
    assert_eq!(vault(site.plain()).caller().await.unwrap(), "choria=provisioner.mcollective");
    assert_eq!(vault(site.x509()).caller().await.unwrap(), "choria=provisioner.mcollective");
    assert_eq!(vault(site.issuer()).caller().await.unwrap(), "member=2");
}

// Logins.

#[actix::test]
async fn a_login_without_issuer_is_user_and_password() {
    let site = Site::new();
    let mut settings = site.x509();
    assert!(vault(settings.clone()).login(None).await.unwrap().user.is_none(), "no password, no user");
    settings.broker_password = Some(secret("pa55"));
    let login = vault(settings.clone()).login(Some(b"nonce".to_vec())).await.unwrap();
    assert_eq!(login.user.as_deref(), Some("provisioner"));
    assert_eq!(login.password.unwrap().expose_secret(), "pa55");
    assert!(login.token.is_none() && login.jwt.is_none() && login.signature.is_none());
    settings.broker_user = Some("somebody".to_owned());
    assert_eq!(vault(settings).login(None).await.unwrap().user.as_deref(), Some("somebody"));
}

#[actix::test]
async fn a_login_with_an_issuer_is_the_token_twice_the_signed_nonce_and_the_password() {
    let site = Site::new();
    let mut settings = site.issuer();
    settings.broker_password = Some(secret("pa55"));
    let vault = vault(settings);
    let login = vault.login(Some(b"nonce".to_vec())).await.unwrap();
    assert_eq!(login.password.unwrap().expose_secret(), "pa55");
    assert_eq!(login.token.unwrap().expose_secret(), client_token(MEMBER, |_| {}));
    assert_eq!(login.jwt.unwrap().expose_secret(), client_token(MEMBER, |_| {}));
    assert!(ed25519_verifies(&public(MEMBER), b"nonce", &login.signature.unwrap()));
    assert!(vault.login(None).await.unwrap().signature.is_none());
}

#[actix::test]
async fn the_token_for_servers_is_handed_out() {
    let mut settings = Site::new().plain();
    settings.provisioning_token = secret("s3cret");
    assert_eq!(vault(settings).provisioning_token().await.unwrap().expose_secret(), "s3cret");
}

// Provisioning tokens.

async fn verified(verify: Option<String>) -> Result<String, VaultError> {
    let claims = json!({"cht": "s3cret", "purpose": "choria_provisioning", "ou": "acme"});
    let jwt = sign_claims(&claims, &SigningKey::from_seed(&ORGANISATION)).unwrap();
    let settings = VaultSettings { jwt_verify_cert: verify, ..Site::new().plain() };
    vault(settings).verify_provisioning(jwt).await.map(|claims| claims.ou)
}

#[actix::test]
async fn provisioning_tokens_are_verified_with_a_key_given_in_place_or_in_a_file() {
    let site = Site::new();
    let hex = hex::encode(public(ORGANISATION));
    site.put("issuer.public", &hex);
    assert_eq!(verified(Some(hex)).await.unwrap(), "acme");
    assert_eq!(verified(Some(site.path("issuer.public").display().to_string())).await.unwrap(), "acme");
}

#[actix::test]
async fn a_verification_key_that_is_missing_or_wrong_says_so() {
    let site = Site::new();
    assert!(matches!(verified(None).await, Err(VaultError::NotConfigured { what: "jwt_verify_cert" })));
    let missing = verified(Some("/nowhere/issuer.pem".into())).await.unwrap_err();
    assert!(
        matches!(missing, VaultError::VerifyKeyUnusable)
            && missing.to_string().contains("neither an existing file")
    );
    let other = verified(Some(hex::encode(public(MEMBER)))).await.unwrap_err();
    assert!(matches!(other, VaultError::Verify(TokenError::Signature)) && other.is_final());
    let certificate = verified(Some(site.path("certificate.pem").display().to_string())).await.unwrap_err();
    assert!(matches!(certificate, VaultError::Verify(TokenError::Algorithm { .. })), "{certificate}");
    let rubbish = verified(Some(site.path("token").display().to_string())).await.unwrap_err();
    assert!(matches!(rubbish, VaultError::Token { what: "jwt_verify_cert", .. }) && !rubbish.is_final());
}

// Server tokens.

#[actix::test]
async fn a_server_token_is_chained_to_the_organisation() {
    let jwt = vault(Site::new().issuer()).issue_server_token(order()).await.unwrap();
    let organisation = VerifyKey::Ed25519(public(ORGANISATION));
    let claims = verify_server(jwt.expose_secret(), &organisation, NOW).unwrap();
    assert_eq!(claims.identity, "web1.example.net");
    assert_eq!(claims.standard.issexp, Some(EXPIRES));
    assert_eq!(claims.standard.exp, Some(NOW.seconds() + 365 * 86_400).min(Some(EXPIRES)));
}

#[actix::test]
async fn a_server_token_without_signing_token_is_the_keys_own() {
    let site = Site::new();
    let mut settings = site.issuer();
    settings.jwt_signing_token = None;
    let jwt = vault(settings).issue_server_token(order()).await.unwrap();
    let claims = verify_server(jwt.expose_secret(), &VerifyKey::Ed25519(public(MEMBER)), NOW).unwrap();
    assert_eq!(claims.standard.iss.as_deref(), Some(ISSUER_TEXT));
}

#[actix::test]
async fn two_server_tokens_of_one_second_have_two_ids() {
    let site = Site::new();
    let vault = vault(site.issuer());
    let first = vault.issue_server_token(order()).await.unwrap();
    let second = vault.issue_server_token(order()).await.unwrap();
    assert_ne!(first.expose_secret(), second.expose_secret());
}

#[actix::test]
async fn what_cannot_issue_says_why() {
    let check = async |change: fn(&mut quartermaster_proto::choria::token::ClientClaims), expected: &str| {
        let site = Site::new();
        site.put("token", &client_token(MEMBER, change));
        let error = vault(site.issuer()).issue_server_token(order()).await.unwrap_err();
        assert!(chain(&error).contains(expected) && !error.is_final(), "{}", chain(&error));
    };
    check(|c| c.standard.tcs = None, "no Trust Chain Signature claim in JWT Signing Token").await;
    check(|c| c.standard.exp = Some(ISSUED + 1), "the issuer's token is expired").await;
    check(|c| c.standard.public_key = Some("ab".repeat(32)), "`public_key` is another").await;
    check(|c| c.standard.purpose = "choria_server".into(), "token purpose is `choria_server`").await;
    let error = vault(Site::new().plain()).issue_server_token(order()).await.unwrap_err();
    assert_eq!(error.to_string(), "jwt_signing_key is not configured");
}

// Private keys for servers.

#[actix::test]
async fn a_private_key_is_sealed_for_its_host_alone_and_anew_each_time() {
    let vault = vault(Site::new().plain());
    let host = KeyPair::generate([9; 32]);
    let pem = RSA[1].serialize_pem();
    let seal = async || vault.seal_private_key(secret(&pem), host.public_hex()).await.unwrap();
    let (first, second) = (seal().await, seal().await);
    assert_ne!((&first.pem, &first.ecdh_public), (&second.pem, &second.ecdh_public));
    for sealed in [first, second] {
        let shared = host.shared_secret(&sealed.ecdh_public).unwrap();
        assert_eq!(&**decrypt_der(&sealed.pem, &shared).unwrap(), first_block(&pem).unwrap().der());
    }
}

#[actix::test]
async fn a_key_that_cannot_be_sealed_is_the_hosts_or_helpers_fault() {
    let vault = vault(Site::new().plain());
    let host = KeyPair::generate([9; 32]).public_hex();
    let check = async |pem: &str, public: &str| {
        let error = vault.seal_private_key(secret(pem), public.to_owned()).await.unwrap_err();
        assert!(error.is_final());
        error
    };
    let pem = RSA[1].serialize_pem();
    let short = check(&pem, &host[1..]).await;
    assert!(matches!(short, VaultError::Exchange(EcdhError::PublicKey { found: 63 })));
    let weak = check(&pem, &"0".repeat(64)).await;
    assert!(matches!(weak, VaultError::Exchange(EcdhError::Weak)));
    assert!(matches!(check("no key", &host).await, VaultError::Encrypt(_)));
}

// Files that are not as they should be.

#[actix::test]
async fn a_seed_and_a_token_that_do_not_belong_together_sign_nothing() {
    let site = Site::new();
    site.put("seed", &hex::encode([7; 32]));
    let vault = vault(site.issuer());
    let error = vault.sign_request(b"body".to_vec()).await.unwrap_err();
    assert!(matches!(&error, VaultError::SeedMismatch { .. }), "{error}");
    assert!(matches!(vault.login(None).await, Err(VaultError::SeedMismatch { .. })));
}

#[actix::test]
async fn unusable_files_are_named() {
    let check = async |name: &str, content: Option<&str>, expected: &str| {
        let site = Site::new();
        match content {
            Some(content) => site.put(name, content),
            None => site.remove(name),
        }
        let error = vault(site.issuer()).sign_request(b"body".to_vec()).await.unwrap_err();
        let text = chain(&error);
        assert!(text.contains(&site.path(name).display().to_string()) && text.contains(expected), "{text}");
    };
    check("seed", None, "failed to read seed").await;
    check("token", None, "failed to read client token").await;
    check("seed", Some("zz"), "neither a seed of 64 hexadecimal digits").await;
    check("token", Some("zz"), "token is malformed").await;
    check("seed", Some(&"x".repeat(2_000_000)), "is not a text of at most").await;
}

#[actix::test]
async fn a_token_that_names_no_key_is_taken_with_any_seed() {
    let site = Site::new();
    site.put("token", &client_token(MEMBER, |claims| claims.standard.public_key = None));
    assert!(vault(site.issuer()).login(None).await.is_ok());
    assert_eq!(parse_client(&client_token(MEMBER, |_| {})).unwrap().callerid, "member=2");
}
