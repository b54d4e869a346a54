//! What stands in the bucket, byte for byte the same from every instance: one key for each host under `host.`, one for each
//! instance under `member.`, JSON as their values.

use std::fmt::Write as _;

use quartermaster_proto::choria::identity::Identity;
use serde::{Deserialize, Serialize};

/// First part of the keys of hosts.
const HOST: &str = "host.";
/// First part of the keys of instances.
const MEMBER: &str = "member.";

/// What a key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// A cycle of the host is under way; renewed for as long as it is.
    Working,
    /// The same, and the host may be configured already.
    Committed,
    /// A cycle failed and its instance tries again before long.
    Resting,
    /// The host was provisioned, or needs nothing.
    Done,
    /// Nobody's: whoever wants it writes over it.
    Free,
    /// An instance that works; renewed for as long as it does.
    Member,
}

/// A key's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The identity of the instance.
    pub by: String,
    /// The life of its process, so that a restarted instance recognises its own claims as those of an earlier life.
    pub life: String,
    /// What it says.
    pub state: RecordState,
}

/// Whose key it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A host's.
    Host(Identity),
    /// An instance's, by its identity.
    Member(String),
}

impl Record {
    /// The bytes of the value.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a value; none when it is no record.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The key of a host.
pub fn host_key(host: &Identity) -> String {
    format!("{HOST}{}", escape(host.as_str()))
}

/// The key of an instance.
pub fn member_key(identity: &str) -> String {
    format!("{MEMBER}{}", escape(identity))
}

/// Whose key this is; none for a stranger's.
pub fn subject_of(key: &str) -> Option<Subject> {
    match (key.strip_prefix(HOST), key.strip_prefix(MEMBER)) {
        (Some(host), _) => Some(Subject::Host(Identity::parse(&unescape(host)?).ok()?)),
        (_, Some(member)) => Some(Subject::Member(unescape(member)?)),
        _ => None,
    }
}

/// Keys take letters, digits and `-/_=.`; every other byte, and `=` itself, becomes `=` and two hexadecimal digits.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'_' | b'.') {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "={byte:02x}");
        }
    }
    escaped
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('=');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back_to_their_hosts() {
        for name in ["web1.example.net", "Web_1-x", "a=b", "q:0/x~.y"] {
            let host = Identity::parse(name).unwrap();
            let key = host_key(&host);
            let fits = |c: char| c.is_ascii_alphanumeric() || "-/_=.".contains(c);
            assert!(key.chars().all(fits), "{key}");
            assert_eq!(subject_of(&key), Some(Subject::Host(host)));
        }
        assert_eq!(subject_of(&member_key("p 1")), Some(Subject::Member("p 1".to_owned())));
        assert_eq!(
            (subject_of("other.x"), subject_of("host.=zz"), subject_of("host.=4")),
            (None, None, None)
        );
    }

    #[test]
    fn a_value_is_readable_json() {
        let record = Record { by: "p1".to_owned(), life: "ab".to_owned(), state: RecordState::Working };
        assert_eq!(record.to_bytes(), br#"{"by":"p1","life":"ab","state":"working"}"#);
        assert_eq!(Record::parse(&record.to_bytes()), Some(record));
        assert_eq!(Record::parse(b"intruder"), None);
    }
}
