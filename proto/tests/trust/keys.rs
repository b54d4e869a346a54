//! Key exchange, the encryption of private keys and signatures, on published and recorded values.

use quartermaster_proto::choria::ecdh::{EcdhError, KeyPair};
use quartermaster_proto::choria::pem::{
    PemError, decrypt_der, decrypt_private_key, derive_key, encrypt_der, encrypt_private_key, first_block,
};
use quartermaster_proto::choria::sign::{
    SignError, SigningKey, ed25519_verifies, rsa_verifies, verify_nonce,
};

use crate::recorded;

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex::decode(text).unwrap().try_into().unwrap()
}

const PROVISIONER_PRIVATE: &str = "3e150feab1f2c709af9afa28e626f258dbf1b683d3bc35225a9b0489de485870";
const PROVISIONER_PUBLIC: &str = "c25fab933b16b2a4589e2c2d297669b818c82881f2f9bfd08cb8fd298924a41b";
const SERVER_PRIVATE: &str = "67e4a9b3934a3030470ed7a30f89eeaf7dab7b492aa9ee02fb864d690b7e6eeb";
const SERVER_PUBLIC: &str = "88a9a0ed27dc93c29466ea2bef99e078342b27e7a1d789fc35a9131f86c3a022";
const SHARED: &str = "53a4887b448755a3f0a0618b289eb2369ec4b2461d44890abdfa3084ef080c55";
const IV: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[test]
fn both_sides_of_the_published_exchange_share_the_secret() {
    let provisioner = KeyPair::generate(bytes(PROVISIONER_PRIVATE));
    let server = KeyPair::generate(bytes(SERVER_PRIVATE));
    assert_eq!(provisioner.public_hex(), PROVISIONER_PUBLIC);
    assert_eq!(server.public_hex(), SERVER_PUBLIC);
    assert_eq!(*provisioner.shared_secret(SERVER_PUBLIC).unwrap(), bytes::<32>(SHARED));
    assert_eq!(*server.shared_secret(PROVISIONER_PUBLIC).unwrap(), bytes::<32>(SHARED));
}

#[test]
fn public_keys_of_wrong_length_or_small_order_share_nothing() {
    let pair = KeyPair::generate([9; 32]);
    let check = |text: &str, expected| assert_eq!(pair.shared_secret(text), Err(expected));
    check("", EcdhError::PublicKey { found: 0 });
    check(&SERVER_PUBLIC[1..], EcdhError::PublicKey { found: 63 });
    check(&format!("{SERVER_PUBLIC}00"), EcdhError::PublicKey { found: 66 });
    check(&"zz".repeat(32), EcdhError::PublicKey { found: 64 });
    check(&"00".repeat(32), EcdhError::Weak);
    check(&format!("01{}", "00".repeat(31)), EcdhError::Weak);
}

#[test]
fn the_published_encryption_comes_out_byte_for_byte() {
    let shared = bytes(SHARED);
    assert_eq!(
        hex::encode(*derive_key(&shared, &IV)),
        "e6d1fff9fab386aef3cf588b313e232e2feb8beae2354c26c1fff3621b199345"
    );
    assert_eq!(
        encrypt_der(b"choria", &shared, IV),
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,000102030405060708090a0b0c0d0e0f\n\n\
         jspbguBlW7l0CA4Jp5kOnA==\n-----END RSA PRIVATE KEY-----\n"
    );
    assert_eq!(&**decrypt_der(&encrypt_der(b"choria", &shared, IV), &shared).unwrap(), b"choria");
}

