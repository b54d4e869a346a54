//! The recorded signatures are over the very bytes that we build.
#![cfg(test)]

mod support;

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use ed25519_dalek::{Signer as _, SigningKey, Verifier as _, VerifyingKey};
use quartermaster_proto::choria::{
    agents::{Gen25519Input, Gen25519Reply, decode_input, decode_output},
    envelope::{OpenRequest, Proof, request_body},
    rpc,
};
use support::{RECORDINGS, replies, requests, vector};

fn key32(name: &str) -> [u8; 32] {
    hex::decode(vector(name).trim()).unwrap().try_into().unwrap()
}

/// Signed bytes and signature of an x509 request, and the key of the certificate that came with it.
fn rsa_verifies(open: &OpenRequest, body: &[u8]) -> bool {
    let Proof::V1 { signature, certificate_pem } = &open.proof else { panic!("an x509 proof") };
    let pem = pem::parse(certificate_pem).unwrap();
    let (_, certificate) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
    let key = certificate.public_key().subject_public_key.data.to_vec();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(body, signature).is_ok()
}

#[test]
fn signing_a_rebuilt_request_gives_the_recorded_signature() {
    let key = SigningKey::from_bytes(&key32("v2.signer.seed"));
    assert_eq!(key.verifying_key().to_bytes(), key32("v2.signer.public"));
    for open in requests("v2") {
        let Proof::V2 { signature, .. } = &open.proof else { panic!("a token proof") };
        let body = request_body(open.generation, &open.request).unwrap();
        assert_eq!(key.sign(&body).to_bytes().as_slice(), signature);
    }
}

#[test]
fn recorded_x509_signatures_hold_over_rebuilt_requests() {
    for name in ["v1-x509", "v1-x509-key"] {
        for open in requests(name) {
            let mut body = request_body(open.generation, &open.request).unwrap();
            assert!(rsa_verifies(&open, &body), "{name}");
            body[10] ^= 1;
            assert!(!rsa_verifies(&open, &body), "a changed byte breaks it");
        }
    }
}

#[test]
fn hosts_prove_their_new_key_over_the_nonce_text() {
    for name in RECORDINGS.into_iter().filter(|name| !name.starts_with("v1-x509")) {
        let nonce = requests(name).into_iter().find_map(|open| {
            let asked = rpc::decode_request(&open.request.payload).ok()?;
            let input: Gen25519Input<'_> = decode_input(&asked.data).ok()?;
            (asked.action == "gen25519").then(|| input.nonce.into_owned())
        });
        let answer = replies(name).into_iter().find_map(|open| {
            let answer = rpc::decode_reply(&open.reply.payload).ok()?;
            (answer.action == "gen25519").then(|| decode_output::<Gen25519Reply>(&answer).unwrap())
        });
        let (nonce, answer) = (nonce.unwrap(), answer.unwrap());
        let key: [u8; 32] = hex::decode(answer.public_key).unwrap().try_into().unwrap();
        let signature: [u8; 64] = hex::decode(answer.signature).unwrap().try_into().unwrap();
        let key = VerifyingKey::from_bytes(&key).unwrap();
        assert!(key.verify(nonce.as_bytes(), &signature.into()).is_ok(), "{name}");
    }
}
