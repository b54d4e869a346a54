//! What is asked of the vault, and what it says.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::{fault::Fault, fields::Fields, stamp, token::is_name};
use crate::{
    json::{self, Limits, to_secret_bytes},
    text::escape_bounded,
    time::WallClock,
};

/// Longest value, in bytes.
pub const MAX_VALUE: usize = 512 * 1024;
/// What a box has beyond its value, in bytes.
pub const BOX_OVERHEAD: usize = 48;
/// Longest reason that is passed on, in characters.
const MAX_REASON: usize = 512;

/// The vault's name of a value. Its parts are plain text with `/` between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretName {
    /// `own/<module>/<name>[/<node>]`: a secret of the module's own, for every machine or for one.
    Own {
        /// The module.
        module: String,
        /// The secret.
        name: String,
        /// The one machine it is for.
        node: Option<String>,
    },
    /// `provision/…`: a credential as its consumer asks for it.
    Provision(Binding),
    /// `pair/…`: the same as its provider asks for it.
    Pair(Binding),
}

/// Who is bound to what: `<provider>/<provision>/<node>/<module>[/<local>]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binding {
    /// The module that provides.
    pub provider: String,
    /// What it provides.
    pub provision: String,
    /// The consumer's machine.
    pub node: String,
    /// The consumer.
    pub module: String,
    /// Which of several.
    pub local: Option<String>,
}

impl fmt::Display for SecretName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = match self {
            Self::Own { module, name, node } => {
                write!(out, "own/{module}/{name}")?;
                node
            }
            Self::Provision(binding) | Self::Pair(binding) => {
                let word = if matches!(self, Self::Pair(_)) { "pair" } else { "provision" };
                let Binding { provider, provision, node, module, local } = binding;
                write!(out, "{word}/{provider}/{provision}/{node}/{module}")?;
                local
            }
        };
        last.iter().try_for_each(|last| write!(out, "/{last}"))
    }
}

impl FromStr for SecretName {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let bad = || Fault::new("name", "is no name the vault knows: own/…, provision/… or pair/…");
        let mut parts = text.split('/').map(|part| is_name(part).then(|| part.to_owned()));
        let mut next = || parts.next().flatten().ok_or_else(bad);
        let form = next()?;
        let found = match form.as_str() {
            "own" => Self::Own { module: next()?, name: next()?, node: next().ok() },
            "provision" | "pair" => {
                let binding = Binding {
                    provider: next()?,
                    provision: next()?,
                    node: next()?,
                    module: next()?,
                    local: next().ok(),
                };
                if form == "pair" { Self::Pair(binding) } else { Self::Provision(binding) }
            }
            _ => return Err(bad()),
        };
        // What stands behind the last part, or is no name, would otherwise be lost.
        if found.to_string() == text { Ok(found) } else { Err(bad()) }
    }
}

/// A request for one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetRequest {
    /// Which.
    pub name: SecretName,
    /// The public half of the X25519 key it is to be sealed to.
    pub key: [u8; 32],
    /// The mirror's revision of the plan that names it; the vault's own mirror must have come that far.
    pub revision: u64,
}

impl GetRequest {
    /// The request.
    pub fn encode(&self) -> Vec<u8> {
        let (name, key) = (self.name.to_string(), STANDARD.encode(self.key));
        to_secret_bytes(&GetOut { name: &name, key: &key, revision: self.revision }).to_vec()
    }

    /// Reads a request.
    ///
    /// # Errors
    /// No JSON of this shape.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::read(body, &Limits::EVENT)?;
        let name = fields.needed("name")?.parse()?;
        let key = STANDARD.decode(fields.needed("key")?).ok().and_then(|key| key.try_into().ok());
        let key = key.ok_or_else(|| fields.fault("key", "is not 32 bytes in standard base64"))?;
        Ok(Self { name, key, revision: fields.count("revision")?.unwrap_or_default() })
    }
}

#[derive(Serialize)]
struct GetOut<'a> {
    name: &'a str,
    key: &'a str,
    revision: u64,
}

/// The vault's answer to a [`GetRequest`]; anything that is not exactly one of these is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetReply {
    /// The value, sealed.
    Sealed {
        /// The box: an ephemeral public key, then the value encrypted to the asker.
        sealed: Vec<u8>,
        /// The value's version.
        version: u64,
    },
    /// There is no such value yet.
    Absent {
        /// Why, for people.
        reason: String,
    },
    /// This account may not have it.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

