//! The two ways to write a value whose type is `any`.

use std::collections::BTreeMap;

use crate::provider::{
    values::{Members, Value},
    wire::names,
};

use super::expression::{Field, Type};

/// How values of type `any` stand on the wire (setting `compat.any_encoding`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnyEncoding {
    /// Plain JSON.
    #[default]
    Plain,
    /// With their type beside them, `{"value":…,"type":…}`, as the cty library writes them.
    Cty,
}

/// `value`, which was converted to `ty`, with every part whose type is `any` put in a wrapper that names its type. Null has no
/// type of its own and stays plain.
pub fn wrap_any(ty: &Type, value: &Value) -> Value {
    over_any(ty, value, &|value| match value {
        Value::Null => Value::Null,
        value => [(names::ANY_VALUE, value.clone()), (names::ANY_TYPE, type_of(value))].into_iter().collect(),
    })
}

/// The opposite of [`wrap_any`]: takes values out of their wrappers and leaves everything else alone.
pub fn unwrap_any(ty: &Type, value: &Value) -> Value {
    over_any(ty, value, &|value| match value {
        Value::Object(members) if members.len() == 2 && members.get(names::ANY_TYPE).is_some_and(is_type) => {
            members.get(names::ANY_VALUE).unwrap_or(value).clone()
        }
        value => value.clone(),
    })
}

/// Rebuilds `value` with `change` applied to each part of type `any`.
fn over_any(ty: &Type, value: &Value, change: &dyn Fn(&Value) -> Value) -> Value {
    match (ty, value) {
        (Type::Any, value) => change(value),
        (Type::List(item) | Type::Set(item), Value::List(items)) => {
            items.iter().map(|value| over_any(item, value, change)).collect()
        }
        (Type::Tuple(types), Value::List(items)) if types.len() == items.len() => {
            types.iter().zip(items).map(|(ty, value)| over_any(ty, value, change)).collect()
        }
        (Type::Map(item), Value::Object(members)) => {
            members.iter().map(|(name, value)| (name.clone(), over_any(item, value, change))).collect()
        }
        (Type::Object(fields), Value::Object(members)) => each_field(fields, members, change),
        (_, value) => value.clone(),
    }
}

fn each_field(
    fields: &BTreeMap<String, Field>,
    members: &Members,
    change: &dyn Fn(&Value) -> Value,
) -> Value {
    let each = members.iter().map(|(name, value)| match fields.get(name) {
        Some(field) => (name.clone(), over_any(&field.ty, value, change)),
        None => (name.clone(), value.clone()),
    });
    each.collect()
}

/// The type of a JSON value in cty's own JSON: arrays are tuples, objects are objects, null has none.
fn type_of(value: &Value) -> Value {
    match value {
        Value::Null => names::CTY_DYNAMIC.into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "string".into(),
        Value::List(items) => {
            [Value::from("tuple"), items.iter().map(type_of).collect()].into_iter().collect()
        }
        Value::Object(members) => {
            let fields = members.iter().map(|(name, value)| (name.clone(), type_of(value))).collect();
            [Value::from("object"), fields].into_iter().collect()
        }
    }
}

/// Whether a value is a type as cty writes one.
fn is_type(value: &Value) -> bool {
    match value {
        Value::String(name) => matches!(name.as_str(), "bool" | "number" | "string" | names::CTY_DYNAMIC),
        Value::List(parts) => match parts.as_slice() {
            [Value::String(kind), of] => match kind.as_str() {
                "list" | "set" | "map" => is_type(of),
                "tuple" => of.as_list().is_some_and(|types| types.iter().all(is_type)),
                "object" => of.as_object().is_some_and(|fields| fields.values().all(is_type)),
                _ => false,
            },
            // An object with fields that may be left out has them in a third place.
            [Value::String(kind), Value::Object(fields), Value::List(_)] => {
                kind.as_str() == "object" && fields.values().all(is_type)
            }
            _ => false,
        },
        _ => false,
    }
}
