//! Values of the YAML file as they go to providers.

use quartermaster_proto::provider::{Members, Number, Value};

use super::yaml::{self, Node};

/// The value of this node. Whole numbers keep every digit that fits 64 bits, others are taken as the reader has them: longer ones
/// are written as text, which converts to a number digit for digit. Of a repeated name the last one counts.
pub(super) fn value(node: &Node) -> Value {
    match &node.value {
        yaml::Value::Null => Value::Null,
        yaml::Value::Bool(flag) => (*flag).into(),
        yaml::Value::Integer(number) => (*number).into(),
        yaml::Value::Float(number) => {
            Number::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from)
        }
        yaml::Value::Text(text) => text.as_str().into(),
        yaml::Value::List(items) => items.iter().map(value).collect(),
        yaml::Value::Map(_) => Value::Object(members(node)),
    }
}

/// The members of a map; none of anything else.
pub(super) fn members(node: &Node) -> Members {
    match &node.value {
        yaml::Value::Map(entries) => {
            entries.iter().map(|(key, node)| (key.text.clone(), value(node))).collect()
        }
        _ => Members::new(),
    }
}
