//! Whether a certificate fits the server it was made for.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What does not fit, as sentences: first what will surely not work, then what may not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// The server could not use it.
    pub errors: Vec<String>,
    /// It looks wrong.
    pub warnings: Vec<String>,
}

/// Compares `certificate` with the CA's certificates `ca`, with the request `csr` if there was one, and with the time `now` in Unix
/// seconds. All are PEM.
pub fn examine(certificate: &str, ca: &str, csr: Option<&str>, identity: &str, now: i64) -> Misfits {
    let mut misfits = Misfits::default();
    let blocks = blocks(certificate, "CERTIFICATE");
    let Some(leaf) = blocks.first().and_then(|der| X509Certificate::from_der(der).ok()).map(|(_, leaf)| leaf)
    else {
        misfits.errors.push("`certificate` is not a PEM certificate".to_owned());
        return misfits;
    };
    if let Some(csr) = csr {
        check_key(&leaf, csr, &mut misfits);
    }
    let validity = leaf.validity();
    if validity.not_after.timestamp() <= now || validity.not_before.timestamp() > now {
        misfits
            .errors
            .push(format!("`certificate` is valid from {} to {}", validity.not_before, validity.not_after));
    }
    let named = leaf.subject().iter_common_name().any(|cn| cn.as_str() == Ok(identity));
    if !named {
        misfits.warnings.push(format!("`certificate` is for {}, not for {identity}", leaf.subject()));
    }
    check_issuer(&leaf, &blocks, ca, &mut misfits);
    misfits
}

fn check_key(leaf: &X509Certificate<'_>, csr: &str, misfits: &mut Misfits) {
    let requests = blocks(csr, "CERTIFICATE REQUEST");
    let request = requests.first().and_then(|der| X509CertificationRequest::from_der(der).ok());
    let Some((_, request)) = request else { return };
    if request.certification_request_info.subject_pki.raw != leaf.public_key().raw {
        misfits.errors.push("`certificate` is for another key than the certificate request".to_owned());
    }
}

fn check_issuer(leaf: &X509Certificate<'_>, chain: &[Vec<u8>], ca: &str, misfits: &mut Misfits) {
    let authorities = blocks(ca, "CERTIFICATE");
    if authorities.is_empty() {
        misfits
            .errors
            .push("`ca` holds no PEM certificate, so the server cannot trust its broker".to_owned());
        return;
    }
    let issued = authorities.iter().chain(chain).filter_map(|der| X509Certificate::from_der(der).ok()).any(
        |(_, issuer)| {
            issuer.subject() == leaf.issuer() && leaf.verify_signature(Some(issuer.public_key())).is_ok()
        },
    );
    if !issued {
        misfits.warnings.push("`certificate` was signed by none of the certificates in `ca`".to_owned());
    }
}

/// The contents of the PEM blocks with this label.
fn blocks(text: &str, label: &str) -> Vec<Vec<u8>> {
    Pem::iter_from_buffer(text.as_bytes())
        .map_while(Result::ok)
        .filter(|block| block.label == label)
        .map(|block| block.contents)
        .collect()
}
