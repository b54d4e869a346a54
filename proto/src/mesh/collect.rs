//! Items of collections: `mesh-provisioner_collect`, `<node>.<collection>.<contributor>`.

use serde::{Deserialize, Serialize};

use super::{fault::Fault, key};
use crate::json::{self, Limits, to_secret_bytes};

/// One item, filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The machine.
    pub node: String,
    /// The collection.
    pub collection: String,
    /// The module it comes from.
    pub contributor: String,
    /// Its text.
    pub text: String,
}

impl Item {
    /// Its key.
    ///
    /// # Errors
    /// The collection's name is too long for a key.
    pub fn key(&self) -> Result<String, Fault> {
        key::collect_key(&self.node, &self.collection, &self.contributor)
    }

    /// Its value.
    pub fn encode(&self) -> Vec<u8> {
        to_secret_bytes(self).to_vec()
    }

    /// Reads an item.
    ///
    /// # Errors
    /// No JSON of this shape, or its members do not say what its key says.
    pub fn read(key: &str, value: &[u8]) -> Result<Self, Fault> {
        let item: Self = json::object(value, &Limits::FRAME).map_err(|error| Fault::json("", &error))?;
        if item.key()? == key { Ok(item) } else { Err(Fault::new("", "the key is another item's")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_written_as_the_page_shows_and_belongs_to_its_key() {
        let item = Item {
            node: "web1".to_owned(),
            collection: "shell:zsh:normal".to_owned(),
            contributor: "forge".to_owned(),
            text: "export FORGE=…\n".to_owned(),
        };
        let text = r#"{"node":"web1","collection":"shell:zsh:normal","contributor":"forge","text":"export FORGE=…\n"}"#;
        assert_eq!(String::from_utf8(item.encode()).unwrap(), text);
        assert_eq!(Item::read("web1.shell=3Azsh=3Anormal.forge", text.as_bytes()), Ok(item));
        assert!(Item::read("web2.shell=3Azsh=3Anormal.forge", text.as_bytes()).is_err());
    }
}
