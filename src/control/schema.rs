//! JSON schemas of what is asked and answered, made from the types themselves.

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

/// Where the generator puts what is referred to, and where JSON Schema does.
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// The schema of a type, complete in itself, without the sentences for people, which stand in the documentation.
pub fn schema_of<T: ToSchema + PartialSchema>() -> Value {
    let mut schema = serde_json::to_value(T::schema()).unwrap_or_default();
    let mut used = Vec::new();
    T::schemas(&mut used);
    let definitions: Map<String, Value> = used
        .into_iter()
        .map(|(name, schema)| (name, tidy(serde_json::to_value(schema).unwrap_or_default())))
        .collect();
    schema = tidy(schema);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        if !definitions.is_empty() {
            object.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    schema
}

/// References point into the schema itself, and descriptions are left out.
fn tidy(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(key, value)| !(key == "description" && value.is_string()));
            Value::Object(kept.map(|(key, value)| (key, tidy(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidy).collect()),
        Value::String(text) => Value::String(text.replace(COMPONENTS, DEFINITIONS)),
        other => other,
    }
}
