//! What a provider serves a module: `<provider>_bound`, `<node>.<module>.<provision>[.<local>]`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{fault::Fault, fields::Fields, value::Json};
use crate::json::{Limits, to_secret_bytes};

/// One entry of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// The module is bound.
    Served(Served),
    /// The provider will not.
    Refused {
        /// Why, in its words.
        reason: String,
    },
}

/// What a bound module may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// By what name the module is known to the provider.
    pub known_as: Option<Json>,
    /// As what user.
    pub user: Option<Json>,
    /// Everything else, by name.
    pub values: BTreeMap<String, Json>,
}

impl Served {
    /// The value of a placeholder's key: `as` and `user` are the entry's own members, all else is looked up in `values`.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match key {
            "as" => self.known_as.as_ref(),
            "user" => self.user.as_ref(),
            key => self.values.get(key),
        }
    }
}

impl Bound {
    /// Reads an entry.
    ///
    /// # Errors
    /// No JSON of this shape.
    pub fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::read(value, &Limits::FRAME)?;
        match fields.needed("state")?.as_str() {
            "refused" => Ok(Self::Refused { reason: fields.text("reason")?.unwrap_or_default() }),
            "bound" => {
                let values = fields
                    .object("values")?
                    .map(|inner| inner.rest().map(|(name, value)| (name, Json::from(value))).collect());
                Ok(Self::Served(Served {
                    known_as: fields.take("as").map(Json::from),
                    user: fields.take("user").map(Json::from),
                    values: values.unwrap_or_default(),
                }))
            }
            _ => Err(fields.fault("state", "is neither `bound` nor `refused`")),
        }
    }

    /// The entry's value.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Served(Served { known_as, user, values }) => {
                let values = (!values.is_empty()).then_some(values);
                let out = BoundOut {
                    state: "bound",
                    known_as: known_as.as_ref(),
                    user: user.as_ref(),
                    values,
                    reason: None,
                };
                to_secret_bytes(&out).to_vec()
            }
            Self::Refused { reason } => {
                let reason = Some(reason.as_str());
                let out = BoundOut { state: "refused", known_as: None, user: None, values: None, reason };
                to_secret_bytes(&out).to_vec()
            }
        }
    }
}

#[derive(Serialize)]
struct BoundOut<'a> {
    state: &'static str,
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    known_as: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a BTreeMap<String, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_entry_serves_its_members_and_its_values() {
        let text = r#"{"state":"bound","as":"forge_web1","user":"forge_web1","values":{"host":"db1.example","port":5432}}"#;
        let bound = Bound::read(text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(bound.encode()).unwrap(), text);
        let Bound::Served(served) = bound else { panic!("it is bound") };
        for (key, expected) in [
            ("as", Some("\"forge_web1\"")),
            ("user", Some("\"forge_web1\"")),
            ("port", Some("5432")),
            ("x", None),
        ] {
            assert_eq!(served.get(key).map(Json::get), expected);
        }
    }

    #[test]
    fn a_refusal_carries_its_reason() {
        let text = r#"{"state":"refused","reason":"no room for another database"}"#;
        let bound = Bound::read(text.as_bytes()).unwrap();
        assert_eq!(bound, Bound::Refused { reason: "no room for another database".to_owned() });
        assert_eq!(String::from_utf8(bound.encode()).unwrap(), text);
    }

    #[test]
    fn other_entries_are_refused() {
        for text in ["", "{}", "[]", r#"{"state":"maybe"}"#, r#"{"state":"bound","values":[]}"#] {
            assert!(Bound::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
