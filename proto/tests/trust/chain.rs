//! Chains of trust and the server tokens issued with them.

use std::collections::BTreeMap;

use quartermaster_proto::choria::Identity;
use quartermaster_proto::choria::chain::{
    ChainError, ChainIssuer, ISSUER_TEXT, IssueError, IssueWarning, IssuedServerToken, NOT_BEFORE_SLACK,
    ServerTokenOrder, TokenIssuer, issue_server_token, issuer_signature, organisation_claim, sign_claims,
    verify_chain,
};
use quartermaster_proto::choria::ksuid::Ksuid;
use quartermaster_proto::choria::sign::SigningKey;
use quartermaster_proto::choria::token::{
    ClientClaims, ServerClaims, StandardClaims, TokenError, VerifyKey, parse_client, parse_server,
    verify_server,
};
use quartermaster_proto::helper::{PermissionsOrder, ServerClaimsOrder};
use quartermaster_proto::time::WallClock;
use secrecy::ExposeSecret as _;
use svix_ksuid::KsuidLike as _;

use crate::recorded::{self, RECORDED, claims_text};

const YEAR: i64 = 365 * 86_400;
const IAT: i64 = 1_795_976_612;
const S_JTI: &str = "3MnBcsnkMXr5FGJPPMwYBbUuoUH";
const T_JTI: &str = "3MnBmmqHGsaE9nEMAk7bYC1BGSZ";
const S_TCS: &str = "cc4a2409a6af1ed72bef0d37931de57c844334d5f429b82c5bc3138293133ab9a7b17b761d5b285d663d399801a234dbd1983d191be3f2909cd5e43b239e0706";
const T_PART: &str = "3600c4f554f00cacd4e0ce1aad1e4b4206e145138cc349a909952deb8fd756de9e3bf507994ceafca2d2139c665f048c8c8f856d0add80e6adedabebf525e202";

fn organisation() -> SigningKey {
    SigningKey::from_text("1f5bcd09026ef84134d0963c17d6df388366a8767b418c209168dc8bb579f82b").unwrap()
}

fn signer() -> SigningKey {
    SigningKey::from_text("8e7099f92288dfe8ac899dba887eaeca9fa33cf8a794fd73e76696670c63ea38").unwrap()
}

fn public(key: &SigningKey) -> [u8; 32] {
    key.ed25519_public().unwrap()
}

fn random_part() -> [u8; 16] {
    hex::decode("46ab47802b6586f0956d1f06e9cec763").unwrap().try_into().unwrap()
}

fn signing_token(exp: Option<i64>) -> ClientClaims {
    let public_key = hex::encode(public(&signer()));
    let jti = S_JTI.to_owned();
    ClientClaims {
        callerid: "provisioner_signer".into(),
        agents: Vec::new(),
        ou: "choria".into(),
        permissions: quartermaster_proto::choria::token::ClientPermissions {
            provisioner: true,
            ..Default::default()
        },
        pub_subjects: Vec::new(),
        sub_subjects: Vec::new(),
        standard: StandardClaims {
            purpose: "choria_client_id".into(),
            tcs: Some(issuer_signature(&organisation(), &jti, &public_key).unwrap()),
            public_key: Some(public_key),
            iss: Some(organisation_claim(&public(&organisation()))),
            jti: Some(jti),
            exp,
            ..StandardClaims::default()
        },
    }
}

fn identity() -> Identity {
    Identity::parse("web1.example.net").unwrap()
}

fn order() -> ServerTokenOrder {
    ServerTokenOrder::new(&identity(), [0xab; 32], None, &BTreeMap::new())
}

fn chained() -> TokenIssuer {
    TokenIssuer::new(signer(), Some(&signing_token(Some(IAT + 10 * YEAR)))).unwrap()
}

fn plain() -> TokenIssuer {
    TokenIssuer::new(signer(), None).unwrap()
}

fn issue(order: &ServerTokenOrder, issuer: &TokenIssuer) -> IssuedServerToken {
    issue_server_token(order, issuer, YEAR, WallClock::from_seconds(IAT), random_part()).unwrap()
}