impl GetReply {
    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        let empty = ReplyOut::default();
        let boxed;
        let out = match self {
            Self::Sealed { sealed, version } => {
                boxed = STANDARD.encode(sealed);
                ReplyOut { sealed: Some(&boxed), version: Some(*version), ..empty }
            }
            Self::Absent { reason } => ReplyOut { absent: Some(reason), ..empty },
            Self::Refused { reason } => ReplyOut { refused: Some(reason), ..empty },
        };
        to_secret_bytes(&out).to_vec()
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// Not exactly one of box, absent and refused, or a box that can be none.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::read(body, &Limits::FRAME)?;
        match (fields.text("box")?, reason(&mut fields, "absent")?, reason(&mut fields, "refused")?) {
            (Some(text), None, None) => {
                let sealed = read_box(&fields, &text)?;
                let version =
                    fields.count("version")?.ok_or_else(|| fields.fault("version", "is missing"))?;
                Ok(Self::Sealed { sealed, version })
            }
            (None, Some(reason), None) => Ok(Self::Absent { reason }),
            (None, None, Some(reason)) => Ok(Self::Refused { reason }),
            _ => Err(Fault::new("", "is not exactly one of box, absent and refused")),
        }
    }
}

fn reason(fields: &mut Fields<'_>, member: &str) -> Result<Option<String>, Fault> {
    Ok(fields.text(member)?.map(|reason| escape_bounded(&reason, MAX_REASON)))
}

fn read_box(fields: &Fields<'_>, text: &str) -> Result<Vec<u8>, Fault> {
    let sealed = STANDARD.decode(text).map_err(|_| fields.fault("box", "is no standard base64"))?;
    if (BOX_OVERHEAD..=BOX_OVERHEAD + MAX_VALUE).contains(&sealed.len()) {
        Ok(sealed)
    } else {
        Err(fields.fault("box", "is shorter or longer than a box can be"))
    }
}

#[derive(Default, Serialize)]
struct ReplyOut<'a> {
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    sealed: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'a str>,
}

/// A provider's deposit of a credential that its software issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutRequest {
    /// Which.
    pub name: SecretName,
    /// The value, sealed to the vault's own key.
    pub sealed: Vec<u8>,
}

impl PutRequest {
    /// The request.
    pub fn encode(&self) -> Vec<u8> {
        let (name, sealed) = (self.name.to_string(), STANDARD.encode(&self.sealed));
        to_secret_bytes(&PutOut { name: &name, sealed: &sealed }).to_vec()
    }

    /// Reads a request.
    ///
    /// # Errors
    /// No JSON of this shape.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::read(body, &Limits::FRAME)?;
        let name = fields.needed("name")?.parse()?;
        let text = fields.needed("box")?;
        Ok(Self { name, sealed: read_box(&fields, &text)? })
    }
}

#[derive(Serialize)]
struct PutOut<'a> {
    name: &'a str,
    #[serde(rename = "box")]
    sealed: &'a str,
}

/// The vault's answer to a [`PutRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutReply {
    /// It is stored, as this version.
    Stored {
        /// The version.
        version: u64,
    },
    /// It is not.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

impl PutReply {
    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        let out = match self {
            Self::Stored { version } => ReplyOut { version: Some(*version), ..ReplyOut::default() },
            Self::Refused { reason } => ReplyOut { refused: Some(reason), ..ReplyOut::default() },
        };
        to_secret_bytes(&out).to_vec()
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// Not exactly one of version and refused.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::read(body, &Limits::EVENT)?;
        match (fields.count("version")?, reason(&mut fields, "refused")?) {
            (Some(version), None) => Ok(Self::Stored { version }),
            (None, Some(reason)) => Ok(Self::Refused { reason }),
            _ => Err(Fault::new("", "is not exactly one of version and refused")),
        }
    }
}

/// The vault's word that a value changed, under the name by which the account asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretChanged {
    /// The name.
    pub name: String,
    /// The highest change number among the rows that decide the answer; it never falls.
    pub version: u64,
    /// When.
    #[serde(with = "stamp")]
    pub at: WallClock,
}

