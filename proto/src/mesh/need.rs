//! Needs: what a module's templates name, recorded before any value is there.

use serde::{Deserialize, Serialize};

use super::{fault::Fault, key};
use crate::json::{self, Limits, to_secret_bytes};

/// One need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The machine.
    pub node: String,
    /// The module.
    pub module: String,
    /// The word before the colon, known or not.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Who owns values of this kind; none for a kind that nobody owns.
    pub owner: Option<String>,
    /// Paths of files, and `item:<collection>`, sorted.
    pub by: Vec<String>,
}

impl Need {
    /// Its key.
    ///
    /// # Errors
    /// The name is too long for a key.
    pub fn key(&self) -> Result<String, Fault> {
        key::need_key(&self.node, &self.module, &self.kind, &self.name)
    }

    /// Its value.
    pub fn encode(&self) -> Vec<u8> {
        to_secret_bytes(self).to_vec()
    }

    /// Reads a value.
    ///
    /// # Errors
    /// No JSON of this shape, or over the limits of [`Limits::FRAME`].
    pub fn read(value: &[u8]) -> Result<Self, Fault> {
        json::object(value, &Limits::FRAME).map_err(|error| Fault::json("", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_written_as_the_page_shows() {
        let need = Need {
            node: "web1".to_owned(),
            module: "forge".to_owned(),
            kind: "bound".to_owned(),
            name: "postgres.main:host".to_owned(),
            owner: Some("postgres".to_owned()),
            by: vec!["/etc/forge/app.ini".to_owned()],
        };
        assert_eq!(need.key().as_deref(), Ok("web1.forge.bound.postgres=2Emain=3Ahost"));
        let text = r#"{"node":"web1","module":"forge","kind":"bound","name":"postgres.main:host","owner":"postgres","by":["/etc/forge/app.ini"]}"#;
        assert_eq!(String::from_utf8(need.encode()).unwrap(), text);
        assert_eq!(Need::read(text.as_bytes()), Ok(need.clone()));
        let nobody = Need { owner: None, ..need };
        assert!(String::from_utf8(nobody.encode()).unwrap().contains(r#""owner":null"#));
    }
}