#[test]
fn the_published_chain_comes_out_byte_for_byte() {
    let s = signing_token(Some(IAT + YEAR));
    assert_eq!(s.standard.tcs.as_deref(), Some(S_TCS));
    assert_eq!(
        s.standard.iss.as_deref(),
        Some("I-1454a451cdefe5937da64a79faffa6e54f3c083ae78f72bb7f39a7aa37975c8b")
    );
    let t = issue(&order(), &chained()).claims.standard;
    assert_eq!(t.jti.as_deref(), Some(T_JTI));
    assert_eq!(
        t.iss.as_deref(),
        Some(
            "C-3MnBcsnkMXr5FGJPPMwYBbUuoUH.3899a8bb4b6e6e09c91c27f28f086f0b40f1d3091a8c83c07320bc6cfdf67730"
        )
    );
    assert_eq!(t.tcs, Some(format!("{S_TCS}.{T_PART}")));
    assert_eq!(t.issexp, Some(IAT + 10 * YEAR));
}

/// The peer's own server token, rebuilt from what it says and the signing key: every byte but the not-before time, which we
/// set a little earlier, so it is put back.
#[test]
fn the_recorded_server_token_is_rebuilt_to_the_identical_bytes() {
    let (configure, _) = recorded::call("v2.jsonl", "configure");
    let theirs = configure["server_jwt"].as_str().unwrap();
    let said = parse_server(theirs).unwrap();
    assert_eq!(
        serde_json::to_string(&said).unwrap(),
        claims_text(theirs),
        "claims are emitted in the peer's order"
    );

    let key = SigningKey::from_text(&recorded::file("v2.signer.seed")).unwrap();
    let token = parse_client(&recorded::file("v2.signer.jwt")).unwrap();
    let issuer = TokenIssuer::new(key, Some(&token)).unwrap();
    let id = svix_ksuid::Ksuid::from_base62(said.standard.jti.as_deref().unwrap()).unwrap();
    let order = ServerTokenOrder {
        identity: said.identity.clone(),
        public_key: said.standard.public_key.clone().unwrap(),
        collectives: said.collectives.clone(),
        ou: said.ou.clone(),
        permissions: said.permissions,
        pub_subjects: said.pub_subjects.clone(),
        exp: None,
    };
    let now = WallClock::from_seconds(said.standard.iat.unwrap());
    let ours = issue_server_token(&order, &issuer, YEAR, now, id.payload().try_into().unwrap()).unwrap();
    let mut claims = ours.claims;
    claims.standard.nbf = said.standard.nbf;
    assert_eq!(claims, said);
    let key = SigningKey::from_text(&recorded::file("v2.signer.seed")).unwrap();
    assert_eq!(sign_claims(&claims, &key).unwrap(), theirs);

    let organisation = VerifyKey::from_text(&recorded::file("v2.issuer.public")).unwrap();
    assert_eq!(verify_server(theirs, &organisation, RECORDED).unwrap(), said);
}

#[test]
fn an_issued_token_verifies_up_to_the_organisation() {
    let issued = issue(&order(), &chained());
    let jwt = issued.jwt.expose_secret();
    let key = VerifyKey::Ed25519(public(&organisation()));
    assert_eq!(verify_server(jwt, &key, WallClock::from_seconds(IAT)).unwrap(), issued.claims);
    assert!(jwt.starts_with("eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9."), "header alg EdDSA, typ JWT");
    let another = VerifyKey::Ed25519(public(&signer()));
    assert!(matches!(
        verify_server(jwt, &another, WallClock::from_seconds(IAT)),
        Err(TokenError::Chain(ChainError::IssuerSignature))
    ));
}

#[test]
fn without_a_signing_token_the_key_itself_is_the_issuer() {
    let issued = issue(&order(), &plain());
    assert_eq!(issued.claims.standard.iss.as_deref(), Some(ISSUER_TEXT));
    assert_eq!((issued.claims.standard.tcs, issued.claims.standard.issexp), (None, None));
    let key = VerifyKey::Ed25519(public(&signer()));
    assert!(verify_server(issued.jwt.expose_secret(), &key, WallClock::from_seconds(IAT)).is_ok());
}

