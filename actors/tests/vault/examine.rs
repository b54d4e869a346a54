//! What the examination says about a site's files.

use quartermaster_actors::vault::{
    ClientTls, Security, Severity, TlsMode, VaultFault, VaultSettings, examine,
};
use quartermaster_proto::time::WallClock;

use crate::site::{
    EXPIRES, ISSUED, MEMBER, ORGANISATION, OTHER_MEMBER, RSA, Site, certificate, certificate_until,
    client_token, public,
};

/// The moment the examination happens at: the certificates made here are valid in it as well.
const TODAY: WallClock = WallClock::from_seconds(1_800_000_000);

use Severity::{Refuse, Warn};

const TOKEN: &str = "plugin.security.choria.token_file";
const SEED: &str = "plugin.security.choria.seed_file";

fn check(settings: &VaultSettings, expected: &[(Severity, &str, &str)]) {
    check_at(settings, TODAY, expected);
}

fn check_at(settings: &VaultSettings, now: WallClock, expected: &[(Severity, &str, &str)]) {
    let faults = examine(settings, now);
    let matches = |(fault, (severity, key, part)): (&VaultFault, &(Severity, &str, &str))| {
        fault.severity == *severity && fault.key == *key && fault.message.contains(part)
    };
    assert!(faults.len() == expected.len() && faults.iter().zip(expected).all(matches), "{faults:#?}");
}

#[test]
fn sound_sites_have_no_faults() {
    let site = Site::new();
    check(&site.plain(), &[]);
    check(&site.x509(), &[]);
    check(&site.issuer(), &[]);
}

#[test]
fn every_fault_is_found_at_once() {
    let site = Site::new();
    site.put("seed", "zz");
    site.put("signer", "zz");
    let mut settings = site.issuer();
    if let Security::Choria { token_file, tls, .. } = &mut settings.security {
        *token_file = site.path("missing");
        tls.ca = Some(site.path("seed"));
    }
    settings.jwt_verify_cert = Some("/nowhere".into());
    settings.jwt_signing_key = Some(site.path("signer"));
    check(
        &settings,
        &[
            (Refuse, TOKEN, "failed to read"),
            (Refuse, SEED, "holds no usable key"),
            (Refuse, "plugin.security.choria.ca", "holds no certificate"),
            (Refuse, "jwt_verify_cert", "neither an existing file"),
            (Refuse, "jwt_signing_key", "holds no usable key"),
        ],
    );
}

#[test]
fn a_signing_token_without_chain_data_is_refused() {
    let site = Site::new();
    site.put("signer.jwt", &client_token(MEMBER, |claims| claims.standard.tcs = None));
    let settings = VaultSettings { jwt_signing_token: Some(site.path("signer.jwt")), ..site.issuer() };
    check(&settings, &[(Refuse, "jwt_signing_token", "no Trust Chain Signature claim in JWT Signing Token")]);
}

#[test]
fn keys_that_do_not_belong_to_their_tokens_are_refused() {
    let site = Site::new();
    site.put("seed", &hex::encode(OTHER_MEMBER));
    check(
        &site.issuer(),
        &[
            (Refuse, SEED, "is not the seed of the token"),
            (Refuse, "jwt_signing_token", "`public_key` is another"),
        ],
    );
    let site = Site::new();
    site.put("key.pem", &RSA[1].serialize_pem());
    check(
        &site.x509(),
        &[
            (Refuse, "plugin.security.file.key", "is not the key of the certificate"),
            (Refuse, "plugin.security.file.certificate", "failed to set up TLS"),
        ],
    );
}

#[test]
fn keys_of_the_wrong_type_are_refused() {
    let site = Site::new();
    site.put("seed", &RSA[0].serialize_pem());
    let settings = VaultSettings { jwt_signing_key: None, jwt_signing_token: None, ..site.issuer() };
    check(&settings, &[(Refuse, SEED, "Ed25519 seed, this is an RSA key")]);
    let settings = VaultSettings { security: Security::Insecure, ..site.issuer() };
    check(&settings, &[(Refuse, "jwt_signing_token", "needs Ed25519 keys")]);
    let site = Site::new();
    site.put("key.pem", &hex::encode(MEMBER));
    check(
        &site.x509(),
        &[
            (Refuse, "plugin.security.file.key", "signed with RSA"),
            (Refuse, "plugin.security.file.key", "no private key in PEM"),
        ],
    );
}

