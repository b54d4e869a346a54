//! Provisioning tokens as recorded, and the forgeries a hostile host may send instead.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use quartermaster_proto::choria::chain::sign_claims;
use quartermaster_proto::choria::sign::SigningKey;
use quartermaster_proto::choria::token::{
    MAX_TOKEN, ProvisioningClaims, TokenError, VerifyKey, parse_client, verify_client, verify_provisioning,
    verify_server,
};
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};

use crate::recorded::{self, RECORDED, claims_text};

const IAT: i64 = 1_795_976_602;
const EXP: i64 = 1_796_063_002;

fn ed_key() -> SigningKey {
    SigningKey::from_seed(&[7; 32])
}

fn ed_verify() -> VerifyKey {
    VerifyKey::Ed25519(ed_key().ed25519_public().unwrap())
}

fn rsa_key() -> SigningKey {
    SigningKey::from_text(&recorded::file("v1-x509-key.plaintext-key.pem")).unwrap()
}

fn rsa_verify() -> VerifyKey {
    VerifyKey::Rsa { der: rsa_key().rsa_public_der().unwrap().to_vec() }
}

fn good_claims() -> Value {
    json!({
        "cht": "s3cret", "chs": false, "chu": "nats://localhost:4222", "chpd": true, "extensions": null, "ou": "choria",
        "v2": true, "purpose": "choria_provisioning", "iss": "lab", "sub": "choria_provisioning",
        "exp": EXP, "nbf": IAT, "iat": IAT, "jti": "3MnBlZGXzoIh9Erhck6GHxeFMgl"
    })
}

fn with(claim: &str, value: Value) -> Value {
    let mut claims = good_claims();
    claims[claim] = value;
    claims
}

fn without(names: &[&str]) -> Value {
    let mut claims = good_claims();
    for name in names {
        claims.as_object_mut().unwrap().remove(*name);
    }
    claims
}

fn signed(claims: &Value) -> String {
    sign_claims(claims, &ed_key()).unwrap()
}

fn verify_at(claims: &Value, seconds: i64) -> Result<ProvisioningClaims, TokenError> {
    verify_provisioning(&signed(claims), &ed_verify(), WallClock::from_seconds(seconds))
}

fn verify(claims: &Value) -> Result<ProvisioningClaims, TokenError> {
    verify_at(claims, IAT + 10)
}

fn refused(jwt: &str, key: &VerifyKey) -> String {
    let error = verify_provisioning(jwt, key, RECORDED).unwrap_err();
    assert!(error.to_string().len() < 400 && !error.to_string().contains("s3cret"), "{error}");
    error.to_string()
}

// The recordings.

fn helper_input(network: &str, key_file: &str) {
    let (_, reply) = recorded::call(&format!("{network}.jsonl"), "jwt");
    let key = VerifyKey::from_text(&recorded::file(key_file)).unwrap();
    let claims = verify_provisioning(reply["jwt"].as_str().unwrap(), &key, RECORDED).unwrap();
    let ours = claims.helper_json().unwrap();

    // One recording was written down with spaces; the order of the keys is what counts, so spaces outside of texts go.
    let input = recorded::file(&format!("{network}.helper-input.json"));
    let (_, peers) = input.rsplit_once("\"jwt\":").unwrap();
    let peers = peers.trim().strip_suffix('}').unwrap().replace("\": ", "\":").replace(", \"", ",\"");
    assert_eq!(ours.get(), peers);
    assert_eq!(ours.get(), claims_text(reply["jwt"].as_str().unwrap()), "the peer re-emits what it read");
}

#[test]
fn a_plain_networks_helper_gets_the_claims_the_peers_helper_got() {
    helper_input("v1-insecure", "v1-insecure.jwt-signer.public");
}

#[test]
fn an_x509_networks_helper_gets_the_claims_the_peers_helper_got() {
    helper_input("v1-x509", "v1-x509.jwt-signer.pem");
}

#[test]
fn an_issuer_networks_helper_gets_the_claims_the_peers_helper_got() {
    helper_input("v2", "v2.issuer.public");
}