#[test]
fn an_rsa_key_signs_rs256() {
    let text = recorded::file("v1-x509-key.plaintext-key.pem");
    let key = SigningKey::from_text(&text).unwrap();
    let verify = VerifyKey::Rsa { der: key.rsa_public_der().unwrap().to_vec() };
    let issued = issue(&order(), &TokenIssuer::new(key, None).unwrap());
    assert!(issued.jwt.expose_secret().starts_with("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9."));
    assert!(verify_server(issued.jwt.expose_secret(), &verify, WallClock::from_seconds(IAT)).is_ok());
    let no_chain =
        TokenIssuer::new(SigningKey::from_text(&text).unwrap(), Some(&signing_token(Some(IAT + YEAR))));
    assert_eq!(no_chain.unwrap_err(), ChainError::NotEd25519);
}

#[test]
fn a_signing_token_must_be_able_to_issue() {
    let check = |change: fn(&mut StandardClaims), expected: ChainError| {
        let mut token = signing_token(Some(IAT + YEAR));
        change(&mut token.standard);
        assert_eq!(TokenIssuer::new(signer(), Some(&token)).unwrap_err(), expected);
    };
    check(|s| s.tcs = None, ChainError::NoTrustChainSignature);
    check(|s| s.jti = None, ChainError::Missing { claim: "jti" });
    check(|s| s.public_key = None, ChainError::Missing { claim: "public_key" });
    check(|s| s.exp = None, ChainError::Missing { claim: "exp" });
    check(|s| s.public_key = Some("ab".repeat(32)), ChainError::ForeignKey);
    assert_eq!(
        ChainError::NoTrustChainSignature.to_string(),
        "no Trust Chain Signature claim in JWT Signing Token"
    );
}

// The order's defaults.

