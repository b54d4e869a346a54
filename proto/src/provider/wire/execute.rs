//! What an action gave, and the calls that take it back.

use crate::provider::values::{Members, Part, Value};

use super::{
    names,
    warning::{Read, Warning, shown},
};

/// A call that can be made later: the undo of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The action's name.
    pub action: String,
    /// Its attributes.
    pub attrs: Members,
}

/// What an action answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    /// The outputs, read without a type.
    pub outputs: Members,
    /// The calls that undo the action, in the order they are to be made; empty when it has no undo.
    pub undo: Vec<Invocation>,
}

impl Invocation {
    fn from_wire(value: &Value) -> Option<Self> {
        let members = value.as_object()?;
        let action = members.get(names::ACTION)?.as_str()?.to_owned();
        let attrs = match members.get(names::ATTRS) {
            None | Some(Value::Null) => Members::new(),
            Some(attrs) => attrs.as_object()?.clone(),
        };
        Some(Self { action, attrs })
    }

    /// One call, a list of calls, or null for none; `None` for any other shape.
    pub(super) fn list_from_wire(value: &Value) -> Option<Vec<Self>> {
        match value {
            Value::Null => Some(Vec::new()),
            Value::List(calls) => calls.iter().map(Self::from_wire).collect(),
            one => Self::from_wire(one).map(|one| vec![one]),
        }
    }

    /// One call as an object, several as a list, none as nothing.
    pub(super) fn list_to_part(calls: &[Self]) -> Option<Part<'_>> {
        match calls {
            [] => None,
            [one] => Some(one.to_part()),
            several => Some(Part::List(several.iter().map(Self::to_part).collect())),
        }
    }

    fn to_part(&self) -> Part<'_> {
        Part::Fields(vec![
            (names::ACTION, Part::Text(&self.action)),
            (names::ATTRS, Part::Members(&self.attrs)),
        ])
    }

    /// What to log about undos whose action is not among `known`; they are kept and tried all the same.
    pub fn undeclared<'a>(
        undo: &'a [Self],
        known: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = Warning> + 'a {
        let unknown = undo.iter().filter(move |call| !known(&call.action));
        unknown.map(|call| Warning::UndeclaredUndo { action: shown(&call.action) })
    }
}

impl Executed {
    /// Reads the result of an action, the most likely form first; the error says what is wrong.
    pub(super) fn from_wire(result: Value) -> Result<Read<Self>, String> {
        let mut members = match result {
            Value::Null => Members::new(),
            Value::Object(members) => members,
            other => return Err(format!("the result should be an object but is {}", other.kind())),
        };
        let mut warnings = Vec::new();
        let undo = members.remove(names::UNDO);
        let inverse = members.remove(names::INVERSE);
        let has_undo = undo.is_some() || inverse.is_some();
        let undo = undo.filter(|undo| !undo.is_null()).or(inverse).unwrap_or_default();
        let undo = Invocation::list_from_wire(&undo)
            .ok_or("`undo` should be a call with `action` and `attrs`, a list of such, or null")?;
        let outputs = match members.remove(names::OUTPUTS) {
            Some(Value::Object(outputs)) => outputs,
            Some(Value::Null) => Members::new(),
            Some(other) => return Err(format!("`outputs` should be an object but is {}", other.kind())),
            None if has_undo || members.is_empty() => Members::new(),
            None => {
                warnings.push(Warning::BareOutputs);
                members
            }
        };
        Ok(Read { value: Self { outputs, undo }, warnings })
    }

    /// The members of a result that says this.
    pub(super) fn into_members(self) -> Members {
        let mut members = Members::from([(names::OUTPUTS.to_owned(), Value::Object(self.outputs))]);
        let mut calls = self.undo.into_iter().map(Value::from);
        let undo = match (calls.next(), calls.len()) {
            (None, _) => return members,
            (Some(one), 0) => one,
            (Some(first), _) => std::iter::once(first).chain(calls).collect(),
        };
        members.insert(names::UNDO.to_owned(), undo);
        members
    }
}

impl From<Invocation> for Value {
    fn from(call: Invocation) -> Self {
        [(names::ACTION, call.action.into()), (names::ATTRS, call.attrs.into())].into_iter().collect()
    }
}
