//! What a key-value store of version 2 says, read. Plain functions from a status and a body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::{KvError, Mark};
use crate::vault::store::Value;

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A value.
    Found {
        /// The value.
        value: Value,
        /// Which version it is.
        mark: Mark,
    },
    /// None; the next writing has to name this version.
    Absent {
        /// The version of what was deleted; 0 where nothing ever was.
        last: u64,
    },
}

/// What is known of a name without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The highest version; 0 where nothing ever was.
    pub last: u64,
    /// Which version the value has; none where it is deleted or never was.
    pub mark: Option<Mark>,
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    data: Option<Members<'a>>,
    metadata: Version,
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    encoding: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Version {
    #[serde(default, rename = "version")]
    number: u64,
    created_time: String,
    #[serde(default)]
    deletion_time: String,
    #[serde(default)]
    destroyed: bool,
}

impl Version {
    /// A moment of deletion may lie ahead; what counts is that the store hands the value out no more, which it shows by itself
    /// in an answer with data. Among the metadata an entry with a moment is taken for deleted.
    fn is_gone(&self) -> bool {
        self.destroyed || !self.deletion_time.is_empty()
    }
}

#[derive(Deserialize)]
struct Metadata {
    current_version: u64,
    #[serde(default)]
    versions: BTreeMap<String, Version>,
}

#[derive(Deserialize)]
struct Listed {
    keys: Vec<String>,
}

#[derive(Deserialize, Default)]
struct Errors {
    #[serde(default)]
    errors: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Write<'a> {
    options: Cas,
    data: Content<'a>,
}

#[derive(Serialize)]
struct Cas {
    cas: u64,
}

#[derive(Serialize)]
struct Content<'a> {
    value: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
}

fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, KvError> {
    // What is wrong with an answer may repeat what is in it.
    serde_json::from_slice::<Envelope<T>>(body)
        .map(|envelope| envelope.data)
        .map_err(|_| KvError::silent("what it said is no answer of a key-value store of version 2"))
}

/// What a status other than 200 and 404 means.
fn fault(status: u16, body: &[u8]) -> KvError {
    let errors = serde_json::from_slice::<Errors>(body).unwrap_or_default().errors.unwrap_or_default();
    let said = errors.join("; ").chars().filter(|c| !c.is_control()).take(200).collect::<String>();
    match status {
        403 => KvError::Refused(format!("the vault itself may not do this there ({said})")),
        400 if said.contains("check-and-set") => KvError::Raced,
        503 => KvError::silent(format!("it is sealed or not ready ({said})")),
        429 => KvError::silent("it is asked too much"),
        _ => KvError::silent(format!("status {status} ({said})")),
    }
}

/// 404 with an empty list of reasons is a name that is not there; with one it is a mount that is not there, which says nothing of the name.
fn is_absent(body: &[u8]) -> bool {
    serde_json::from_slice::<Errors>(body)
        .is_ok_and(|said| said.errors.is_some_and(|errors| errors.is_empty()))
}

/// The characters of a string; none of anything else.
fn text(raw: &RawValue) -> Option<Zeroizing<String>> {
    match serde_json::from_str::<&str>(raw.get()) {
        Ok(plain) => Some(Zeroizing::new(plain.to_owned())),
        // With escapes in it; what the library reads them into is not wiped.
        Err(_) => serde_json::from_str::<String>(raw.get()).ok().map(Zeroizing::new),
    }
}

/// Reads the answer to a reading of a value.
pub(super) fn read(status: u16, body: &[u8]) -> Result<Read, KvError> {
    match status {
        200 => {}
        404 => {
            return match parsed::<Data<'_>>(body) {
                Ok(gone) => Ok(Read::Absent { last: gone.metadata.number }),
                Err(_) if is_absent(body) => Ok(Read::Absent { last: 0 }),
                Err(_) => Err(fault(status, body)),
            };
        }
        _ => return Err(fault(status, body)),
    }
    let Data { data, metadata } = parsed(body)?;
    let Some(members) = data else { return Ok(Read::Absent { last: metadata.number }) };
    let refused = |why: &str| KvError::Refused(why.to_owned());
    let text =
        members.value.and_then(text).ok_or_else(|| refused("what it holds there has no text `value`"))?;
    let value = match members.encoding.as_deref() {
        None | Some("") => Zeroizing::new(text.as_bytes().to_vec()),
        Some("base64") => {
            let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 4 * 3 + 3));
            STANDARD
                .decode_vec(text.as_bytes(), &mut bytes)
                .map_err(|_| refused("what it holds there is no standard base64"))?;
            bytes
        }
        Some(_) => return Err(refused("what it holds there has an encoding that nobody knows")),
    };
    let mark = Mark { version: metadata.number, created: metadata.created_time };
    Ok(Read::Found { value: Value::new(value), mark })
}