fn configuration(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn collectives(pairs: &[(&str, &str)], helper: &[&str]) -> Vec<String> {
    let collectives = helper.iter().map(|&c| c.to_owned()).collect();
    let claims = ServerClaimsOrder { collectives, ..ServerClaimsOrder::default() };
    ServerTokenOrder::new(&identity(), [1; 32], Some(&claims), &configuration(pairs)).collectives
}

#[test]
fn collectives_fall_back_from_claims_to_configuration_to_the_providers_default() {
    let choria = ("plugin.security.provider", "choria");
    assert_eq!(collectives(&[("collectives", "a,b"), choria], &["x", "y"]), ["x", "y"]);
    assert_eq!(collectives(&[("collectives", "a, b"), choria], &[]), ["a", " b"], "not trimmed, as the peer");
    assert_eq!(collectives(&[choria], &[]), ["choria"]);
    assert_eq!(collectives(&[("plugin.security.provider", "file")], &[]), ["mcollective"]);
    assert_eq!(collectives(&[("collectives", "")], &[]), ["mcollective"]);
}

#[test]
fn the_helpers_claims_are_in_the_token() {
    let claims = ServerClaimsOrder {
        ou: Some("acme".into()),
        permissions: Some(PermissionsOrder { streams: true, ..PermissionsOrder::default() }),
        pub_subjects: vec!["site.>".into()],
        exp: None,
        collectives: Vec::new(),
    };
    let order = ServerTokenOrder::new(&identity(), [0xab; 32], Some(&claims), &BTreeMap::new());
    let text = claims_text(issue(&order, &plain()).jwt.expose_secret());
    assert_eq!(
        text,
        format!(
            r#"{{"identity":"web1.example.net","collectives":["mcollective"],"permissions":{{"streams":true}},"ou":"acme","pub_subjects":["site.>"],"purpose":"choria_server","public_key":"{}","iss":"Choria Provisioner","exp":{},"nbf":{},"iat":{IAT},"jti":"{T_JTI}"}}"#,
            "ab".repeat(32),
            IAT + YEAR,
            IAT - NOT_BEFORE_SLACK
        )
    );
    let plain_order = ServerTokenOrder { ou: String::new(), ..self::order() };
    assert_eq!(issue(&plain_order, &plain()).claims.ou, "choria");
}

#[test]
fn an_empty_field_is_no_order() {
    let check = |order: ServerTokenOrder| {
        let error = issue_server_token(&order, &plain(), YEAR, RECORDED, [0; 16]).unwrap_err();
        assert!(matches!(error, IssueError::Empty { .. }));
    };
    check(ServerTokenOrder { identity: String::new(), ..order() });
    check(ServerTokenOrder { public_key: String::new(), ..order() });
    check(ServerTokenOrder { collectives: Vec::new(), ..order() });
}

// Expiry.

fn expiry(exp: Option<i64>, signer_exp: i64) -> (i64, Option<IssueWarning>) {
    let issuer = TokenIssuer::new(signer(), Some(&signing_token(Some(signer_exp)))).unwrap();
    let token = issue(&ServerTokenOrder { exp, ..order() }, &issuer);
    (token.claims.standard.exp.unwrap(), token.warning)
}

#[test]
fn the_helpers_expiry_is_an_absolute_moment_more_than_an_hour_away() {
    let far = IAT + 10 * YEAR;
    assert_eq!(expiry(None, far), (IAT + YEAR, None));
    assert_eq!(expiry(Some(IAT + 3601), far), (IAT + 3601, None));
    let short = |exp: i64| {
        Some(IssueWarning::ValidityTooShort { exp, validity: exp.saturating_sub(IAT), used: YEAR })
    };
    assert_eq!(expiry(Some(IAT + 3600), far), (IAT + YEAR, short(IAT + 3600)));
    assert_eq!(expiry(Some(157_680_000), far), (IAT + YEAR, short(157_680_000)), "a lifetime is no moment");
    assert_eq!(expiry(Some(i64::MIN), far), (IAT + YEAR, short(i64::MIN)));
    assert_eq!(expiry(Some(i64::MAX), far), (far, None));
}

#[test]
fn no_token_outlives_its_issuers() {
    assert_eq!(expiry(None, IAT + 7200).0, IAT + 7200);
    assert_eq!(expiry(Some(IAT + 9000), IAT + 7200).0, IAT + 7200);
    let expired = TokenIssuer::new(signer(), Some(&signing_token(Some(IAT)))).unwrap();
    let error =
        issue_server_token(&order(), &expired, YEAR, WallClock::from_seconds(IAT), [0; 16]).unwrap_err();
    assert!(matches!(error, IssueError::Chain(ChainError::IssuerExpired { .. })), "{error}");
}

#[test]
fn the_id_carries_the_second_of_issue() {
    let claims = issue(&order(), &plain()).claims.standard;
    let id: Ksuid = claims.jti.unwrap().parse().unwrap();
    assert_eq!(Some(id.seconds()), claims.iat);
}

// Verification.

fn broken(change: impl FnOnce(&mut ServerClaims)) -> ChainError {
    let mut claims = issue(&order(), &chained()).claims;
    change(&mut claims);
    verify_chain(&claims.standard, &public(&organisation()), WallClock::from_seconds(IAT)).unwrap_err()
}

#[test]
fn a_sound_chain_gives_the_issuers_key() {
    let claims = issue(&order(), &chained()).claims;
    let key = verify_chain(&claims.standard, &public(&organisation()), WallClock::from_seconds(IAT));
    assert_eq!(key, Ok(public(&signer())));
}

#[test]
fn a_chain_with_a_claim_missing_is_refused() {
    assert_eq!(broken(|c| c.standard.iss = None), ChainError::Missing { claim: "iss" });
    assert_eq!(broken(|c| c.standard.tcs = Some(String::new())), ChainError::Missing { claim: "tcs" });
    assert_eq!(broken(|c| c.standard.jti = None), ChainError::Missing { claim: "jti" });
    assert_eq!(broken(|c| c.standard.public_key = None), ChainError::Missing { claim: "public_key" });
    assert_eq!(broken(|c| c.standard.iat = None), ChainError::Missing { claim: "iat" });
    assert_eq!(broken(|c| c.standard.exp = None), ChainError::Missing { claim: "exp" });
    assert_eq!(broken(|c| c.standard.issexp = None), ChainError::Missing { claim: "issexp" });
}

#[test]
fn an_id_of_another_second_is_refused() {
    assert_eq!(broken(|c| c.standard.iat = Some(IAT + 1)), ChainError::IdNotFromIssuedTime);
    assert_eq!(broken(|c| c.standard.iat = Some(IAT - 1)), ChainError::IdNotFromIssuedTime);
    assert_eq!(broken(|c| c.standard.jti = Some("not a ksuid".into())), ChainError::Form { claim: "jti" });
}

#[test]
fn issuer_and_signatures_need_exactly_two_parts() {
    for iss in ["C-", "C-a", "C-.b", "C-a.", "C-a.b.c"] {
        assert_eq!(broken(|c| c.standard.iss = Some(iss.into())), ChainError::Form { claim: "iss" }, "{iss}");
    }
    assert_eq!(
        broken(|c| c.standard.iss = Some("C-a.b".into())),
        ChainError::Form { claim: "iss" },
        "key of one digit"
    );
    assert_eq!(broken(|c| c.standard.iss = Some("I-a.b".into())), ChainError::NotChained);
    let half = S_TCS.to_owned();
    for tcs in [
        half.clone(),
        format!("{half}."),
        format!(".{half}"),
        format!("{half}.{half}.{half}"),
        "aa.bb".into(),
    ] {
        assert_eq!(broken(|c| c.standard.tcs = Some(tcs)), ChainError::Form { claim: "tcs" });
    }
}

#[test]
fn each_link_must_be_signed_by_the_one_before() {
    let swapped = format!("{T_PART}.{S_TCS}");
    assert_eq!(broken(|c| c.standard.tcs = Some(swapped)), ChainError::IssuerSignature);
    assert_eq!(broken(|c| c.standard.tcs = Some(format!("{S_TCS}.{S_TCS}"))), ChainError::TokenSignature);
    let other = format!("C-{S_JTI}.{}", hex::encode(public(&organisation())));
    assert_eq!(broken(|c| c.standard.iss = Some(other)), ChainError::IssuerSignature);
    let jti = Ksuid::new(IAT, [1; 16]).to_string();
    assert_eq!(broken(|c| c.standard.jti = Some(jti)), ChainError::TokenSignature);
}

#[test]
fn a_chain_ends_with_the_earlier_of_token_and_issuer() {
    let expired = ChainError::IssuerExpired { at: IAT, now: IAT };
    assert_eq!(broken(|c| c.standard.exp = Some(IAT)), expired);
    assert_eq!(broken(|c| c.standard.issexp = Some(IAT)), expired);
}

#[test]
fn a_chained_token_signed_by_another_key_is_refused() {
    let issued = issue(&order(), &chained());
    let forged = sign_claims(&issued.claims, &organisation()).unwrap();
    let key = VerifyKey::Ed25519(public(&organisation()));
    assert!(matches!(verify_server(&forged, &key, WallClock::from_seconds(IAT)), Err(TokenError::Signature)));
}

#[test]
fn chain_data_without_a_chain_issuer_is_refused() {
    let mut claims = issue(&order(), &chained()).claims;
    claims.standard.iss = Some(ISSUER_TEXT.into());
    let jwt = sign_claims(&claims, &organisation()).unwrap();
    let key = VerifyKey::Ed25519(public(&organisation()));
    let error = verify_server(&jwt, &key, WallClock::from_seconds(IAT)).unwrap_err();
    assert!(matches!(error, TokenError::Chain(ChainError::NotChained)), "{error}");
}

#[test]
fn the_chain_issuer_signs_only_with_its_own_key() {
    let issuer = ChainIssuer::from_client(&signing_token(Some(IAT))).unwrap();
    assert_eq!(issuer.trust_signature(&organisation(), T_JTI), Err(ChainError::ForeignKey));
}
