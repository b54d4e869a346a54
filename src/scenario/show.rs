//! A plan for people, and as JSON.

use std::fmt::Write as _;

use quartermaster_actors::expression::Partial;
use quartermaster_proto::provider::{Members, Type, Value};

use super::check::{Checked, Step};
use super::world::Known;

/// What stands for a value that must not be shown.
const SENSITIVE: &str = "(sensitive)";

/// The plan as text: what would be done, in which order, with what.
pub fn to_text(checked: &Checked) -> String {
    let mut out = String::new();
    let count = checked.steps.len();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "scenario {}: {count} action{}", checked.name, if count == 1 { "" } else { "s" });
    for (place, node) in checked.order.iter().enumerate() {
        let Some(step) = checked.steps.get(*node) else { continue };
        let _ =
            writeln!(out, "\n{}. action.{} ({}){}", place + 1, step.id, step.provider, after(checked, *node));
        let width = step.attrs.keys().map(|name| name.chars().count()).max().unwrap_or_default();
        for (name, known) in &step.attrs {
            let _ = writeln!(out, "   {name:width$} = {}", value(known));
        }
        let _ = writeln!(out, "   {}", undo(step));
    }
    if !checked.planned_outputs.is_empty() {
        let _ = writeln!(out, "\noutputs");
        for (name, known) in &checked.planned_outputs {
            let _ = writeln!(out, "   {name} = {}", value(known));
        }
    }
    out
}

fn after(checked: &Checked, node: usize) -> String {
    let before: Vec<String> = checked
        .graph
        .before(node)
        .filter_map(|first| checked.steps.get(first))
        .map(|step| format!("action.{}", step.id))
        .collect();
    if before.is_empty() { String::new() } else { format!(", after {}", before.join(", ")) }
}

fn undo(step: &Step) -> String {
    match (&step.teardown, step.schema.returns_undo) {
        (Some((action, _)), _) => format!("taken back by {action}"),
        (None, Some(true)) => "taken back as the provider answers".to_owned(),
        (None, Some(false)) => "cannot be taken back".to_owned(),
        (None, None) => "taken back if the provider answers how".to_owned(),
    }
}

/// A value as far as it is known: `<string>` is a string that is not known yet.
fn value(known: &Known) -> String {
    if known.secret { SENSITIVE.to_owned() } else { partial(&known.value) }
}

fn partial(value: &Partial) -> String {
    match value {
        Partial::Known(value) => value.to_json(),
        Partial::Unknown(ty) => format!("<{ty}>"),
        Partial::List(items) => format!("[{}]", items.iter().map(partial).collect::<Vec<_>>().join(",")),
        Partial::Object(members) => {
            let each: Vec<String> = members
                .iter()
                .map(|(name, part)| format!("{}:{}", Value::from(name.as_str()).to_json(), partial(part)))
                .collect();
            format!("{{{}}}", each.join(","))
        }
    }
}

/// The plan as one JSON object.
pub fn to_json(checked: &Checked) -> String {
    let text = |text: &str| Value::from(text);
    let steps: Value = checked
        .order
        .iter()
        .filter_map(|node| checked.steps.get(*node).map(|step| (*node, step)))
        .map(|(node, step)| {
            let after: Value = checked
                .graph
                .before(node)
                .filter_map(|first| checked.steps.get(first))
                .map(|step| text(&step.id))
                .collect();
            let attrs: Members =
                step.attrs.iter().map(|(name, known)| (name.clone(), shown(known))).collect();
            let mut members = vec![
                ("step", text(&step.id)),
                ("provider", text(&step.provider)),
                ("action", text(&step.action.kind)),
                ("line", line(step.action.line)),
                ("after", after),
                ("attrs", Value::Object(attrs)),
            ];
            members.extend(step.teardown.as_ref().map(|(action, _)| ("teardown", text(action))));
            members.into_iter().collect::<Value>()
        })
        .collect();
    let outputs: Members =
        checked.planned_outputs.iter().map(|(name, known)| (name.clone(), shown(known))).collect();
    let plan: Value =
        [("scenario", text(&checked.name)), ("steps", steps), ("outputs", Value::Object(outputs))]
            .into_iter()
            .collect();
    plan.to_json()
}

/// `{"value":…}`, `{"unknown":TYPE}` or `{"sensitive":true}`.
fn shown(known: &Known) -> Value {
    let (name, value) = match (&known.value, known.secret) {
        (_, true) => ("sensitive", true.into()),
        (Partial::Known(value), false) => ("value", value.clone()),
        (partial, false) => ("unknown", ty(&partial.ty()).into()),
    };
    [(name, value)].into_iter().collect()
}

fn ty(ty: &Type) -> String {
    ty.to_string()
}

fn line(line: usize) -> Value {
    Value::from(u64::try_from(line).unwrap_or(u64::MAX))
}
