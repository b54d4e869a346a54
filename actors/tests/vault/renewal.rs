//! Files that somebody renews while the vault runs.

use std::fs;

use quartermaster_actors::vault::{Outside, VaultError, VaultHandle, VaultKeeper};
use quartermaster_proto::choria::envelope::Proof;
use quartermaster_proto::choria::sign::ed25519_verifies;

use crate::site::{MEMBER, OTHER_MEMBER, RSA, Site, certificate, client_token, public, vault};

async fn signer(vault: &VaultHandle) -> [u8; 32] {
    let Proof::V2 { signature, .. } = vault.sign_request(b"body".to_vec()).await.unwrap() else {
        panic!("another proof");
    };
    let by =
        [MEMBER, OTHER_MEMBER].into_iter().find(|seed| ed25519_verifies(&public(*seed), b"body", &signature));
    by.expect("signed by a known seed")
}

#[actix::test]
async fn files_renamed_into_place_are_taken_up() {
    let site = Site::new();
    let vault = vault(site.issuer());
    assert_eq!(signer(&vault).await, MEMBER);
    site.put("seed", &hex::encode(OTHER_MEMBER));
    site.put("token", &client_token(OTHER_MEMBER, |_| {}));
    assert_eq!(signer(&vault).await, OTHER_MEMBER);
    assert_eq!(vault.caller().await.unwrap(), "member=3");
}

#[actix::test]
async fn half_a_renewal_fails_visibly_and_the_whole_one_works() {
    let site = Site::new();
    let vault = vault(site.issuer());
    assert_eq!(signer(&vault).await, MEMBER);
    site.put("seed", &hex::encode(OTHER_MEMBER));
    let error = vault.sign_request(b"body".to_vec()).await.unwrap_err();
    assert!(matches!(error, VaultError::SeedMismatch { .. }) && !error.is_final());
    site.put("token", &client_token(OTHER_MEMBER, |_| {}));
    assert_eq!(signer(&vault).await, OTHER_MEMBER);
}

#[actix::test]
async fn a_file_that_vanishes_is_missed_and_found_again() {
    let site = Site::new();
    let vault = vault(site.issuer());
    assert_eq!(signer(&vault).await, MEMBER);
    site.remove("seed");
    assert!(matches!(vault.sign_request(b"body".to_vec()).await, Err(VaultError::Read { .. })));
    site.put("seed", &hex::encode(MEMBER));
    assert_eq!(signer(&vault).await, MEMBER);
}

/// The same length, in place, within one tick of the file system's clock: nothing about the file tells the two contents
/// apart, so while its last change is recent by the vault's clock it is read each time.
#[actix::test]
async fn a_file_overwritten_in_place_at_once_is_taken_up() {
    let site = Site::new();
    let vault = VaultKeeper::start_alone(site.issuer(), Outside::real());
    for seed in [OTHER_MEMBER, MEMBER, OTHER_MEMBER, MEMBER] {
        fs::write(site.path("seed"), hex::encode(seed)).unwrap();
        fs::write(site.path("token"), client_token(seed, |_| {})).unwrap();
        assert_eq!(signer(&vault).await, seed);
    }
}

#[actix::test]
async fn a_renewed_certificate_goes_with_the_next_request() {
    let site = Site::new();
    let vault = vault(site.x509());
    let sent = async || match vault.sign_request(b"body".to_vec()).await.unwrap() {
        Proof::V1 { certificate_pem, .. } => certificate_pem,
        other => panic!("{other:?}"),
    };
    let first = sent().await;
    let renewed = certificate("provisioner.mcollective", &RSA[0]);
    site.put("certificate.pem", &renewed);
    assert_ne!(first, renewed);
    assert_eq!(sent().await, renewed);
}
