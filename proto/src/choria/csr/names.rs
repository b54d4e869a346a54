//! The names in a request, of every kind, as text that patterns can be held against.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use x509_parser::asn1_rs::{Any, Class, FromDer as _, Tag};
use x509_parser::extensions::GeneralName;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use super::CsrError;

/// How deep the value of an otherName is searched for texts.
const MAX_DEPTH: usize = 8;

/// The most texts taken from one otherName.
const MAX_TEXTS: usize = 64;

/// What kind of name something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// Common name of the subject.
    CommonName,
    /// Another attribute of the subject that names somebody (e-mail address, user id, unstructured name).
    Subject,
    /// Alternative name: host name.
    Dns,
    /// Alternative name: IP address.
    Ip,
    /// Alternative name: e-mail address.
    Email,
    /// Alternative name: URI.
    Uri,
    /// Alternative name: directory name.
    Directory,
    /// Alternative name: other name.
    Other,
    /// Alternative name: registered id.
    RegisteredId,
    /// Alternative name of a kind that nothing here reads (X.400 address, EDI party name, damaged).
    Unknown,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CommonName => "common name",
            Self::Subject => "subject attribute",
            Self::Dns => "DNS name",
            Self::Ip => "IP address",
            Self::Email => "e-mail address",
            Self::Uri => "URI",
            Self::Directory => "directory name",
            Self::Other => "other name",
            Self::RegisteredId => "registered id",
            Self::Unknown => "name of an unknown kind",
        })
    }
}

/// One name of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsrName {
    /// Its kind.
    pub kind: NameKind,
    /// Its text, as it stands in the request: may hold anything.
    pub value: String,
}

/// Common name, e-mail address, user id and unstructured name: the subject attributes that name somebody.
pub(super) fn subject_names(subject: &X509Name<'_>) -> Result<Vec<CsrName>, CsrError> {
    let mut names = Vec::new();
    for attribute in subject.iter_attributes() {
        let kind = match attribute.attr_type().to_id_string().as_str() {
            "2.5.4.3" => NameKind::CommonName,
            "1.2.840.113549.1.9.1" | "0.9.2342.19200300.100.1.1" | "1.2.840.113549.1.9.2" => {
                NameKind::Subject
            }
            _ => continue,
        };
        let value = attribute_text(attribute).ok_or(CsrError::UnreadableName { kind })?;
        names.push(CsrName { kind, value });
    }
    Ok(names)
}

/// Every text an alternative name can be known by.
pub(super) fn alternative_names(name: &GeneralName<'_>) -> Result<Vec<CsrName>, CsrError> {
    let one = |kind, value: String| Ok(vec![CsrName { kind, value }]);
    match name {
        GeneralName::DNSName(text) => one(NameKind::Dns, (*text).to_owned()),
        GeneralName::RFC822Name(text) => one(NameKind::Email, (*text).to_owned()),
        GeneralName::URI(text) => {
            let kind = NameKind::Uri;
            let mut names = vec![CsrName { kind, value: (*text).to_owned() }];
            names.extend(uri_host(text).map(|host| CsrName { kind, value: host.to_owned() }));
            Ok(names)
        }
        GeneralName::IPAddress(bytes) => ip_text(bytes)
            .map_or(Err(CsrError::UnreadableName { kind: NameKind::Ip }), |text| one(NameKind::Ip, text)),
        GeneralName::RegisteredID(oid) => one(NameKind::RegisteredId, oid.to_id_string()),
        GeneralName::DirectoryName(directory) => {
            let kind = NameKind::Directory;
            let value = |attribute| attribute_text(attribute).ok_or(CsrError::UnreadableName { kind });
            directory.iter_attributes().map(|a| value(a).map(|value| CsrName { kind, value })).collect()
        }
        GeneralName::OtherName(_, der) => {
            let kind = NameKind::Other;
            let mut texts = Vec::new();
            if !texts_inside(der, 0, &mut texts) || texts.is_empty() {
                return Err(CsrError::UnreadableName { kind });
            }
            Ok(texts.into_iter().map(|value| CsrName { kind, value }).collect())
        }
        GeneralName::X400Address(_) | GeneralName::EDIPartyName(_) | GeneralName::Invalid(..) => {
            Err(CsrError::UnreadableName { kind: NameKind::Unknown })
        }
    }
}

fn attribute_text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    text_of(attribute.attr_value())
}

/// The text of an ASN.1 string of any type; none for other types and for bytes that are no text of that type.
fn text_of(any: &Any<'_>) -> Option<String> {
    match any.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::VisibleString | Tag::NumericString => {
            std::str::from_utf8(any.data).ok().map(ToOwned::to_owned)
        }
        // Latin-1 in practice: every byte is the character of that number.
        Tag::T61String | Tag::GeneralString => Some(any.data.iter().map(|&byte| char::from(byte)).collect()),
        Tag::BmpString => {
            let units = any.data.chunks_exact(2);
            if !units.remainder().is_empty() {
                return None;
            }
            let units: Vec<u16> =
                units.filter_map(|pair| pair.try_into().ok().map(u16::from_be_bytes)).collect();
            String::from_utf16(&units).ok()
        }
        Tag::UniversalString => {
            let units = any.data.chunks_exact(4);
            if !units.remainder().is_empty() {
                return None;
            }
            units.map(|four| four.try_into().ok().map(u32::from_be_bytes).and_then(char::from_u32)).collect()
        }
        _ => None,
    }
}

/// Collects every string inside a DER value; false when a part can hold a name that cannot be read.
fn texts_inside(der: &[u8], depth: usize, texts: &mut Vec<String>) -> bool {
    let mut rest = der;
    while !rest.is_empty() {
        let Ok((after, any)) = Any::from_der(rest) else { return false };
        rest = after;
        if let Some(text) = text_of(&any) {
            if texts.len() >= MAX_TEXTS {
                return false;
            }
            texts.push(text);
        } else if any.header.is_constructed() {
            if depth >= MAX_DEPTH || !texts_inside(any.data, depth + 1, texts) {
                return false;
            }
        } else if any.class() != Class::Universal
            || !matches!(any.tag(), Tag::Integer | Tag::Oid | Tag::Boolean | Tag::Null | Tag::Enumerated)
        {
            return false;
        }
    }
    true
}

/// The host of a URI with an authority: between user information and port.
fn uri_host(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.starts_with('[') {
        return Some(host.split_once(']').map_or(host, |(inside, _)| inside).trim_start_matches('['));
    }
    Some(host.split_once(':').map_or(host, |(name, _)| name))
}

fn ip_text(bytes: &[u8]) -> Option<String> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).to_string())
}
