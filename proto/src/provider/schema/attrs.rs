//! Attributes checked against their declaration.

use crate::{
    provider::{
        types::{AnyEncoding, Type, unwrap_any, validate_at, wrap_any},
        values::{Complaint, Members, Path, Value},
        wire::{MASKED, shown},
    },
    text::escape_bounded,
};

use super::document::{ActionSchema, AttrSchema, Attrs};

impl ActionSchema {
    /// Checks outputs, which were read without a type, against their declaration.
    ///
    /// # Errors
    /// What is not as declared. The action was done all the same.
    pub fn check_outputs(&self, outputs: &Members) -> Result<(), Vec<Complaint>> {
        match &self.outputs {
            Some(declared) if declared.ty == Type::Any => Ok(()),
            Some(declared) => {
                validate_at(Path::default(), &declared.ty, &Value::Object(outputs.clone())).map(|_| ())
            }
            None if outputs.is_empty() => Ok(()),
            None => {
                let message = "outputs are not declared".to_owned();
                Err(vec![Complaint { path: Path::default(), message }])
            }
        }
    }

    /// Outputs as they were meant: with `cty` encoding values of type `any` are taken out of their wrappers.
    pub fn read_outputs(&self, outputs: Members, encoding: AnyEncoding) -> Members {
        match (&self.outputs, encoding) {
            (Some(declared), AnyEncoding::Cty) => {
                match unwrap_any(&declared.ty, &Value::Object(outputs.clone())) {
                    Value::Object(members) => members,
                    _ => outputs,
                }
            }
            _ => outputs,
        }
    }
}

/// What a declaration of attributes does with values.
pub trait Declared {
    /// Checks values against the declaration and converts them as they go on the wire: defaults are filled in, null and absent
    /// ones without a default are left out.
    ///
    /// # Errors
    /// Every complaint with its path: what is required and not there, what is not declared, what does not convert, what is none
    /// of the values allowed.
    fn check(&self, given: &Members) -> Result<Members, Vec<Complaint>>;

    /// Checked values as they are written: with `cty` encoding values of type `any` get their wrappers.
    fn for_wire(&self, checked: Members, encoding: AnyEncoding) -> Members;

    /// Values that a provider wrote (an undo), as they were meant: with `cty` encoding values of type `any` are taken out of their
    /// wrappers.
    fn received(&self, written: Members, encoding: AnyEncoding) -> Members;

    /// The values that must not be shown.
    fn sensitive<'a>(&'a self, given: &'a Members) -> Vec<&'a Value>;

    /// The values with the sensitive ones covered, for logs, records and traces.
    fn masked(&self, given: &Members) -> Members;
}

impl Declared for Attrs {
    fn check(&self, given: &Members) -> Result<Members, Vec<Complaint>> {
        let mut complaints = Vec::new();
        let mut checked = Members::new();
        for name in given.keys().filter(|name| !self.contains_key(*name)) {
            complaints.push(Complaint { path: Path::of(name), message: no_such(self) });
        }
        for (name, attr) in self {
            match attr.value(name, given.get(name)) {
                Ok(value) => checked.extend(value.map(|value| (name.clone(), value))),
                Err(found) => complaints.extend(found),
            }
        }
        if complaints.is_empty() { Ok(checked) } else { Err(complaints) }
    }

    fn for_wire(&self, checked: Members, encoding: AnyEncoding) -> Members {
        recoded(self, checked, encoding, wrap_any)
    }

    fn received(&self, written: Members, encoding: AnyEncoding) -> Members {
        recoded(self, written, encoding, unwrap_any)
    }

    fn sensitive<'a>(&'a self, given: &'a Members) -> Vec<&'a Value> {
        let hidden = self.iter().filter(|(_, attr)| attr.sensitive);
        hidden.filter_map(|(name, _)| given.get(name)).collect()
    }

    fn masked(&self, given: &Members) -> Members {
        let hides = |name: &String| self.get(name).is_some_and(|attr| attr.sensitive);
        let each = given.iter().map(|(name, value)| match value {
            value if value.is_null() || !hides(name) => (name.clone(), value.clone()),
            _ => (name.clone(), MASKED.into()),
        });
        each.collect()
    }
}

impl AttrSchema {
    /// One attribute's value, `None` when it is left out.
    fn value(&self, name: &str, given: Option<&Value>) -> Result<Option<Value>, Vec<Complaint>> {
        let complain = |message: String| Err(vec![Complaint { path: Path::of(name), message }]);
        let Some(given) = given.filter(|given| !given.is_null()) else {
            return match &self.default {
                None if self.required => complain(format!("required, {} needed", self.ty_shown())),
                default => Ok(default.clone()),
            };
        };
        let value = validate_at(Path::of(name), &self.ty, given)?;
        if !self.choices.is_empty() && !self.choices.contains(&value) {
            let allowed: Vec<String> = self.choices.iter().take(20).map(Value::to_json).collect();
            return complain(format!(
                "none of the values allowed: {}",
                escape_bounded(&allowed.join(", "), 120)
            ));
        }
        Ok(Some(value))
    }

    fn ty_shown(&self) -> String {
        escape_bounded(&self.ty.to_string(), 80)
    }
}

/// Every declared value changed by `change`, if the encoding is not the plain one.
fn recoded(
    attrs: &Attrs,
    values: Members,
    encoding: AnyEncoding,
    change: fn(&Type, &Value) -> Value,
) -> Members {
    if encoding == AnyEncoding::Plain {
        return values;
    }
    let each = values.into_iter().map(|(name, value)| {
        let value = attrs.get(&name).map_or_else(|| value.clone(), |attr| change(&attr.ty, &value));
        (name, value)
    });
    each.collect()
}

fn no_such(attrs: &Attrs) -> String {
    if attrs.is_empty() {
        return "no such attribute; none is declared".to_owned();
    }
    let known: Vec<String> = attrs.keys().take(20).map(|name| shown(name)).collect();
    format!("no such attribute; known: {}", escape_bounded(&known.join(", "), 120))
}
