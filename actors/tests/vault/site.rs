//! A site's key files in a directory of their own, and a vault that uses them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use quartermaster_actors::vault::{
    ClientTls, Outside, Security, TlsMode, VaultHandle, VaultKeeper, VaultSettings,
};
use quartermaster_proto::choria::chain::{issuer_signature, organisation_claim, sign_claims};
use quartermaster_proto::choria::ksuid::Ksuid;
use quartermaster_proto::choria::sign::SigningKey;
use quartermaster_proto::choria::token::{ClientClaims, ClientPermissions, StandardClaims};
use quartermaster_proto::time::WallClock;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256, RsaKeySize,
    date_time_ymd,
};
use tempfile::TempDir;

/// The moment all tokens here are issued at.
pub const ISSUED: i64 = 1_795_976_602;
/// An hour later: every file made by a test looks old to a vault whose clock is far ahead of the file system's.
pub const NOW: WallClock = WallClock::from_seconds(4_000_000_000);
/// When the tokens expire.
pub const EXPIRES: i64 = 4_100_000_000;

pub const ORGANISATION: [u8; 32] = [1; 32];
pub const MEMBER: [u8; 32] = [2; 32];
pub const OTHER_MEMBER: [u8; 32] = [3; 32];

/// Made once: an RSA key takes a while.
pub static RSA: LazyLock<[KeyPair; 2]> = LazyLock::new(|| {
    [(); 2].map(|()| KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap())
});

pub static CA: LazyLock<CertifiedIssuer<'static, KeyPair>> = LazyLock::new(|| {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
});

/// A certificate of the CA for this name and key, PEM.
pub fn certificate(name: &str, key: &KeyPair) -> String {
    certificate_until(name, key, 2050)
}

/// A certificate that is valid from the year 2010 to the beginning of `year`.
pub fn certificate_until(name: &str, key: &KeyPair, year: i32) -> String {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2010, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1);
    params.signed_by(key, &*CA).unwrap().pem()
}

pub fn public(seed: [u8; 32]) -> [u8; 32] {
    SigningKey::from_seed(&seed).ed25519_public().unwrap()
}

/// A client token of the organisation for the holder of this seed.
pub fn client_token(seed: [u8; 32], change: impl FnOnce(&mut ClientClaims)) -> String {
    let organisation = SigningKey::from_seed(&ORGANISATION);
    let (jti, public_key) =
        (Ksuid::new(ISSUED, seed[..16].try_into().unwrap()).to_string(), hex::encode(public(seed)));
    let mut claims = ClientClaims {
        callerid: format!("member={}", seed[0]),
        agents: Vec::new(),
        ou: "choria".into(),
        permissions: ClientPermissions { provisioner: true, ..ClientPermissions::default() },
        pub_subjects: Vec::new(),
        sub_subjects: Vec::new(),
        standard: StandardClaims {
            purpose: "choria_client_id".into(),
            tcs: Some(issuer_signature(&organisation, &jti, &public_key).unwrap()),
            public_key: Some(public_key),
            iss: Some(organisation_claim(&public(ORGANISATION))),
            exp: Some(EXPIRES),
            nbf: Some(ISSUED),
            iat: Some(ISSUED),
            jti: Some(jti),
            ..StandardClaims::default()
        },
    };
    change(&mut claims);
    sign_claims(&claims, &organisation).unwrap()
}

/// A directory with a site's files.
pub struct Site {
    dir: TempDir,
}

impl Site {
    pub fn new() -> Self {
        let site = Self { dir: TempDir::new().unwrap() };
        site.put("seed", &hex::encode(MEMBER));
        site.put("token", &client_token(MEMBER, |_| {}));
        site.put("key.pem", &RSA[0].serialize_pem());
        site.put("certificate.pem", &certificate("provisioner.mcollective", &RSA[0]));
        site.put("ca.pem", &CA.pem());
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a private file by renaming, as careful tools do.
    pub fn put(&self, name: &str, text: &str) {
        let fresh = format!(".{name}.new");
        fs::write(self.path(&fresh), text).unwrap();
        self.mode(&fresh, 0o600);
        fs::rename(self.path(&fresh), self.path(name)).unwrap();
    }

    /// Sets the permission bits of a file.
    pub fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// An unsigned network, which needs no files.
    #[expect(clippy::unused_self, reason = "the three kinds of network are asked for in the same way")]
    pub fn plain(&self) -> VaultSettings {
        VaultSettings::new("provisioner.mcollective")
    }

    /// A network of protocol 1 with certificates.
    pub fn x509(&self) -> VaultSettings {
        let [certificate, key, ca] = ["certificate.pem", "key.pem", "ca.pem"].map(|name| self.path(name));
        let mut settings = self.plain();
        settings.security = Security::File { certificate, key, ca };
        settings.tls = TlsMode::Verify;
        settings
    }

    /// A network of protocol 2 with an issuer, this vault being a chain issuer.
    pub fn issuer(&self) -> VaultSettings {
        let mut settings = self.plain();
        settings.security = Security::Choria {
            token_file: self.path("token"),
            seed_file: self.path("seed"),
            tls: ClientTls::default(),
        };
        settings.tls = TlsMode::Insecure;
        settings.jwt_verify_cert = Some(hex::encode(public(ORGANISATION)));
        settings.jwt_signing_key = Some(self.path("seed"));
        settings.jwt_signing_token = Some(self.path("token"));
        settings
    }
}

/// A clock that stands still and the system's randomness.
pub fn outside() -> Outside {
    Outside::real().with_clock(|| NOW)
}

/// A vault nobody owns.
pub fn vault(settings: VaultSettings) -> VaultHandle {
    VaultKeeper::start_alone(settings, outside())
}

/// An error with its sources as one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
