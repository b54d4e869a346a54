//! A schema for people to read.

use std::fmt::Write as _;

use crate::text::escape_bounded;

use super::document::{ActionSchema, AttrSchema, Attrs, Schema};

/// Longest text of the provider's shown, in characters.
const MAX_TEXT: usize = 200;

impl Schema {
    /// The schema as plain text: name and version, configuration, actions with what they take and give. Everything that the
    /// provider wrote is escaped and cut; sensitive defaults are not shown.
    pub fn to_text(&self) -> String {
        let mut out = Text(String::new());
        let version =
            if self.version.is_empty() { String::new() } else { format!(" {}", safe(&self.version)) };
        out.line(0, &format!("{}{version} (protocol 1)", safe(&self.name)));
        if let Some(extensions) = &self.extensions {
            let mut names = extensions.offered.iter().map(|name| safe(name)).collect::<Vec<_>>();
            if extensions.max_in_flight > 0 {
                names.push(format!("{} calls at a time", extensions.max_in_flight));
            }
            out.line(
                0,
                &format!(
                    "extensions: {}",
                    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
                ),
            );
        }
        out.gap();
        out.line(0, "config");
        out.attrs(1, &self.config);
        for (name, action) in &self.actions {
            out.gap();
            out.action(name, action);
        }
        if self.actions.is_empty() {
            out.gap();
            out.line(0, "no actions");
        }
        out.0
    }
}

struct Text(String);

impl Text {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{}{text}", "  ".repeat(indent));
    }

    fn gap(&mut self) {
        self.0.push('\n');
    }

    fn action(&mut self, name: &str, action: &ActionSchema) {
        self.line(0, &format!("action {}", safe(name)));
        if !action.description.is_empty() {
            self.line(1, &safe(&action.description));
        }
        self.attrs(1, &action.attrs);
        match &action.outputs {
            Some(outputs) => self.line(1, &format!("gives {}{}", outputs.ty, about(outputs))),
            None => self.line(1, "gives nothing"),
        }
        let mut notes = Vec::new();
        notes.extend(action.idempotent.then(|| "safe to repeat".to_owned()));
        notes.extend(action.exclusive.then(|| "runs alone".to_owned()));
        notes.extend(action.timeout.map(|limit| match limit.as_millis() {
            0 => "no time limit".to_owned(),
            millis => format!("limit {millis} ms"),
        }));
        notes.extend(
            action
                .returns_undo
                .map(|undo| if undo { "can be undone" } else { "cannot be undone" }.to_owned()),
        );
        if !notes.is_empty() {
            self.line(1, &notes.join(", "));
        }
    }

    fn attrs(&mut self, indent: usize, attrs: &Attrs) {
        if attrs.is_empty() {
            self.line(indent, "takes nothing");
        }
        let width = attrs.keys().map(|name| name.chars().count()).max().unwrap_or_default().min(30);
        for (name, attr) in attrs {
            self.line(indent, &format!("{:width$}  {}{}", safe(name), attr.ty, about(attr)));
        }
    }
}

/// What there is to say of an attribute besides its type.
fn about(attr: &AttrSchema) -> String {
    let mut notes = Vec::new();
    notes.extend(attr.required.then(|| "required".to_owned()));
    notes.extend(attr.default.as_ref().map(|default| {
        if attr.sensitive {
            "has a default".to_owned()
        } else {
            format!("default {}", safe(&default.to_json()))
        }
    }));
    if !attr.choices.is_empty() && !attr.sensitive {
        let choices: Vec<_> = attr.choices.iter().map(|choice| safe(&choice.to_json())).collect();
        notes.push(format!("one of {}", choices.join(" ")));
    }
    notes.extend(attr.sensitive.then(|| "sensitive".to_owned()));
    notes.extend(attr.is_path.then(|| "path".to_owned()));
    notes.extend(attr.deprecated.as_ref().map(|why| format!("deprecated: {}", safe(why))));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let description =
        if attr.description.is_empty() { String::new() } else { format!("  {}", safe(&attr.description)) };
    format!("{notes}{description}")
}

fn safe(text: &str) -> String {
    escape_bounded(text, MAX_TEXT)
}
