//! What steps refer to: as much of it as those that come after `configure` need, and what of it must not be shown.

use quartermaster_proto::provider::{Mask, Members, Value};

use crate::expression::{Access, Reference};

/// Shorter texts of the helper's reply are no secrets: covering every `yes` would cover what an error says.
const SHORTEST_SECRET: usize = 5;

/// The part of `roots` to which these references lead.
pub fn pruned<'r>(roots: &Members, references: impl IntoIterator<Item = &'r Reference>) -> Members {
    let mut kept = Members::new();
    for reference in references {
        let Some((Access::Name(name), path)) = reference.path.split_first() else { continue };
        if let Some(root) = roots.get(name) {
            keep(kept.entry(name.clone()).or_insert_with(Value::empty), root, path);
        }
    }
    kept
}

/// Copies what lies at the end of `path`, and whatever lies in a list on the way whole.
fn keep(into: &mut Value, from: &Value, path: &[Access]) {
    if let (Some((Access::Name(name), rest)), Value::Object(members)) = (path.split_first(), from) {
        let Some(found) = members.get(name) else { return };
        if !matches!(into, Value::Object(_)) {
            *into = Value::empty();
        }
        if let Value::Object(kept) = into {
            let start = if found.as_object().is_some() { Value::empty() } else { Value::Null };
            keep(kept.entry(name.clone()).or_insert(start), found, rest);
        }
        return;
    }
    *into = from.clone();
}

/// A mask over what of these roots came from the helper.
pub fn mask(roots: &Members) -> Mask {
    let mut secrets = Vec::new();
    if let Some(helper) = roots.get("helper") {
        collect(helper, &mut secrets);
    }
    Mask::new(secrets)
}

fn collect<'v>(value: &'v Value, secrets: &mut Vec<&'v Value>) {
    match value {
        Value::String(text) if text.len() >= SHORTEST_SECRET => secrets.push(value),
        Value::List(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Object(members) => members.values().for_each(|item| collect(item, secrets)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::provider::Limits;

    use super::super::expression::Template;
    use super::*;

    #[test]
    fn only_what_is_referred_to_is_kept() {
        let roots = r#"{"server":{"identity":"w","facts":{"os":"linux","big":{"x":[1]}},"jwt":{"a":1}},"helper":{"key":"PEM"}}"#;
        let Ok(Value::Object(roots)) = Value::from_json(roots, &Limits::PROVIDER) else { panic!() };
        let kept = |text: &str| {
            let template = Template::read(&text.into()).unwrap();
            Value::Object(pruned(&roots, template.references())).to_json()
        };
        assert_eq!(kept("${server.facts.os}"), r#"{"server":{"facts":{"os":"linux"}}}"#);
        assert_eq!(
            kept("${server.facts.os} ${server.facts.big.x[0]} ${helper.key} ${server.none.x}"),
            r#"{"helper":{"key":"PEM"},"server":{"facts":{"big":{"x":[1]},"os":"linux"}}}"#
        );
        assert_eq!(
            kept("${server.facts.big.x[0]} ${server.facts}"),
            r#"{"server":{"facts":{"big":{"x":[1]},"os":"linux"}}}"#
        );
        assert_eq!(kept("none"), "{}");
    }

    #[test]
    fn what_the_helper_said_is_covered_but_not_every_word() {
        let roots = r#"{"server":{"identity":"web1.example.net"},"helper":{"key":"hunter2","msg":"yes","configuration":{"a":"s3cret"}}}"#;
        let Ok(Value::Object(roots)) = Value::from_json(roots, &Limits::PROVIDER) else { panic!() };
        assert_eq!(
            mask(&roots).text("hunter2 and s3cret for web1.example.net: yes"),
            "*** and *** for web1.example.net: yes"
        );
    }
}
