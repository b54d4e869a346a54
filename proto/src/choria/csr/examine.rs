//! Reading a request.

use x509_parser::asn1_rs::{Any, FromDer as _};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::{ParsedCriAttribute, X509CriAttribute};
use x509_parser::extensions::{ParsedExtension, X509Extension};
use x509_parser::pem::parse_x509_pem;

use super::names::{alternative_names, subject_names};
use super::{CsrError, CsrName, MAX_CSR, NameKind};

/// Extension requests under Microsoft's number, which OpenSSL honours as well.
const MICROSOFT_EXTENSION_REQUEST: &str = "1.3.6.1.4.1.311.2.1.14";

/// One extension a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedExtension {
    /// Its number, dotted.
    pub oid: String,
    /// Whether it is marked critical.
    pub critical: bool,
    /// Whether it is one this reader understands.
    pub known: bool,
}

/// Everything a request says, its signature verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsrFacts {
    /// The common names, in order; there should be one.
    pub common_names: Vec<String>,
    /// Every name of every kind, the common names included.
    pub names: Vec<CsrName>,
    /// The extensions asked for.
    pub extensions: Vec<RequestedExtension>,
    /// Set when it asks for the rights of a CA: which extension says so.
    pub authority: Option<&'static str>,
}

/// Reads a request from its PEM text and verifies that it is signed with the key it is for.
///
/// # Errors
/// [`CsrError`] for everything that cannot be read in full, without guessing.
pub fn examine(pem: &str) -> Result<CsrFacts, CsrError> {
    if pem.len() > MAX_CSR {
        return Err(CsrError::TooLong { bytes: pem.len() });
    }
    let der = single_block(pem)?;
    let (rest, request) =
        X509CertificationRequest::from_der(&der).map_err(|_| CsrError::Der { what: "request" })?;
    if !rest.is_empty() {
        return Err(CsrError::Der { what: "bytes after the request" });
    }
    request.verify_signature().map_err(|_| CsrError::ProofOfPossession)?;

    let info = &request.certification_request_info;
    let mut facts = CsrFacts {
        common_names: Vec::new(),
        names: subject_names(&info.subject)?,
        extensions: Vec::new(),
        authority: None,
    };
    facts.common_names = facts
        .names
        .iter()
        .filter(|name| name.kind == NameKind::CommonName)
        .map(|name| name.value.clone())
        .collect();
    let mut requests = 0_usize;
    for attribute in info.iter_attributes() {
        let oid = attribute.oid.to_id_string();
        match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(asked) => {
                requests += 1;
                if requests > 1 || !has_one_value(attribute) {
                    return Err(CsrError::Repeated { what: oid });
                }
                for extension in &asked.extensions {
                    read_extension(extension, &mut facts)?;
                }
            }
            _ if oid == MICROSOFT_EXTENSION_REQUEST => return Err(CsrError::Repeated { what: oid }),
            _ => {}
        }
    }
    Ok(facts)
}

/// The content of the text's only block.
fn single_block(text: &str) -> Result<Vec<u8>, CsrError> {
    let bad = |what| CsrError::Pem { what };
    let trimmed = text.trim();
    if !trimmed.starts_with("-----BEGIN CERTIFICATE REQUEST-----")
        && !trimmed.starts_with("-----BEGIN NEW CERTIFICATE REQUEST-----")
    {
        return Err(bad("it begins with something else"));
    }
    let (rest, block) = parse_x509_pem(trimmed.as_bytes()).map_err(|_| bad("the block is broken"))?;
    if !rest.iter().all(u8::is_ascii_whitespace) {
        return Err(bad("text follows the block"));
    }
    Ok(block.contents)
}

/// True when the attribute's set of values holds exactly one: a reader that takes the last would see another request.
fn has_one_value(attribute: &X509CriAttribute<'_>) -> bool {
    let Ok((after, set)) = Any::from_der(attribute.value) else { return false };
    let Ok((more, _)) = Any::from_der(set.data) else { return false };
    after.is_empty() && more.is_empty()
}

fn read_extension(extension: &X509Extension<'_>, facts: &mut CsrFacts) -> Result<(), CsrError> {
    let oid = extension.oid.to_id_string();
    if facts.extensions.iter().any(|seen| seen.oid == oid) {
        return Err(CsrError::Repeated { what: oid });
    }
    let mut known = true;
    match extension.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(san) => {
            for name in &san.general_names {
                facts.names.extend(alternative_names(name)?);
            }
        }
        ParsedExtension::BasicConstraints(basic) if basic.ca => {
            facts.authority = Some("basic constraints CA:TRUE");
        }
        ParsedExtension::KeyUsage(usage) if usage.key_cert_sign() => {
            facts.authority = Some("key usage keyCertSign");
        }
        ParsedExtension::KeyUsage(usage) if usage.crl_sign() => facts.authority = Some("key usage cRLSign"),
        ParsedExtension::NSCertType(kind) if kind.ssl_ca() || kind.smime_ca() || kind.object_signing_ca() => {
            facts.authority = Some("Netscape certificate type CA");
        }
        ParsedExtension::BasicConstraints(_)
        | ParsedExtension::KeyUsage(_)
        | ParsedExtension::NSCertType(_)
        | ParsedExtension::NsCertComment(_)
        | ParsedExtension::ExtendedKeyUsage(_)
        | ParsedExtension::SubjectKeyIdentifier(_)
        | ParsedExtension::AuthorityKeyIdentifier(_) => {}
        ParsedExtension::ParseError { .. } => return Err(CsrError::BrokenExtension { oid }),
        _ => known = false,
    }
    facts.extensions.push(RequestedExtension { oid, critical: extension.critical, known });
    Ok(())
}
