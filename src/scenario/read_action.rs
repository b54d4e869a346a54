//! The `action` blocks of a scenario.

use std::time::Duration;

use hcl::edit::structure::{Attribute, Block};
use quartermaster_actors::expression::Expression;
use quartermaster_actors::steps::Retry;
use quartermaster_proto::provider::{ErrorCode, Number, is_name};

use super::document::{Action, Attrs, Teardown};
use super::fault::Faults;
use super::read::Reader;
use crate::config::parse_duration;

/// The most tries of a step.
const MOST_ATTEMPTS: u64 = 100;

/// Reads one block.
pub(super) fn action(reader: Reader<'_>, block: &Block, faults: &mut Faults) -> Option<Action> {
    let [kind, name] = reader.labels::<2>(block, faults, "a type and a name")?;
    let mut action = Action {
        line: reader.lines.of(block),
        kind,
        name,
        provider: None,
        depends_on: Vec::new(),
        attrs: Attrs::new(),
        teardown: None,
        timeout: None,
        attempts: 1,
        retry: Retry::default(),
    };
    for attribute in reader.attributes(&block.body, &["lifecycle"], faults) {
        match attribute.key.value().as_str() {
            "provider" => action.provider = provider(reader, attribute, faults),
            "depends_on" => depends_on(reader, attribute, &mut action, faults),
            name => {
                if let Some(value) = reader.expression(attribute, faults) {
                    action.attrs.insert(name.to_owned(), value);
                }
            }
        }
    }
    let mut blocks = block.body.get_blocks("lifecycle");
    if let Some(block) = blocks.next() {
        lifecycle(reader, block, &mut action, faults);
    }
    if let Some(second) = blocks.next() {
        faults.error(reader.lines.of(second), "an action has one `lifecycle` block");
    }
    Some(action)
}

/// `provider = dns` or `provider = "dns"`.
fn provider(reader: Reader<'_>, attribute: &Attribute, faults: &mut Faults) -> Option<(usize, String)> {
    let value = reader.expression(attribute, faults)?;
    let name = match value.as_reference().map(|reference| reference.names()) {
        Some(names) => <[&str; 1]>::try_from(names).ok().map(|[name]| name.to_owned()),
        None => value.as_literal().and_then(|value| value.as_str()).map(str::to_owned),
    };
    let name = name.filter(|name| is_name(name));
    if name.is_none() {
        faults.error(value.line, "`provider` is the name of a provider in `required_providers`");
    }
    name.map(|name| (value.line, name))
}

fn depends_on(reader: Reader<'_>, attribute: &Attribute, action: &mut Action, faults: &mut Faults) {
    let Some(value) = reader.expression(attribute, faults) else { return };
    let wrong = "`depends_on` is a list of actions: [action.TYPE.NAME]";
    let Some(items) = value.as_list() else {
        faults.error(value.line, wrong);
        return;
    };
    for item in items {
        match item.as_reference() {
            Some(reference) if is_action(reference.names().as_slice()) && reference.path.len() == 3 => {
                action.depends_on.push(reference.clone());
            }
            _ => faults.error(item.line, wrong),
        }
    }
}

fn is_action(names: &[&str]) -> bool {
    matches!(names, ["action", _, _])
}

/// What takes the action back, its limit and its tries.
fn lifecycle(reader: Reader<'_>, block: &Block, action: &mut Action, faults: &mut Faults) {
    for attribute in reader.attributes(&block.body, &["teardown", "retry"], faults) {
        match attribute.key.value().as_str() {
            "timeout" => action.timeout = time(reader, attribute, "timeout", faults),
            other => {
                let line = reader.lines.of(attribute);
                faults.error(line, format!("`{other}` in `lifecycle` is not supported"));
            }
        }
    }
    for block in block.body.get_blocks("retry") {
        for attribute in reader.attributes(&block.body, &[], faults) {
            match attribute.key.value().as_str() {
                "attempts" => action.attempts = attempts(reader, attribute, faults),
                "codes" => action.retry.codes = codes(reader, attribute, faults),
                name @ ("base" | "max") => {
                    if let Some(delay) = time(reader, attribute, name, faults) {
                        *(if name == "base" { &mut action.retry.base } else { &mut action.retry.max }) =
                            delay;
                    }
                }
                other => {
                    faults
                        .error(reader.lines.of(attribute), format!("`{other}` in `retry` is not supported"));
                }
            }
        }
    }
    for block in block.body.get_blocks("teardown") {
        let line = reader.lines.of(block);
        if action.teardown.is_some() {
            faults.error(line, "an action has one `teardown` block");
        }
        let name = match block.labels.as_slice() {
            [] => None,
            _ => reader.labels::<1>(block, faults, "at most one name, that of the action").map(|[name]| name),
        };
        let attrs: Attrs = reader.attrs(&block.body, &[], faults);
        action.teardown = Some(Teardown { line, action: name, attrs });
    }
}

/// The codes after which a step is tried again.
fn codes(reader: Reader<'_>, attribute: &Attribute, faults: &mut Faults) -> Option<Vec<ErrorCode>> {
    let value = reader.expression(attribute, faults)?;
    let items = value.as_list().map(<[Expression]>::to_vec).or_else(|| {
        let items = value.as_literal()?.as_list()?;
        Some(items.iter().map(|item| Expression::literal(value.line, item.clone())).collect())
    });
    let code = |item: &Expression| item.as_literal()?.as_str().map(ErrorCode::from_wire);
    let codes = items.and_then(|items| items.iter().map(code).collect::<Option<Vec<_>>>());
    if codes.is_none() {
        faults.error(value.line, "`codes` is a list of texts such as [\"unavailable\", \"rate_limited\"]");
    }
    codes
}

fn time(reader: Reader<'_>, attribute: &Attribute, name: &str, faults: &mut Faults) -> Option<Duration> {
    let text = reader.literal_text(attribute, faults)?;
    match parse_duration(&text) {
        Ok(limit) => Some(limit),
        Err(error) => {
            faults.error(reader.lines.of(attribute), format!("`{name}` is a time such as \"30s\": {error}"));
            None
        }
    }
}

fn attempts(reader: Reader<'_>, attribute: &Attribute, faults: &mut Faults) -> u32 {
    let value = reader.expression(attribute, faults);
    let number = value.as_ref().and_then(Expression::as_literal).and_then(|value| value.as_number());
    let attempts = number.and_then(Number::as_u64).filter(|attempts| (1..=MOST_ATTEMPTS).contains(attempts));
    attempts.and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or_else(|| {
        let what = format!("`attempts` is a whole number from 1 to {MOST_ATTEMPTS}");
        faults.error(reader.lines.of(attribute), what);
        1
    })
}
