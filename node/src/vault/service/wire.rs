//! What operators' verbs say to the vault over its socket: JSON Lines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::vault::Value;

/// What an operator wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum AdminRequest {
    /// Store a value.
    Set {
        /// Its name.
        name: String,
        /// The value.
        value: AdminValue,
    },
    /// Replace a value by one that nobody has seen.
    Rotate {
        /// Its name.
        name: String,
        /// Random bytes of the new one.
        random: usize,
    },
    /// Forget a value.
    Delete {
        /// Its name.
        name: String,
    },
    /// Names and versions.
    List,
    /// The public half of the key that deposits are sealed to.
    Key,
}

/// A value on its way: base64 in the line, wiped when dropped.
#[derive(Debug)]
pub struct AdminValue(pub Value);

impl Serialize for AdminValue {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&base64::display::Base64Display::new(self.0.expose(), &STANDARD))
    }
}

impl<'de> Deserialize<'de> for AdminValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Base64 needs no escapes in JSON, so the text is read where it lies.
        let text = <&str>::deserialize(from)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 4 * 3 + 3));
        STANDARD
            .decode_vec(text, &mut bytes)
            .map_err(|_| serde::de::Error::custom("the value is no standard base64"))?;
        Ok(Self(Value::new(bytes)))
    }
}

/// The vault's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdminReply {
    /// It is stored, as this version.
    Version(u64),
    /// It is forgotten.
    Deleted(String),
    /// Names with their versions.
    Values(Vec<(String, u64)>),
    /// The public half of the key that deposits are sealed to, standard base64.
    BoxKey(String),
    /// It was not done, and why.
    Error(String),
}
