//! Certificate requests of emulated servers (choria.md 9.3), honest ones and hostile ones.

use std::sync::{Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize, SanType,
};

use super::malformation::Malformation;

/// A name that no server may carry.
const PRIVILEGED: &str = "ops.privileged.choria";

/// What the provisioner asks a request for.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Common name.
    pub cn: String,
    /// Country.
    pub c: String,
    /// Organisation.
    pub o: String,
    /// Organisational unit.
    pub ou: String,
    /// Locality.
    pub l: String,
}

/// A request with its public key, both as the node answers them.
#[derive(Debug, Clone)]
pub struct Request {
    /// PKCS#10 in PEM.
    pub csr: String,
    /// PEM labelled `PUBLIC KEY` around a PKCS#1 key, as real servers answer.
    pub public_key: String,
    /// The private key as PKCS#8 in DER: what the node keeps.
    pub private_key: Vec<u8>,
}

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub enum CsrError {
    /// No RSA key.
    #[error("could not generate an RSA key")]
    Key(#[source] rcgen::Error),
    /// The request could not be built.
    #[error("could not build the certificate request")]
    Build(#[source] rcgen::Error),
}

/// RSA keys shared by a fleet: a key costs a tenth of a second, and a load test asks for thousands.
#[derive(Debug)]
pub struct KeyPool {
    size: usize,
    keys: Mutex<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    ready: Vec<Vec<u8>>,
    next: usize,
}

impl KeyPool {
    /// A pool that generates up to `size` keys (at least one) when they are first needed, then hands them out in turn.
    pub fn new(size: usize) -> Self {
        Self { size: size.max(1), keys: Mutex::default() }
    }

    fn key(&self) -> Result<Vec<u8>, CsrError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.ready.len() < self.size {
            let key =
                KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).map_err(CsrError::Key)?;
            keys.ready.push(key.serialize_der());
            return Ok(keys.ready.last().cloned().unwrap_or_default());
        }
        let position = keys.next % keys.ready.len().max(1);
        keys.next = keys.next.wrapping_add(1);
        Ok(keys.ready.get(position).cloned().unwrap_or_default())
    }

    /// A request for `subject`, distorted when `hostile` is about requests.
    pub fn request(&self, subject: &Subject, hostile: Option<Malformation>) -> Result<Request, CsrError> {
        let der = self.key()?;
        let pkcs8 = rustls::pki_types::PrivatePkcs8KeyDer::from(der.as_slice());
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_RSA_SHA256).map_err(CsrError::Key)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name(subject, hostile);
        if let Some(kind) = hostile {
            demand(&mut params, kind)?;
        }
        let built = params.serialize_request(&key).map_err(CsrError::Build)?;
        let mut der = built.der().to_vec();
        if hostile == Some(Malformation::CsrBadProof) {
            // The signature is the last field of the request.
            if let Some(byte) = der.last_mut() {
                *byte ^= 1;
            }
        }
        let csr = match hostile {
            Some(Malformation::NonPemCsr) => "no certificate request at all\n".to_owned(),
            Some(Malformation::CsrGarbage) => {
                armour("CERTIFICATE REQUEST", &[0x30, 0x82, 0xff, 0xff, 1, 2, 3])
            }
            _ => armour("CERTIFICATE REQUEST", &der),
        };
        let public_key = armour("PUBLIC KEY", key.public_key_raw());
        Ok(Request { csr, public_key, private_key: key.serialize_der() })
    }
}

/// What a hostile server wants beside its common name.
fn demand(params: &mut CertificateParams, kind: Malformation) -> Result<(), CsrError> {
    let text = |text: &str| text.to_owned().try_into().map_err(CsrError::Build);
    let alternative = match kind {
        Malformation::CsrPrivilegedName => SanType::DnsName(text(PRIVILEGED)?),
        Malformation::CsrPrivilegedUpper => SanType::DnsName(text(&PRIVILEGED.to_uppercase())?),
        Malformation::CsrPrivilegedDot => SanType::DnsName(text(&format!("{PRIVILEGED}."))?),
        Malformation::CsrPrivilegedNul => SanType::DnsName(text(&format!("{PRIVILEGED}\0.example.net"))?),
        Malformation::CsrPrivilegedEmail => SanType::Rfc822Name(text(&format!("root@{PRIVILEGED}"))?),
        Malformation::CsrPrivilegedUri => SanType::URI(text(&format!("https://{PRIVILEGED}:443/x"))?),
        Malformation::CsrPrivilegedOther => {
            SanType::OtherName((vec![1, 3, 6, 1, 4, 1, 311, 20, 2, 3], PRIVILEGED.into()))
        }
        Malformation::CsrPrivilegedDirectory => {
            let name =
                extension(&[2, 5, 29, 17], der(0x30, &der(0xa4, &der(0x30, &common_name(PRIVILEGED)))));
            params.custom_extensions.push(name);
            return Ok(());
        }
        Malformation::CsrUnknownCritical => {
            let mut unknown = extension(&[1, 3, 6, 1, 4, 1, 99_999, 1], der(0x05, &[]));
            unknown.set_criticality(true);
            params.custom_extensions.push(unknown);
            return Ok(());
        }
        Malformation::CsrCa => {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            return Ok(());
        }
        Malformation::CsrCertSign => {
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
            return Ok(());
        }
        _ => return Ok(()),
    };
    params.subject_alt_names = vec![alternative];
    Ok(())
}

fn extension(number: &[u64], content: Vec<u8>) -> CustomExtension {
    CustomExtension::from_oid_content(number, content)
}

/// A set of one common name: the only RDN of a directory name.
fn common_name(name: &str) -> Vec<u8> {
    let number = der(0x06, &[0x55, 0x04, 0x03]);
    der(0x31, &der(0x30, &[number, der(0x0c, name.as_bytes())].concat()))
}

/// One value in DER; everything here is shorter than 128 bytes.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag, u8::try_from(content.len()).unwrap_or(0x7f)];
    bytes.extend_from_slice(content);
    bytes
}

/// RDNs in the order of real servers: C, O, OU, L, CN.
fn distinguished_name(subject: &Subject, hostile: Option<Malformation>) -> DistinguishedName {
    let cn =
        if hostile == Some(Malformation::CsrWrongName) { "somebody.else.example.net" } else { &subject.cn };
    let fields = [
        (DnType::CountryName, subject.c.as_str()),
        (DnType::OrganizationName, &subject.o),
        (DnType::OrganizationalUnitName, &subject.ou),
        (DnType::LocalityName, &subject.l),
        (DnType::CommonName, cn),
    ];
    let mut name = DistinguishedName::new();
    for (kind, text) in fields {
        if text.is_empty() {
            continue;
        }
        let value = match text.to_owned().try_into() {
            Ok(printable) => DnValue::PrintableString(printable),
            Err(_) => DnValue::Utf8String(text.to_owned()),
        };
        name.push(kind, value);
    }
    name
}

fn armour(label: &str, der: &[u8]) -> String {
    pem::encode_config(
        &pem::Pem::new(label, der),
        pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
    )
}
