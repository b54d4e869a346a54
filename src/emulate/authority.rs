//! The certificate authority of an emulated x509 network, and the signing of servers' requests as a site's helper does it.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// No key.
    #[error("could not make or read a key of the emulated authority")]
    Key(#[source] rcgen::Error),
    /// No certificate.
    #[error("could not make a certificate of the emulated authority")]
    Certificate(#[source] rcgen::Error),
    /// The request cannot be read.
    #[error("could not read the certificate request")]
    Request(#[source] rcgen::Error),
}

/// A certificate and its key, both in PEM.
#[derive(Clone)]
pub struct Authority {
    /// The certificate.
    pub certificate: String,
    /// The key, PKCS#8.
    pub key: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// A new authority, and who has a certificate of it.
pub(super) struct Established {
    pub(super) authority: Authority,
    /// For localhost and 127.0.0.1.
    pub(super) broker: Authority,
    /// With an RSA key: it signs the requests of protocol 1.
    pub(super) provisioner: Authority,
}

/// Makes an authority and the certificates of a broker and a provisioner.
pub(super) fn establish() -> Result<Established, AuthorityError> {
    let key = KeyPair::generate().map_err(AuthorityError::Key)?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Emulated CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let own = params.self_signed(&key).map_err(AuthorityError::Certificate)?;
    let authority = Authority { certificate: own.pem(), key: key.serialize_pem() };
    let issuer = Issuer::new(params, key);
    let broker =
        issue(&issuer, &["localhost", "127.0.0.1"], &KeyPair::generate().map_err(AuthorityError::Key)?)?;
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).map_err(AuthorityError::Key)?;
    let provisioner = issue(&issuer, &["provisioner.mcollective"], &rsa)?;
    Ok(Established { authority, broker, provisioner })
}

/// A certificate for client and server; the first name is its common name.
fn issue(issuer: &Issuer<'_, KeyPair>, names: &[&str], key: &KeyPair) -> Result<Authority, AuthorityError> {
    let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(all).map_err(AuthorityError::Certificate)?;
    params.distinguished_name.push(DnType::CommonName, names.first().copied().unwrap_or_default());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(key, issuer).map_err(AuthorityError::Certificate)?;
    Ok(Authority { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Signs a server's request, PEM in and PEM out.
pub fn sign(authority: &Authority, request: &str) -> Result<String, AuthorityError> {
    let key = KeyPair::from_pem(&authority.key).map_err(AuthorityError::Key)?;
    let issuer =
        Issuer::from_ca_cert_pem(&authority.certificate, key).map_err(AuthorityError::Certificate)?;
    let request = CertificateSigningRequestParams::from_pem(request).map_err(AuthorityError::Request)?;
    request.signed_by(&issuer).map(|signed| signed.pem()).map_err(AuthorityError::Certificate)
}
