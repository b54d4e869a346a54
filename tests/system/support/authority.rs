//! A certificate authority for one test.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};

/// A certificate and its key, both PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The key, PKCS#8.
    pub key: String,
}

/// A fresh authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// A new one with a key of its own.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The authority's own certificate, PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a broker on this machine.
    pub fn server(&self) -> Issued {
        self.issue("localhost", &["localhost", "127.0.0.1"], ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a client of this name.
    pub fn client(&self, name: &str) -> Issued {
        self.issue(name, &[name], ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// As [`Authority::client`], with an RSA key, as Choria's certificates have.
    pub fn client_rsa(&self, name: &str) -> Issued {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        self.issue_for(&key, name, &[name], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, name: &str, alternatives: &[&str], purpose: ExtendedKeyUsagePurpose) -> Issued {
        self.issue_for(&KeyPair::generate().unwrap(), name, alternatives, purpose)
    }

    fn issue_for(
        &self,
        key: &KeyPair,
        name: &str,
        alternatives: &[&str],
        purpose: ExtendedKeyUsagePurpose,
    ) -> Issued {
        let names: Vec<String> = alternatives.iter().map(|&text| text.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}
