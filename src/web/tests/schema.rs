//! Just enough of JSON Schema to compare an answer with the document of the API. Strict: what the schema does not name is a
//! fault, and so is a word of the schema that is not understood here.

use serde_json::Value;

/// Faults of `value` under `schema`, each with its place.
pub fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(document, schema, value, "", &mut faults);
    faults
}

const UNDERSTOOD: [&str; 18] = [
    "$ref",
    "allOf",
    "type",
    "properties",
    "required",
    "items",
    "oneOf",
    "anyOf",
    "enum",
    "description",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "title",
    "additionalProperties",
    "example",
];

fn check(document: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let Some(words) = schema.as_object() else {
        faults.push(format!("{place}: the schema is {schema}"));
        return;
    };
    for word in words.keys().filter(|word| !UNDERSTOOD.contains(&word.as_str())) {
        faults.push(format!("{place}: the schema says {word}, which is not understood"));
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let there = document.pointer(reference.trim_start_matches('#'));
        match there {
            Some(there) => check(document, there, value, place, faults),
            None => faults.push(format!("{place}: there is no {reference}")),
        }
        return;
    }
    if let Some(all) = schema["allOf"].as_array() {
        check(document, &merged(document, all), value, place, faults);
        return;
    }
    if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        let fits = |choice: &Value| {
            let mut inner = Vec::new();
            check(document, choice, value, place, &mut inner);
            inner.is_empty()
        };
        if !choices.iter().any(fits) {
            faults.push(format!("{place}: {value} is none of the choices"));
        }
        return;
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        faults.push(format!("{place}: {value} is none of {values:?}"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => {
            faults.push(format!("{place}: the schema has no type"));
            return;
        }
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !types.iter().any(|wanted| *wanted == kind || (*wanted == "number" && kind == "integer")) {
        faults.push(format!("{place}: {kind} instead of {types:?}"));
        return;
    }
    if schema["minimum"].as_f64().zip(value.as_f64()).is_some_and(|(least, number)| number < least) {
        faults.push(format!("{place}: {value} is too small"));
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        check(document, &schema["items"], item, &format!("{place}/{at}"), faults);
    }
    if let Some(members) = value.as_object()
        && words.contains_key("properties")
    {
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => check(document, schema, member, &format!("{place}/{name}"), faults),
                None => faults.push(format!("{place}/{name}: the schema does not name it")),
            }
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                faults.push(format!("{place}/{name}: missing"));
            }
        }
    }
}

/// Several objects that are one: the members of all of them.
fn merged(document: &Value, all: &[Value]) -> Value {
    let mut one = serde_json::json!({"type": "object", "properties": {}, "required": []});
    for part in all {
        let part = match part["$ref"].as_str() {
            Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap_or(part),
            None => part,
        };
        for (name, schema) in part["properties"].as_object().into_iter().flatten() {
            one["properties"][name] = schema.clone();
        }
        let required = part["required"].as_array().cloned().unwrap_or_default();
        if let Some(list) = one["required"].as_array_mut() {
            list.extend(required);
        }
    }
    one
}

#[test]
fn faults_are_found() {
    let document = serde_json::json!({"components": {"schemas": {"Host": {
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "tries": {"type": ["integer", "null"], "minimum": 0},
            "next": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Host"}]},
        },
    }}}});
    let schema = serde_json::json!({"$ref": "#/components/schemas/Host"});
    let check = |value: Value| faults(&document, &schema, &value).len();
    assert_eq!(check(serde_json::json!({"name": "a", "tries": null, "next": {"name": "b", "tries": 2}})), 0);
    assert_eq!(check(serde_json::json!({"tries": 1})), 1, "missing");
    assert_eq!(check(serde_json::json!({"name": 1})), 1, "a wrong type");
    assert_eq!(check(serde_json::json!({"name": "a", "tries": -1})), 1, "too small");
    assert_eq!(check(serde_json::json!({"name": "a", "more": 1})), 1, "not named");
    assert_eq!(check(serde_json::json!({"name": "a", "next": {"name": 2}})), 1, "deep inside");
    let both = serde_json::json!({"allOf": [schema, {"type": "object", "properties": {"site": {"type": "string"}}, "required": ["site"]}]});
    assert_eq!(faults(&document, &both, &serde_json::json!({"name": "a", "site": "x"})).len(), 0);
    assert_eq!(
        faults(&document, &both, &serde_json::json!({"name": "a", "more": 1})).len(),
        2,
        "missing, and not named"
    );
    assert_eq!(faults(&document, &serde_json::json!({"type": "string", "magic": 1}), &"x".into()).len(), 1);
    assert_eq!(faults(&document, &serde_json::json!({"$ref": "#/nothing"}), &"x".into()).len(), 1);
}