#[test]
fn the_recorded_client_token_verifies_and_says_who_we_are() {
    let jwt = recorded::file("v2.signer.jwt");
    let claims = parse_client(&jwt).unwrap();
    assert_eq!(claims.callerid, "choria=provisioner_signer");
    assert!(
        claims.permissions.provisioner && claims.permissions.election_user && !claims.permissions.org_admin
    );
    assert_eq!(
        serde_json::to_string(&claims).unwrap(),
        claims_text(&jwt),
        "emitted in the order it was read"
    );
    let issuer = VerifyKey::from_text(&recorded::file("v2.issuer.public")).unwrap();
    assert_eq!(verify_client(&jwt, &issuer, RECORDED).unwrap(), claims);
    assert!(matches!(verify_client(&jwt, &ed_verify(), RECORDED), Err(TokenError::Signature)));
}

// What counts as the key.

#[test]
fn a_key_is_read_from_certificate_public_key_or_hex() {
    let certificate = VerifyKey::from_text(&recorded::file("v1-x509.provisioner.pem")).unwrap();
    assert!(matches!(certificate, VerifyKey::Rsa { .. }));
    let hex = format!("  {}\n", recorded::file("v2.issuer.public"));
    assert!(matches!(VerifyKey::from_text(&hex), Ok(VerifyKey::Ed25519(_))));
    let (_, csr) = recorded::call("v1-x509.jsonl", "gencsr");
    let pkcs1_in_disguise = VerifyKey::from_text(csr["public_key"].as_str().unwrap()).unwrap();
    assert!(matches!(pkcs1_in_disguise, VerifyKey::Rsa { .. }));
}

#[test]
fn what_is_no_key_is_refused() {
    let check =
        |text: &str| assert!(matches!(VerifyKey::from_text(text), Err(TokenError::Key { .. })), "{text}");
    check("");
    check("/etc/choria/missing.pem");
    check("abcd");
    check("-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n");
    check("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
    // An Ed25519 key as SubjectPublicKeyInfo: the label says RSA to the peer, and it is none.
    check(
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n",
    );
    check(&"a".repeat(100_000));
}

#[test]
fn every_rsa_digest_size_verifies() {
    let der = quartermaster_proto::choria::pem::first_block(&recorded::file("v1-x509-key.plaintext-key.pem"))
        .unwrap();
    let key = EncodingKey::from_rsa_der(der.der());
    for algorithm in [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512] {
        let jwt = jsonwebtoken::encode(&Header::new(algorithm), &good_claims(), &key).unwrap();
        assert_eq!(
            verify_provisioning(&jwt, &rsa_verify(), RECORDED).unwrap().cht,
            "s3cret",
            "{algorithm:?}"
        );
    }
    let pss = jsonwebtoken::encode(&Header::new(Algorithm::PS256), &good_claims(), &key).unwrap();
    assert!(
        refused(&pss, &rsa_verify()).contains("`PS256` but the configured key takes RS256, RS384 or RS512")
    );
}

// Forgeries.

fn hs256(secret: &[u8]) -> String {
    jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &good_claims(),
        &EncodingKey::from_secret(secret).unwrap(),
    )
    .unwrap()
}

fn unsigned(header: &str, signature: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{signature}", part(header), part(&good_claims().to_string()))
}

