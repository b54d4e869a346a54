//! Laws that hold for any input, and no panic for any input.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quartermaster_proto::choria::Identity;
use quartermaster_proto::choria::chain::{ServerTokenOrder, TokenIssuer, issue_server_token, verify_chain};
use quartermaster_proto::choria::csr::{examine, judge};
use quartermaster_proto::choria::ecdh::KeyPair;
use quartermaster_proto::choria::pem::{
    decrypt_der, decrypt_private_key, encrypt_der, encrypt_private_key, first_block, write_block,
};
use quartermaster_proto::choria::sign::{SigningKey, ed25519_verifies, verify_nonce};
use quartermaster_proto::choria::token::{
    StandardClaims, VerifyKey, parse_client, parse_provisioning, parse_server, verify_client,
    verify_provisioning, verify_server,
};
use quartermaster_proto::time::WallClock;
use secrecy::ExposeSecret as _;

use crate::recorded::{self, RECORDED};

proptest! {
    #[test]
    fn both_sides_always_share_the_same_secret(a: [u8; 32], b: [u8; 32]) {
        let (a, b) = (KeyPair::generate(a), KeyPair::generate(b));
        prop_assert_eq!(a.shared_secret(&b.public_hex()), b.shared_secret(&a.public_hex()));
    }

    #[test]
    fn what_is_encrypted_decrypts_with_the_same_secret_only(der: Vec<u8>, secret: [u8; 32], iv: [u8; 16], other: [u8; 32]) {
        let sealed = encrypt_der(&der, &secret, iv);
        prop_assert_eq!(&*decrypt_der(&sealed, &secret).unwrap(), &der);
        if other != secret {
            prop_assert_ne!(decrypt_der(&sealed, &other).map(|der| der.to_vec()), Ok(der));
        }
    }

    #[test]
    fn a_block_written_is_read_back(der: Vec<u8>, label in "[A-Z]{1,10}( [A-Z]{1,10}){0,3}") {
        let text = write_block(&label, &[("Proc-Type", "4,ENCRYPTED")], &der);
        let block = first_block(&text).unwrap();
        prop_assert_eq!((block.label(), block.der(), block.header("Proc-Type")), (label.as_str(), &der[..], Some("4,ENCRYPTED")));
    }

    #[test]
    fn a_proof_counts_for_its_nonce_and_key_only(seed: [u8; 32], nonce in "\\PC{0,64}", other in "\\PC{0,64}") {
        let key = SigningKey::from_seed(&seed);
        let public = key.ed25519_public().unwrap();
        let signature = key.sign(nonce.as_bytes()).unwrap();
        prop_assert_eq!(verify_nonce(&hex::encode(public), &nonce, &hex::encode(&signature)), Ok(public));
        prop_assert_eq!(ed25519_verifies(&public, other.as_bytes(), &signature), other == nonce);
    }

    #[test]
    fn any_seed_text_round_trips(seed: [u8; 32]) {
        let key = SigningKey::from_text(&hex::encode(seed)).unwrap();
        prop_assert_eq!(key.ed25519_public(), SigningKey::from_seed(&seed).ed25519_public());
    }

    #[test]
    fn an_issued_token_always_verifies_with_its_key(
        seed: [u8; 32],
        random: [u8; 16],
        server: [u8; 32],
        at in 1_500_000_000_i64..4_000_000_000,
        validity in 1_i64..1_000_000_000,
        exp in proptest::option::of(any::<i64>()),
    ) {
        let key = SigningKey::from_seed(&seed);
        let verify = VerifyKey::Ed25519(key.ed25519_public().unwrap());
        let mut order = ServerTokenOrder::new(&Identity::parse("web1").unwrap(), server, None, &BTreeMap::new());
        order.exp = exp;
        let now = WallClock::from_seconds(at);
        let issued = issue_server_token(&order, &TokenIssuer::new(key, None).unwrap(), validity, now, random).unwrap();
        prop_assert_eq!(verify_server(issued.jwt.expose_secret(), &verify, now).unwrap(), issued.claims);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,300}") {
        read_everything(&text);
    }

    #[test]
    fn no_bytes_in_a_tokens_clothes_make_a_reader_panic(header: Vec<u8>, payload: Vec<u8>, signature: Vec<u8>) {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
        read_everything(&format!("{}.{}.{}", B64.encode(header), B64.encode(payload), B64.encode(signature)));
    }

    #[test]
    fn no_claims_make_a_reader_panic(claims in "\\{(\"(cht|exp|nbf|purpose|extensions|permissions|collectives|tcs|iss|jti|callerid|identity)\":(1|\"x\"|null|true|\\[\\]|\\{\\}|1e999|-1),){0,6}\"z\":0\\}") {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
        let key = SigningKey::from_seed(&[7; 32]);
        let message = format!("{}.{}", B64.encode(r#"{"alg":"EdDSA"}"#), B64.encode(claims));
        let signature = B64.encode(key.sign(message.as_bytes()).unwrap());
        read_everything(&format!("{message}.{signature}"));
    }

    #[test]
    fn no_bytes_in_a_requests_clothes_make_the_reader_panic(der: Vec<u8>) {
        let _ = examine(&write_block("CERTIFICATE REQUEST", &[], &der));
        read_everything(&write_block("PUBLIC KEY", &[], &der));
        read_everything(&write_block("CERTIFICATE", &[], &der));
        read_everything(&write_block("RSA PRIVATE KEY", &[("Proc-Type", "4,ENCRYPTED"), ("DEK-Info", "AES-256-CBC,00")], &der));
    }

    #[test]
    fn no_damage_to_a_real_request_makes_the_reader_panic(at in 0_usize..612, to: u8) {
        let (_, reply) = recorded::call("v1-x509.jsonl", "gencsr");
        let pem = reply["csr"].as_str().unwrap();
        let mut der = first_block(pem).unwrap().der().to_vec();
        if let Some(byte) = der.get_mut(at) {
            *byte = to;
        }
        if let Ok(facts) = examine(&write_block("CERTIFICATE REQUEST", &[], &der)) {
            // Only bytes that the signature does not cover can differ, and they say nothing.
            prop_assert_eq!(&facts, &examine(pem).unwrap());
            let _ = judge(&facts, &Identity::parse("web1.example.net").unwrap(), &[]);
        }
    }

    #[test]
    fn no_chain_data_makes_the_verifier_panic(
        iss in "(C-|I-|)[0-9a-zA-Z.]{0,80}",
        tcs in "[0-9a-f.]{0,300}",
        jti in "[0-9a-zA-Z]{20,30}",
        times: [i64; 3],
    ) {
        let claims = StandardClaims {
            iss: Some(iss),
            tcs: Some(tcs),
            jti: Some(jti),
            public_key: Some("00".into()),
            iat: Some(times[0]),
            exp: Some(times[1]),
            issexp: Some(times[2]),
            ..StandardClaims::default()
        };
        prop_assert!(verify_chain(&claims, &[7; 32], RECORDED).is_err());
    }
}

fn read_everything(text: &str) {
    let ed25519 = VerifyKey::Ed25519(SigningKey::from_seed(&[7; 32]).ed25519_public().unwrap());
    let _ = parse_client(text);
    let _ = parse_server(text);
    let _ = parse_provisioning(text);
    let _ = verify_client(text, &ed25519, RECORDED);
    let _ = verify_server(text, &ed25519, RECORDED);
    let _ = verify_provisioning(text, &ed25519, RECORDED).map(|claims| claims.helper_json().unwrap());
    let _ = VerifyKey::from_text(text);
    let _ = SigningKey::from_text(text);
    let _ = examine(text);
    let _ = encrypt_private_key(text, &[1; 32], [2; 16]);
    let _ = decrypt_private_key(text, &[1; 32]);
    let _ = verify_nonce(text, text, text);
    let _ = KeyPair::generate([1; 32]).shared_secret(text);
}
