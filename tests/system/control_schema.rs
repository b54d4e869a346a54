//! Just enough of JSON Schema to hold an answer against what was published about it.

use serde_json::Value;

/// What is wrong with this value, by place; empty when it fits.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, schema, value, "", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).expect("a reference points somewhere");
        return check(root, target, value, at, faults);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(root, part, value, at, faults);
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(parts) = schema[choice].as_array() {
            let fits = |part: &Value| {
                let mut own = Vec::new();
                check(root, part, value, at, &mut own);
                own.is_empty()
            };
            if !parts.iter().any(fits) {
                faults.push(format!("{at}: none of {choice} fits {value}"));
            }
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
        faults.push(format!("{at}: {value} is no {kinds:?}"));
        return;
    }
    if let Some(object) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                faults.push(format!("{at}/{name} is missing"));
            }
        }
        for (name, value) in object {
            match &schema["properties"][name] {
                Value::Null if schema["additionalProperties"] == false => {
                    faults.push(format!("{at}/{name} is unknown"));
                }
                Value::Null => {}
                part => check(root, part, value, &format!("{at}/{name}"), faults),
            }
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{at}/{index}"), faults);
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("an unknown type {other}"),
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": ["string", "null"]}},
        "$defs": {"A": {"type": "array", "items": {"type": "integer"}}},
    });
    let of = |value: serde_json::Value| faults(&schema, &value).len();
    assert_eq!(of(serde_json::json!({"a": [1, 2], "b": null})), 0);
    assert_eq!(of(serde_json::json!({"b": 1})), 2);
    assert_eq!(of(serde_json::json!({"a": [1, "x"], "c": 1})), 2);
}