/// Reads the answer to a question for metadata.
pub(super) fn stored(status: u16, body: &[u8]) -> Result<Stored, KvError> {
    match status {
        200 => {}
        404 if is_absent(body) => return Ok(Stored { last: 0, mark: None }),
        _ => return Err(fault(status, body)),
    }
    let Metadata { current_version, versions } = parsed(body)?;
    let current = versions.get(&current_version.to_string()).filter(|version| !version.is_gone());
    let mark =
        current.map(|version| Mark { version: current_version, created: version.created_time.clone() });
    Ok(Stored { last: current_version, mark })
}

/// Reads the answer to a question for names; what ends with `/` is a folder.
pub(super) fn names(status: u16, body: &[u8]) -> Result<Vec<String>, KvError> {
    match status {
        200 => parsed::<Listed>(body).map(|listed| listed.keys),
        404 if is_absent(body) => Ok(Vec::new()),
        _ => Err(fault(status, body)),
    }
}

/// Reads the answer to a writing: which version it made.
pub(super) fn written(status: u16, body: &[u8]) -> Result<Mark, KvError> {
    if status != 200 {
        return Err(fault(status, body));
    }
    let version: Version = parsed(body)?;
    Ok(Mark { version: version.number, created: version.created_time })
}

/// Reads the answer to something that answers nothing.
pub(super) fn done(status: u16, body: &[u8]) -> Result<(), KvError> {
    if matches!(status, 200 | 204) { Ok(()) } else { Err(fault(status, body)) }
}

/// What writes a value where the last version is this one. Bytes that are no text go as base64.
pub(super) fn write(value: &Value, last: u64) -> Zeroizing<Vec<u8>> {
    let encoded;
    let (text, encoding) = if let Ok(text) = std::str::from_utf8(value.expose()) {
        (text, None)
    } else {
        encoded = Zeroizing::new(STANDARD.encode(value.expose()));
        (encoded.as_str(), Some("base64"))
    };
    let body = Write { options: Cas { cas: last }, data: Content { value: text, encoding } };
    // Large enough for every escape, so that the buffer does not grow and leave a copy behind.
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 6 + 128));
    let _ = serde_json::to_writer(&mut *out, &body);
    out
}

/// What logging in answered.
#[derive(Deserialize)]
pub(super) struct Login {
    /// The token and its life.
    pub(super) auth: Lease,
}

/// A token and its life.
#[derive(Deserialize)]
pub(super) struct Lease {
    /// The token.
    pub(super) client_token: String,
    /// Seconds; 0 for a token that does not end.
    #[serde(default)]
    pub(super) lease_duration: u64,
}

/// What is known of our own token.
#[derive(Deserialize)]
pub(super) struct Own {
    /// Seconds left; 0 for a token that does not end.
    #[serde(default)]
    pub(super) ttl: u64,
    /// It can be renewed.
    #[serde(default)]
    pub(super) renewable: bool,
}

/// Reads the answer to a login.
pub(super) fn login(status: u16, body: &[u8]) -> Result<Lease, KvError> {
    let Ok(Login { auth }) = serde_json::from_slice(body) else {
        return Err(KvError::silent(format!("the login failed with status {status}")));
    };
    if status == 200 {
        Ok(auth)
    } else {
        Err(KvError::silent(format!("the login failed with status {status}")))
    }
}

/// Reads the answer about our own token.
pub(super) fn own(status: u16, body: &[u8]) -> Result<Own, KvError> {
    if status == 200 {
        return parsed(body);
    }
    match fault(status, body) {
        KvError::Refused(_) => Err(KvError::silent(
            "it does not know the vault's token, or its policy lacks auth/token/lookup-self",
        )),
        other => Err(other),
    }
}