impl SecretChanged {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        to_secret_bytes(self).to_vec()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// No JSON of this shape.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        json::object(body, &Limits::EVENT).map_err(|error| Fault::json("", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=";
    const BOX: &str =
        "vQv5oSC9M+1Ev4semI3dpo5aXqlbmkynoT8ezJaXrkAlyQWpN4QRZ8u5e3HR5yRF+9A0O92pCGzqa3NE2h8YPw==";

    #[test]
    fn names_are_plain_text_and_come_back() {
        for text in [
            "own/forge/admin-password",
            "own/forge/admin-password/web1.example.com",
            "provision/hub/forge-read/web1/forge",
            "provision/postgres/postgres/web1/forge/main",
            "pair/postgres/postgres/web1/forge/main",
        ] {
            assert_eq!(text.parse::<SecretName>().map(|name| name.to_string()).as_deref(), Ok(text));
        }
        for text in [
            "",
            "own",
            "own/forge",
            "own//x",
            "own/forge/",
            "own/forge/x/web1/y",
            "pair/a/b/c",
            "pair/a/b/c/d/e/f",
            "provision/a/b/c/d/",
            "other/a/b",
            "own/forge/a\n",
        ] {
            assert!(text.parse::<SecretName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_request_is_written_as_the_page_shows() {
        let text = format!(r#"{{"name":"own/forge/admin-password","key":"{KEY}","revision":81}}"#);
        let request = GetRequest::read(text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(request.encode()).unwrap(), text);
        for bad in [
            text.replace(KEY, "AAAA"),
            text.replace("own/", "old/"),
            text.replace("81", "-1"),
            "[]".to_owned(),
        ] {
            assert!(GetRequest::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_reply_is_exactly_one_thing() {
        let sealed = STANDARD.decode(BOX).unwrap();
        let absent = "not stored yet".to_owned();
        let refused = "own/forge/x is not in the plan of web1.forge".to_owned();
        for (reply, text) in [
            (GetReply::Sealed { sealed, version: 3 }, format!(r#"{{"box":"{BOX}","version":3}}"#)),
            (GetReply::Absent { reason: absent }, r#"{"absent":"not stored yet"}"#.to_owned()),
            (
                GetReply::Refused { reason: refused },
                r#"{"refused":"own/forge/x is not in the plan of web1.forge"}"#.to_owned(),
            ),
        ] {
            assert_eq!(String::from_utf8(reply.encode()).unwrap(), text);
            assert_eq!(GetReply::read(text.as_bytes()), Ok(reply));
        }
        for text in [
            "{}".to_owned(),
            "null".to_owned(),
            format!(r#"{{"box":"{BOX}"}}"#),
            format!(r#"{{"box":"{BOX}","version":3,"absent":"x"}}"#),
            r#"{"absent":"x","refused":"y"}"#.to_owned(),
            r#"{"box":"AAAA","version":3}"#.to_owned(),
            r#"{"box":"%","version":3}"#.to_owned(),
        ] {
            assert!(GetReply::read(text.as_bytes()).is_err(), "{text}");
        }
        let loud = GetReply::read(b"{\"absent\":\"a\\u001b[2J\"}");
        assert_eq!(loud, Ok(GetReply::Absent { reason: "a\\u{1b}[2J".to_owned() }));
    }

    #[test]
    fn a_deposit_and_its_answers_come_back() {
        let name: SecretName = "provision/hub/forge-read/web1/forge".parse().unwrap();
        let put = PutRequest { name, sealed: vec![7; 50] };
        assert_eq!(PutRequest::read(&put.encode()), Ok(put));
        for (reply, text) in [
            (PutReply::Stored { version: 1 }, r#"{"version":1}"#),
            (PutReply::Refused { reason: "x".to_owned() }, r#"{"refused":"x"}"#),
        ] {
            assert_eq!(String::from_utf8(reply.encode()).unwrap(), text);
            assert_eq!(PutReply::read(text.as_bytes()), Ok(reply));
        }
        assert!(PutReply::read(b"{}").is_err());
    }

    #[test]
    fn a_change_is_written_as_the_page_shows() {
        let text = r#"{"name":"own/forge/admin-password","version":4,"at":"2026-11-29T18:00:00Z"}"#;
        let changed = SecretChanged::read(text.as_bytes()).unwrap();
        assert_eq!(changed.at, WallClock::from_seconds(1_795_975_200));
        assert_eq!(String::from_utf8(changed.encode()).unwrap(), text);
    }
}
