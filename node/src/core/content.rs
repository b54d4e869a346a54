//! Files and items filled from what is at hand.

use quartermaster_proto::mesh::{
    consumer::{Consumer, encode_list},
    plan::CollectionPlan,
    value::{Json, ValueError},
};
use zeroize::Zeroizing;

use super::{
    event::{ConsumerRef, Found, Note, Stored},
    gather::Hand,
};
use crate::{
    check::{Attached, CheckError, Meaning, ValueFault, Want},
    collection,
    template::Placeholder,
    value::Value,
};

/// A content, or why there is none.
type Content = Result<Zeroizing<Vec<u8>>, CheckError>;

impl Hand<'_> {
    /// The content of a file or an item for which nothing is missing. Notes say who was left out of a list of consumers.
    pub fn fill(&self, filled: &Attached, notes: &mut Vec<Note>) -> Content {
        match filled {
            Attached::Value(want) => Ok(match self.found.get(want) {
                Some(Found::Here(Stored::Secret(value))) => Zeroizing::new(value.as_bytes().to_vec()),
                _ => Zeroizing::default(),
            }),
            Attached::Template(source, meanings) => {
                let mut meanings = meanings.iter();
                source.template.fill(
                    |placeholder| {
                        let value = meanings.next().map_or(Ok(empty()), |meaning| self.value(meaning, notes));
                        value.map_err(|error| fault(placeholder, error.into()))
                    },
                    |placeholder, error| fault(placeholder, error.into()),
                )
            }
        }
    }

    /// The text of an item.
    pub fn fill_item(&self, collection: &str, filled: &Attached) -> Result<String, CheckError> {
        let content = self.fill(filled, &mut Vec::new())?;
        String::from_utf8(content.to_vec()).map_err(|_| CheckError::Value {
            kind: "item".to_owned(),
            name: collection.to_owned(),
            error: ValueFault::NotText,
        })
    }

    fn value(&self, meaning: &Meaning, notes: &mut Vec<Note>) -> Result<Value, ValueError> {
        let stored = |value: Option<&Json>| value.map_or(Ok(empty()), Value::stored);
        let (want, key) = match meaning {
            Meaning::Placement(kind, name) => {
                return stored(self.plan.placement.get(kind).and_then(|values| values.get(name)));
            }
            Meaning::Want(want) => (want, ""),
            Meaning::Bound(want, key) => (want, key.as_str()),
        };
        match self.found.get(want) {
            Some(Found::Here(Stored::Json(value))) => Value::stored(value),
            Some(Found::Here(Stored::Bound(served))) => stored(served.get(key)),
            Some(Found::Here(Stored::Secret(value))) => Ok(value.clone()),
            Some(Found::Here(Stored::Items(items))) => {
                let text = self.collected(want).map(|plan| collection::join(plan, items)).unwrap_or_default();
                Ok(Value::bytes(Zeroizing::new(text.into_bytes())))
            }
            Some(Found::Here(Stored::Consumers(consumers))) => Ok(self.consumers(consumers, notes)),
            // Nothing is missing when this is called.
            _ => Ok(empty()),
        }
    }

    fn collected(&self, want: &Want) -> Option<&CollectionPlan> {
        let Want::Collection(name) = want else { return None };
        self.plan.contents.collections.iter().find(|plan| plan.collection == *name)
    }

    fn consumers(&self, consumers: &[ConsumerRef], notes: &mut Vec<Note>) -> Value {
        // Values are lent to the list, so that no copy of them is made but the list itself.
        let found: Vec<(&ConsumerRef, String, Option<Value>)> = consumers
            .iter()
            .filter_map(|consumer| {
                let Some(name) = consumer.pair() else { return Some((consumer, String::new(), None)) };
                let credential = name.to_string();
                let why = match self.found.get(&Want::Vault(name)) {
                    Some(Found::Here(Stored::Secret(value)))
                        if std::str::from_utf8(value.as_bytes()).is_ok() =>
                    {
                        return Some((consumer, credential, Some(value.clone())));
                    }
                    Some(Found::Here(_)) => "the credential is not text".to_owned(),
                    Some(Found::Refused { reason, .. }) => format!("the vault refused: {reason}"),
                    _ => "the vault does not hold it yet".to_owned(),
                };
                notes.push(Note::LeftOut { credential, why });
                None
            })
            .collect();
        let list: Vec<Consumer<'_>> = found
            .iter()
            .map(|(consumer, credential, value)| Consumer {
                consumer: &consumer.binding.node,
                module: &consumer.binding.module,
                local: consumer.binding.local.as_deref().unwrap_or_default(),
                credential,
                value: value
                    .as_ref()
                    .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
                    .unwrap_or_default(),
            })
            .collect();
        let mut text = encode_list(&list);
        Value::bytes(Zeroizing::new(std::mem::take(&mut *text).into_bytes()))
    }
}

fn empty() -> Value {
    Value::bytes(Zeroizing::default())
}

fn fault(placeholder: &Placeholder, error: ValueFault) -> CheckError {
    CheckError::Value { kind: placeholder.kind.clone(), name: placeholder.name.clone(), error }
}
