//! What our own certificates say about themselves.

use x509_parser::prelude::{FromDer as _, X509Certificate};

/// From when and until when a DER certificate is valid, Unix seconds; none when it cannot be read.
pub fn validity(der: &[u8]) -> Option<(i64, i64)> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_read_from_the_certificate() {
        let pem = include_bytes!("../../tests/vectors/v1-x509.provisioner.pem");
        let (_, block) = x509_parser::pem::parse_x509_pem(pem).unwrap();
        assert_eq!(validity(&block.contents), Some((1_795_976_657, 1_798_568_657)));
        assert_eq!(validity(b"no certificate"), None);
    }
}
