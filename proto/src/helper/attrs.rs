//! A helper that is a provider: its action, and what that has to take.

use crate::provider::{ActionSchema, Schema, Type, Value, validate};

/// The action that decides what becomes of a host.
pub const PROVISION: &str = "provision";

/// What it is given: the members of the helper's input. One that is null goes unsaid, one that is not declared is not sent.
pub const ATTRS: [&str; 5] = ["identity", "csr", "ed25519_pubkey", "inventory", "jwt"];

/// Why a provider with this schema is no helper, in words; empty when it is one.
///
/// `always` are those of [`ATTRS`] that are there for each host, as far as the features that are on say so.
pub fn misfits(schema: &Schema, always: &[&str]) -> Vec<String> {
    let Some(action) = schema.actions.get(PROVISION) else {
        let known: Vec<&str> = schema.actions.keys().map(String::as_str).take(20).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return vec![format!("it has no action `{PROVISION}`; its actions: {known}")];
    };
    let mut misfits = missing(action, always);
    for name in ATTRS {
        let Some(attr) = action.attrs.get(name) else { continue };
        if let Err(complaints) = validate(&attr.ty, &sample(name)) {
            let why: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            misfits.push(format!("`{name}` is declared as {}, which it is not: {}", attr.ty, why.join("; ")));
        }
    }
    match action.outputs.as_ref().map(|outputs| &outputs.ty) {
        None => misfits.push(format!("`{PROVISION}` declares no outputs; declare `any`")),
        Some(Type::Any | Type::Object(_) | Type::Map(_)) => {}
        Some(other) => misfits.push(format!("the outputs of `{PROVISION}` are {other}, not an object")),
    }
    misfits
}

fn missing(action: &ActionSchema, always: &[&str]) -> Vec<String> {
    let required = action.attrs.iter().filter(|(_, attr)| attr.required && attr.default.is_none());
    let each = required.filter_map(|(name, _)| {
        if !ATTRS.contains(&name.as_str()) {
            let known = ATTRS.join(", ");
            return Some(format!("it requires `{name}`, which no helper is given (it is given {known})"));
        }
        (!always.contains(&name.as_str()))
            .then(|| format!("it requires `{name}`, which is not there with the features that are on"))
    });
    each.collect()
}

/// What the attribute looks like.
fn sample(name: &str) -> Value {
    let object = |names: &[&str]| names.iter().map(|name| (*name, Value::from("x"))).collect();
    match name {
        "csr" => object(&["csr", "public_key", "ssldir"]),
        "ed25519_pubkey" => object(&["directory", "public_key", "signature"]),
        "jwt" => [("exp", Value::from(1i64)), ("chpd", Value::from(true)), ("extensions", Value::empty())]
            .into_iter()
            .collect(),
        _ => Value::from("x"),
    }
}