#[test]
fn a_token_without_signature_is_refused() {
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let header = format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#);
        for key in [ed_verify(), rsa_verify()] {
            assert!(refused(&unsigned(&header, ""), &key).contains("is signed with"), "{alg}");
            assert!(refused(&unsigned(&header, "AAAA"), &key).contains("is signed with"), "{alg}");
        }
    }
    assert!(refused(&unsigned(r#"{"alg":"EdDSA"}"#, ""), &ed_verify()).contains("signature"));
    assert!(refused(&unsigned(r#"{"typ":"JWT"}"#, ""), &ed_verify()).contains("malformed"));
    assert!(refused(&unsigned(r#"{"alg":["EdDSA"]}"#, ""), &ed_verify()).contains("malformed"));
}

#[test]
fn an_hmac_keyed_with_the_public_key_is_refused() {
    let pem = recorded::file("v1-x509.jwt-signer.pem");
    let configured = VerifyKey::from_text(&pem).unwrap();
    for secret in [pem.as_bytes(), pem.trim().as_bytes()] {
        assert!(refused(&hs256(secret), &configured).contains("`HS256`"));
    }
    let hex = hex::encode(ed_key().ed25519_public().unwrap());
    for secret in [hex.as_bytes(), &ed_key().ed25519_public().unwrap()[..]] {
        assert!(refused(&hs256(secret), &ed_verify()).contains("`HS256`"));
    }
}

#[test]
fn the_other_key_types_algorithm_is_refused() {
    let rs256 = sign_claims(&good_claims(), &rsa_key()).unwrap();
    assert!(refused(&rs256, &ed_verify()).contains("`RS256` but the configured key takes EdDSA"));
    let eddsa = signed(&good_claims());
    assert!(refused(&eddsa, &rsa_verify()).contains("`EdDSA` but the configured key takes RS256"));
}

#[test]
fn a_strangers_signature_is_refused() {
    let stranger = SigningKey::from_seed(&[8; 32]);
    assert_eq!(
        refused(&sign_claims(&good_claims(), &stranger).unwrap(), &ed_verify()),
        TokenError::Signature.to_string()
    );
}

#[test]
fn a_key_named_in_the_header_is_not_used() {
    let stranger = SigningKey::from_seed(&[8; 32]);
    let x = URL_SAFE_NO_PAD.encode(stranger.ed25519_public().unwrap());
    let header = format!(r#"{{"alg":"EdDSA","jwk":{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}}}"#);
    let message = unsigned(&header, "");
    let message = message.trim_end_matches('.');
    let signature = URL_SAFE_NO_PAD.encode(stranger.sign(message.as_bytes()).unwrap());
    assert!(refused(&format!("{message}.{signature}"), &ed_verify()).contains("signature does not verify"));
}

#[test]
fn every_truncation_is_refused() {
    let jwt = signed(&good_claims());
    for end in 0..jwt.len() {
        refused(&jwt[..end], &ed_verify());
    }
    assert!(
        verify_provisioning(&format!(" {jwt}\n"), &ed_verify(), RECORDED).is_ok(),
        "white space around it is no harm"
    );
    refused(&format!("{jwt}.{jwt}"), &ed_verify());
}

#[test]
fn every_changed_character_is_refused() {
    let jwt = signed(&good_claims());
    for (position, old) in jwt.char_indices() {
        let mut changed = jwt.clone().into_bytes();
        changed[position] = if old == 'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        refused(&changed, &ed_verify());
    }
}

#[test]
fn a_huge_token_is_refused_before_it_is_decoded() {
    let mut claims = good_claims();
    claims["extensions"] = json!({ "x": "y".repeat(MAX_TOKEN) });
    assert!(refused(&signed(&claims), &ed_verify()).contains("longer than 65536"));
    let deep = format!(r#"{{"extensions":{}1{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
    let deep: Box<serde_json::value::RawValue> = serde_json::from_str(&deep).unwrap();
    assert!(refused(&sign_claims(&deep, &ed_key()).unwrap(), &ed_verify()).contains("within limits"));
}

// Times: no leeway at all.

#[test]
fn a_token_is_expired_from_its_exp_on() {
    assert!(verify_at(&good_claims(), EXP - 1).is_ok());
    let error = verify_at(&good_claims(), EXP).unwrap_err();
    assert_eq!(error.to_string(), format!("token is expired: exp {EXP}, now {EXP} (Unix seconds)"));
    let last_moment = WallClock::from_nanos(EXP * 1_000_000_000 - 1);
    assert!(verify_provisioning(&signed(&good_claims()), &ed_verify(), last_moment).is_ok());
}

#[test]
fn a_token_is_valid_from_its_nbf_on() {
    assert!(verify_at(&good_claims(), IAT).is_ok());
    let error = verify_at(&good_claims(), IAT - 1).unwrap_err();
    assert!(matches!(error, TokenError::NotYetValid { from: IAT, now } if now == IAT - 1), "{error}");
}

#[test]
fn a_token_issued_in_the_future_counts_when_it_is_valid_and_absent_times_are_not_checked() {
    assert!(verify(&with("iat", json!(EXP + 5))).is_ok());
    assert!(verify(&without(&["exp", "nbf", "iat"])).is_ok());
    assert!(verify(&with("exp", json!(1_796_063_002.75))).is_ok());
    assert!(verify(&with("exp", json!(1e300))).is_ok());
    assert!(matches!(verify(&with("exp", json!(-1e300))), Err(TokenError::Expired { .. })));
}

// Purpose.

#[test]
fn purpose_or_subject_make_a_provisioning_token() {
    assert!(verify(&without(&["sub"])).is_ok());
    assert!(verify(&without(&["purpose"])).is_ok());
    assert!(matches!(verify(&without(&["sub", "purpose"])), Err(TokenError::Purpose { .. })));
}

#[test]
fn a_token_of_another_purpose_is_refused() {
    for purpose in ["choria_server", "choria_client_id", "CHORIA_PROVISIONING", "x\n\u{1b}[31m"] {
        let mut claims = with("purpose", json!(purpose));
        claims["sub"] = json!(purpose);
        let error = verify(&claims).unwrap_err().to_string();
        assert!(error.starts_with("token purpose is `") && !error.contains('\n'), "{error}");
    }
    assert!(matches!(
        verify_server(&signed(&with("identity", json!("web1"))), &ed_verify(), RECORDED),
        Err(TokenError::Purpose { .. })
    ));
}

// Trust chain data in a provisioning token.

#[test]
fn a_provisioning_token_with_chain_data_needs_a_live_chain_issuer() {
    let mut claims = with("tcs", json!("aa.bb"));
    assert!(matches!(verify(&claims), Err(TokenError::Chain(_))));
    claims["iss"] = json!("C-3MnBcsnkMXr5FGJPPMwYBbUuoUH.00");
    assert!(verify(&claims).is_ok());
    claims["issexp"] = json!(IAT + 11);
    assert!(verify(&claims).is_ok());
    claims["issexp"] = json!(IAT + 10);
    assert!(matches!(verify(&claims), Err(TokenError::Chain(_))));
}

// Types.

fn wrong_type(claim: &str, value: Value) {
    let error = verify(&with(claim, value)).unwrap_err();
    assert!(matches!(&error, TokenError::Type { claim: named, .. } if *named == claim), "{claim}: {error}");
}

#[test]
fn a_claim_of_another_type_is_named() {
    for claim in ["cht", "chu", "chsrv", "chrd", "chf", "chusr", "chpwd", "ou", "tcs", "public_key", "jti"] {
        wrong_type(claim, json!(1));
        wrong_type(claim, json!(["x"]));
    }
    for claim in ["chs", "chpd", "v2", "update"] {
        wrong_type(claim, json!("true"));
        wrong_type(claim, json!(1));
    }
    for claim in ["issexp", "exp", "nbf", "iat"] {
        wrong_type(claim, json!("1795976602"));
        wrong_type(claim, json!({}));
    }
    wrong_type("purpose", json!(true));
    wrong_type("iss", json!({}));
    wrong_type("sub", json!(7));
    wrong_type("extensions", json!([1]));
    wrong_type("extensions", json!("x"));
}

#[test]
fn claims_that_are_no_object_are_refused() {
    for claims in [json!([1]), json!("x"), json!(null), json!(7)] {
        assert!(refused(&signed(&claims), &ed_verify()).contains("malformed"), "{claims}");
    }
}

#[test]
fn null_counts_as_absent() {
    let claims = verify(&with("chs", json!(null))).unwrap();
    assert!(!claims.chs);
    assert!(verify(&with("exp", json!(null))).unwrap().standard.exp.is_none());
}

// What the helper sees.

#[test]
fn extensions_keep_their_digits_and_get_sorted_keys() {
    let claims = r#"{"purpose":"choria_provisioning","extensions":{"z":12345678901234567890123,"a":{"c":1.10,"b":2}}}"#;
    let raw: Box<serde_json::value::RawValue> = serde_json::from_str(claims).unwrap();
    let jwt = sign_claims(&raw, &ed_key()).unwrap();
    let claims = verify_provisioning(&jwt, &ed_verify(), RECORDED).unwrap();
    assert_eq!(
        claims.helper_json().unwrap().get(),
        r#"{"cht":"","chs":false,"chpd":false,"extensions":{"a":{"b":2,"c":1.10},"z":12345678901234567890123},"ou":"choria","purpose":"choria_provisioning"}"#
    );
}

#[test]
fn unknown_claims_do_not_reach_the_helper() {
    let claims = verify(&with("surprise", json!("x"))).unwrap();
    assert!(!claims.helper_json().unwrap().get().contains("surprise"));
}

#[test]
fn debug_shows_no_secret_claim() {
    let claims = verify(&with("chpwd", json!("pa55word"))).unwrap();
    let shown = format!("{claims:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("pa55word"), "{shown}");
}
