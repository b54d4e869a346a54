//! The TLS client configuration of a connect, read anew from its files.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::files;
use super::{ClientTls, VaultError};

/// TLS 1.2 or newer; a client certificate when one is configured; the server verified with the CA, or not at all.
pub(super) fn client_config(tls: &ClientTls, verify: bool) -> Result<Arc<ClientConfig>, VaultError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(VaultError::Tls)?;
    let builder = if verify {
        let ca = tls
            .ca
            .as_deref()
            .ok_or(VaultError::NotConfigured { what: "the CA to verify the broker with" })?;
        builder.with_root_certificates(roots(ca)?)
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified::new(provider)))
    };
    match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(chain("client certificate", certificate)?, private_key(key)?)
            .map(Arc::new)
            .map_err(VaultError::Tls),
        (None, None) => Ok(Arc::new(builder.with_no_client_auth())),
        (Some(_), None) => {
            Err(VaultError::NotConfigured { what: "the private key of the client certificate" })
        }
        (None, Some(_)) => {
            Err(VaultError::NotConfigured { what: "the client certificate of the private key" })
        }
    }
}

/// The CA certificates of a file.
pub(super) fn roots(path: &Path) -> Result<RootCertStore, VaultError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain("CA", path)? {
        roots.add(certificate).map_err(VaultError::Tls)?;
    }
    Ok(roots)
}

/// The certificates of a file, at least one.
pub(super) fn chain(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, VaultError> {
    let (_, text) = files::read(what, path)?;
    let unusable = |why| VaultError::TlsFile { what, path: path.to_owned(), why };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|_| unusable("a PEM block is broken"))?;
    if found.is_empty() { Err(unusable("it holds no certificate")) } else { Ok(found) }
}

/// The private key of a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, VaultError> {
    let what = "private key";
    let (_, text) = files::read(what, path)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| VaultError::TlsFile {
        what,
        path: path.to_owned(),
        why: "it holds no private key in PEM",
    })
}

/// Takes any server certificate, as the peer does without a CA. The handshake's signature still has to be right.
#[derive(Debug)]
pub struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl Unverified {
    /// Checks the handshake's signature with this provider.
    pub const fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider }
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