#[test]
fn the_recorded_key_has_the_form_we_send() {
    let plain = recorded::file("v1-x509-key.plaintext-key.pem");
    let (request, reply) = recorded::call("v1-x509-key.jsonl", "configure");
    assert!(reply["message"].is_string());
    let sent = request["key"].as_str().unwrap();
    assert_eq!(request["ecdh_public"].as_str().unwrap().len(), 64);
    let ours = encrypt_private_key(&plain, &bytes(SHARED), IV).unwrap();
    let shape = |pem: &str| {
        let lines: Vec<&str> = pem.lines().collect();
        let iv = lines[2].strip_prefix("DEK-Info: AES-256-CBC,").unwrap();
        assert!(iv.len() == 32 && !iv.contains(|c: char| c.is_ascii_uppercase()));
        let widths: Vec<usize> = lines[4..].iter().map(|line| line.len()).collect();
        (lines[0].to_owned(), lines[1].to_owned(), lines[3].to_owned(), widths, pem.ends_with("-----\n"))
    };
    assert_eq!(shape(&ours), shape(sent));
    // What the server wrote to its disk is the same block in the clear.
    let clear = decrypt_private_key(&ours, &bytes(SHARED)).unwrap();
    let server_side = first_block(&clear).unwrap();
    assert_eq!(server_side.der(), first_block(&plain).unwrap().der());
    assert_eq!(server_side.label(), "RSA PRIVATE KEY");
}