#[test]
fn tokens_outside_of_their_times_are_warned_of() {
    let site = Site::new();
    let mut settings = site.issuer();
    check_at(
        &settings,
        WallClock::from_seconds(EXPIRES + 3 * 86_400),
        &[
            (Warn, TOKEN, "the token expired 3 d ago"),
            (Warn, "jwt_signing_token", "the token expired 3 d ago"),
        ],
    );
    settings.jwt_signing_token = None;
    check_at(&settings, WallClock::from_seconds(ISSUED - 60), &[(Warn, TOKEN, "becomes valid only in 60 s")]);
}

#[test]
fn a_certificate_outside_of_its_times_is_warned_of() {
    let site = Site::new();
    let key = "plugin.security.file.certificate";
    check_at(
        &site.x509(),
        WallClock::from_seconds(1_262_304_000 - 3600),
        &[(Warn, key, "becomes valid only in 60 min")],
    );
    site.put("certificate.pem", &certificate_until("provisioner.mcollective", &RSA[0], 2020));
    check_at(
        &site.x509(),
        WallClock::from_seconds(1_577_836_800 + 7200),
        &[(Warn, key, "the certificate expired 2 h ago")],
    );
}

#[test]
fn private_files_open_to_others_are_warned_of() {
    let site = Site::new();
    for name in ["seed", "token"] {
        site.mode(name, 0o640);
    }
    check(
        &site.issuer(),
        &[
            (Warn, TOKEN, "mode 0640 lets other users at this private file"),
            (Warn, SEED, "mode 0640"),
            (Warn, "jwt_signing_key", "mode 0640"),
            (Warn, "jwt_signing_token", "mode 0640"),
        ],
    );
    site.mode("key.pem", 0o604);
    site.mode("certificate.pem", 0o644);
    check(&site.x509(), &[(Warn, "plugin.security.file.key", "mode 0604")]);
}

#[test]
fn a_login_token_without_the_provisioners_permission_is_warned_of() {
    let site = Site::new();
    site.put("token", &client_token(MEMBER, |claims| claims.permissions.provisioner = false));
    check(&site.issuer(), &[(Warn, TOKEN, "lacks the permission `provisioner`")]);
}

#[test]
fn a_signing_token_without_key_is_warned_of() {
    let site = Site::new();
    let settings = VaultSettings { jwt_signing_key: None, ..site.issuer() };
    check(&settings, &[(Warn, "jwt_signing_token", "no effect without jwt_signing_key")]);
}

#[test]
fn verification_keys_of_every_form_are_examined() {
    let site = Site::new();
    let with = |given: String| VaultSettings { jwt_verify_cert: Some(given), ..site.plain() };
    check(&with(hex::encode(public(ORGANISATION))), &[]);
    check(&with(site.path("certificate.pem").display().to_string()), &[]);
    check(
        &with(site.path("key.pem").display().to_string()),
        &[(Refuse, "jwt_verify_cert", "cannot be used")],
    );
    check(&with("zz".repeat(32)), &[(Refuse, "jwt_verify_cert", "neither an existing file nor")]);
}

#[test]
fn tls_files_that_do_not_go_together_are_refused() {
    let site = Site::new();
    let with = |mode, certificate: Option<&str>, key: Option<&str>, ca: Option<&str>| {
        let [certificate, key, ca] = [certificate, key, ca].map(|name| name.map(|name| site.path(name)));
        let tls = ClientTls { certificate, key, ca };
        let security = Security::Choria { token_file: site.path("token"), seed_file: site.path("seed"), tls };
        VaultSettings { security, tls: mode, ..site.plain() }
    };
    let (certificate_key, ca_key) = ("plugin.security.choria.certificate", "plugin.security.choria.ca");
    check(&with(TlsMode::Insecure, None, None, None), &[]);
    check(&with(TlsMode::Verify, None, None, None), &[(Refuse, ca_key, "the CA to verify the broker with")]);
    check(
        &with(TlsMode::Insecure, Some("certificate.pem"), None, None),
        &[(Refuse, certificate_key, "private key")],
    );
    check(&with(TlsMode::Insecure, Some("certificate.pem"), Some("key.pem"), None), &[]);
    site.put("other.pem", &certificate("provisioner.mcollective", &RSA[1]));
    check(
        &with(TlsMode::Insecure, Some("other.pem"), Some("key.pem"), None),
        &[(Refuse, certificate_key, "failed to set up TLS")],
    );
}

#[test]
fn no_fault_shows_what_a_file_holds() {
    let site = Site::new();
    for name in ["seed", "token", "key.pem", "certificate.pem", "ca.pem"] {
        site.put(name, "c0ffee c0ffee.c0ffee.c0ffee");
    }
    for settings in [site.x509(), site.issuer()] {
        let faults = examine(&settings, TODAY);
        assert!(faults.len() >= 3 && !format!("{faults:?}").contains("c0ffee"), "{faults:#?}");
    }
}