#[test]
fn any_kind_of_private_key_travels_under_the_rsa_label() {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let sealed = encrypt_private_key(
        &format!("preamble\n{key}\n-----BEGIN OTHER-----\nAAAA\n-----END OTHER-----\n"),
        &[1; 32],
        IV,
    );
    let sealed = sealed.unwrap();
    assert!(sealed.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
    assert_eq!(&**decrypt_der(&sealed, &[1; 32]).unwrap(), first_block(&key).unwrap().der());
}

#[test]
fn what_is_no_clear_private_key_is_not_encrypted() {
    let check = |text: &str, expected| assert_eq!(encrypt_private_key(text, &[1; 32], IV), Err(expected));
    check("", PemError::NoBlock);
    check("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n", PemError::NoBlock);
    check(
        "-----BEGIN RSA PRIVATE KEY-----\n*\n-----END RSA PRIVATE KEY-----\n",
        PemError::Base64 { label: "RSA PRIVATE KEY".into() },
    );
    check(&recorded::file("v1-x509.ca.pem"), PemError::NotAKey { label: "CERTIFICATE".into() });
    check(&encrypt_der(b"x", &[1; 32], IV), PemError::AlreadyEncrypted);
    check(&"x".repeat(300_000), PemError::TooLong { bytes: 300_000 });
}

#[test]
fn a_key_that_is_not_encrypted_for_us_is_not_decrypted() {
    let check = |text: &str, expected| assert_eq!(decrypt_der(text, &[1; 32]).map(|_| ()), Err(expected));
    check(&recorded::file("v1-x509-key.plaintext-key.pem"), PemError::NotEncrypted);
    let sealed = encrypt_der(b"some key or other", &[1; 32], IV);
    check(&sealed.replace("AES-256-CBC", "DES-EDE3-CBC"), PemError::UnknownCipher);
    check(&sealed.replace("000102", "0001"), PemError::UnknownCipher);
    check(&encrypt_der(b"some key or other", &[2; 32], IV), PemError::Decrypt);
}

const SEED: &str = "8e7099f92288dfe8ac899dba887eaeca9fa33cf8a794fd73e76696670c63ea38";
const PUBLIC: &str = "3899a8bb4b6e6e09c91c27f28f086f0b40f1d3091a8c83c07320bc6cfdf67730";
const NONCE_SIGNATURE: &str = "d34904104ab43dd16d4e5046b61528380e0b81f6ca993a0c281ab9acdca4cf85c3c91a3a2c30ffebf0070d9ae81cbfbd21ac097989d73645a9bce0632ee93509";

#[test]
fn the_published_seed_signs_the_published_nonce() {
    let key = SigningKey::from_text(&format!("{SEED}\n")).unwrap();
    assert_eq!(hex::encode(key.ed25519_public().unwrap()), PUBLIC);
    assert_eq!(hex::encode(key.sign(b"nonce").unwrap()), NONCE_SIGNATURE);
    assert_eq!(verify_nonce(PUBLIC, "nonce", NONCE_SIGNATURE), Ok(bytes(PUBLIC)));
}

#[test]
fn recorded_servers_prove_their_keys() {
    for network in ["v1-insecure.jsonl", "v2.jsonl"] {
        let (request, reply) = recorded::call(network, "gen25519");
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let (public, signature) = (text(&reply["public_key"]), text(&reply["signature"]));
        let nonce = text(&request["nonce"]);
        assert_eq!(hex::encode(verify_nonce(&public, &nonce, &signature).unwrap()), public);
        assert_eq!(verify_nonce(&public, &format!("{nonce}x"), &signature), Err(SignError::Mismatch));
    }
}

#[test]
fn a_key_proof_of_wrong_length_or_under_a_weak_key_is_refused() {
    let check = |public: &str, signature: &str, expected| {
        assert_eq!(verify_nonce(public, "nonce", signature), Err(expected));
    };
    check("", NONCE_SIGNATURE, SignError::Hex { what: "public key", digits: 64, found: 0 });
    check(&PUBLIC[2..], NONCE_SIGNATURE, SignError::Hex { what: "public key", digits: 64, found: 62 });
    check(&"ö".repeat(64), NONCE_SIGNATURE, SignError::Hex { what: "public key", digits: 64, found: 64 });
    check(PUBLIC, &NONCE_SIGNATURE[2..], SignError::Hex { what: "signature", digits: 128, found: 126 });
    check(PUBLIC, "", SignError::Hex { what: "signature", digits: 128, found: 0 });
    check(PUBLIC, &"00".repeat(64), SignError::Mismatch);
    // The neutral point verifies anything for a lax reader.
    check(&format!("01{}", "00".repeat(31)), &format!("01{}", "00".repeat(63)), SignError::WeakKey);
    check(&format!("02{}", "00".repeat(31)), &"00".repeat(64), SignError::WeakKey);
}

#[test]
fn rsa_keys_sign_from_both_pem_forms() {
    let pkcs1 = recorded::file("v1-x509-key.plaintext-key.pem");
    let pkcs8 = {
        let pair =
            rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
        pair.serialize_pem()
    };
    assert!(pkcs1.starts_with("-----BEGIN RSA PRIVATE KEY") && pkcs8.starts_with("-----BEGIN PRIVATE KEY"));
    for text in [pkcs1, pkcs8] {
        let key = SigningKey::from_text(&text).unwrap();
        assert_eq!((key.algorithm(), key.ed25519_public()), ("RS256", None));
        let signature = key.sign(b"message").unwrap();
        assert_eq!(signature.len(), 256);
        assert!(rsa_verifies(key.rsa_public_der().unwrap(), b"message", &signature));
        assert!(!rsa_verifies(key.rsa_public_der().unwrap(), b"another", &signature));
    }
}

#[test]
fn texts_that_are_no_signing_key_are_refused_without_repeating_them() {
    let check = |text: &str| {
        let error = SigningKey::from_text(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("c0ffee"), "{error}");
    };
    check("");
    check("c0ffee");
    check(&"c0ffee".repeat(10));
    check(&format!("{}zzzz", "c0ffee".repeat(10)));
    check("-----BEGIN PRIVATE KEY-----\nc0ffee==\n-----END PRIVATE KEY-----\n");
    check("-----BEGIN RSA PRIVATE KEY-----\n");
    check(&rcgen::KeyPair::generate().unwrap().serialize_pem());
    check(&"c0ffee".repeat(100_000));
}

#[test]
fn debug_of_keys_shows_no_private_half() {
    let pair = KeyPair::generate(bytes(PROVISIONER_PRIVATE));
    let key = SigningKey::from_text(SEED).unwrap();
    let block = first_block(&recorded::file("v1-x509-key.plaintext-key.pem")).unwrap();
    let shown = format!("{pair:?} {key:?} {block:?}");
    assert_eq!(
        shown,
        format!(
            "KeyPair({PROVISIONER_PUBLIC}, [redacted]) SigningKey(EdDSA, [redacted]) Block {{ label: \"RSA PRIVATE KEY\", .. }}"
        )
    );
}

#[test]
fn ed25519_refuses_signatures_of_other_lengths() {
    let public = bytes(PUBLIC);
    assert!(ed25519_verifies(&public, b"nonce", &hex::decode(NONCE_SIGNATURE).unwrap()));
    for length in [0, 63, 65, 128] {
        assert!(!ed25519_verifies(&public, b"nonce", &vec![0; length]));
    }
}
