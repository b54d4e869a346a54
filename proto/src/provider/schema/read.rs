//! Schemas read and judged.

use std::time::Duration;

use crate::{
    json::Limits,
    provider::{
        types::{Type, read_default, validate_at},
        values::{Members, Number, Path, Value, parse},
        wire::{HostCode, ProviderError, Read, Warning, names, shown},
    },
    text::escape_bounded,
};

use super::{
    document::{ActionSchema, AttrSchema, Attrs, PROTOCOL, Schema, is_name},
    extension::{Extension, Extensions, strings},
};

/// Most faults kept of one schema.
const MAX_FAULTS: usize = 50;

/// One thing that is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct SchemaFault {
    /// Where, such as `actions.record_create.attrs.ttl`.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// There is none.
    #[error("no schema: {0}")]
    Missing(String),
    /// The provider speaks something else.
    #[error("the provider speaks protocol {found}, this host speaks \"{PROTOCOL}\"")]
    Protocol {
        /// What the provider says, escaped and cut.
        found: String,
    },
    /// Parts of it are wrong.
    #[error("{}", first(.0))]
    Faults(Vec<SchemaFault>),
}

fn first(faults: &[SchemaFault]) -> String {
    let Some(first) = faults.first() else { return "the schema is wrong".to_owned() };
    let more = if faults.len() > 1 { format!(" (and {} more)", faults.len() - 1) } else { String::new() };
    format!("{}{more}", escape_bounded(&first.to_string(), 260))
}

impl From<SchemaError> for ProviderError {
    fn from(error: SchemaError) -> Self {
        let code = match error {
            SchemaError::Protocol { .. } => HostCode::UnsupportedProtocol,
            SchemaError::Missing(_) | SchemaError::Faults(_) => HostCode::BadSchema,
        };
        let short = Self::new(code, error.to_string());
        match error {
            SchemaError::Faults(faults) => {
                let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
                short.with_detail(lines.join("\n"))
            }
            _ => short,
        }
    }
}

impl Schema {
    /// Reads all that the `schema` subcommand wrote: one JSON document, also over several lines, bare or in an object with `schema`.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn from_probe(stdout: &[u8]) -> Result<Read<Self>, SchemaError> {
        let missing = |what: String| Err(SchemaError::Missing(what));
        let stdout = stdout.strip_prefix("\u{feff}".as_bytes()).unwrap_or(stdout);
        let text = match std::str::from_utf8(stdout) {
            Ok(text) if text.trim_ascii().is_empty() => return missing("nothing was written".to_owned()),
            Ok(text) => text,
            Err(error) => return missing(format!("the output is not UTF-8 at byte {}", error.valid_up_to())),
        };
        match parse(text, &Limits::PROVIDER_SCHEMA) {
            Err(error) => missing(format!("the output is not one JSON document: {error}")),
            Ok(parsed) => {
                let mut read = Self::from_value(&parsed.value)?;
                read.warnings.extend(parsed.repeated.map(|name| Warning::Repeated { name }));
                Ok(read)
            }
        }
    }

    /// Reads a schema, bare or in an object with `schema`.
    ///
    /// # Errors
    /// [`SchemaError`], with every fault that was found.
    pub fn from_value(document: &Value) -> Result<Read<Self>, SchemaError> {
        let bare = |value: &Value| value.as_object().cloned();
        let members = document.as_object().and_then(|members| match members.get(names::SCHEMA) {
            Some(schema) => bare(schema),
            None if members.contains_key(names::PROTOCOL) => bare(document),
            None => None,
        });
        let Some(members) = members else {
            return Err(SchemaError::Missing(
                "an object with `protocol`, or one with `schema`, is needed".to_owned(),
            ));
        };
        let mut reader = Reader { faults: Vec::new(), warnings: Vec::new() };
        reader.protocol(members.get(names::PROTOCOL))?;
        let schema = reader.schema(&members);
        if reader.faults.is_empty() {
            Ok(Read { value: schema, warnings: reader.warnings })
        } else {
            Err(SchemaError::Faults(reader.faults))
        }
    }
}

/// Members of one object and where it stands.
struct At<'a> {
    place: String,
    members: &'a Members,
}

impl At<'_> {
    fn inside(&self, name: &str) -> String {
        if self.place.is_empty() { shown(name) } else { format!("{}.{}", self.place, shown(name)) }
    }

    /// A member, unless absent or null.
    fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }
}

struct Reader {
    faults: Vec<SchemaFault>,
    warnings: Vec<Warning>,
}

impl Reader {
    fn fault(&mut self, place: String, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(SchemaFault { place, message: message.into() });
        }
    }

    fn warn(&mut self, place: String, message: &str) {
        if self.warnings.len() < MAX_FAULTS {
            self.warnings.push(Warning::Schema { place, message: message.to_owned() });
        }
    }

    fn protocol(&mut self, found: Option<&Value>) -> Result<(), SchemaError> {
        let found = match found {
            Some(Value::String(text)) if text.as_str() == PROTOCOL => return Ok(()),
            Some(Value::Number(number)) if number.as_str() == PROTOCOL => {
                self.warnings.push(Warning::ProtocolNumber);
                return Ok(());
            }
            Some(Value::String(text)) => format!("\"{}\"", shown(text)),
            Some(Value::Number(number)) => shown(number.as_str()),
            Some(other) => format!("({})", other.kind()),
            None => "(none named)".to_owned(),
        };
        Err(SchemaError::Protocol { found })
    }

    fn schema(&mut self, members: &Members) -> Schema {
        let at = At { place: String::new(), members };
        let name = self.text(&at, names::NAME);
        if name.is_empty() {
            self.fault(names::NAME.to_owned(), "a name is needed");
        }
        let mut schema = Schema {
            name,
            version: self.text(&at, names::VERSION),
            config: self.attrs(&at, names::CONFIG),
            protocols: self.list_of_text(&at, names::PROTOCOLS),
            extensions: None,
            ..Schema::default()
        };
        for (name, action) in self.each(&at, names::ACTIONS) {
            let action = self.action(&action);
            schema.actions.insert(name, action);
        }
        schema.extensions = self.extensions(&at);
        schema
    }

    /// The objects of a map of objects, by name.
    fn each<'a>(&mut self, at: &At<'a>, member: &str) -> Vec<(String, At<'a>)> {
        let place = at.inside(member);
        let members = match at.members.get(member) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Object(members)) => members,
            Some(other) => {
                self.fault(place, format!("an object is needed, this is {}", other.kind()));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for (name, value) in members {
            let place = format!("{place}.{}", shown(name));
            match value {
                _ if !is_name(name) => self.fault(place, "the name should be letters, digits, `_` and `-`"),
                Value::Object(members) => found.push((name.clone(), At { place, members })),
                other => self.fault(place, format!("an object is needed, this is {}", other.kind())),
            }
        }
        found
    }

    fn attrs(&mut self, at: &At<'_>, member: &str) -> Attrs {
        let each = self.each(at, member);
        each.into_iter().filter_map(|(name, at)| Some((name.clone(), self.attr(&at, &name)?))).collect()
    }

    fn action(&mut self, at: &At<'_>) -> ActionSchema {
        let outputs = match at.get(names::OUTPUTS) {
            None => None,
            Some(Value::Object(members)) => {
                self.attr(&At { place: at.inside(names::OUTPUTS), members }, names::OUTPUTS)
            }
            Some(other) => {
                self.fault(
                    at.inside(names::OUTPUTS),
                    format!("an object is needed, this is {}", other.kind()),
                );
                None
            }
        };
        ActionSchema {
            description: self.text(at, names::DESCRIPTION),
            attrs: self.attrs(at, names::ATTRS),
            outputs,
            idempotent: self.flag(at, names::IDEMPOTENT).unwrap_or_default(),
            timeout: self.whole(at, names::TIMEOUT_MS).map(Duration::from_millis),
            exclusive: self.flag(at, names::EXCLUSIVE).unwrap_or_default(),
            returns_undo: self.flag(at, names::RETURNS_UNDO),
        }
    }

    /// `None` when its type is not understood, which is a fault.
    fn attr(&mut self, at: &At<'_>, name: &str) -> Option<AttrSchema> {
        let Some(ty) = at.get(names::TYPE) else {
            self.fault(at.place.clone(), "a type is needed");
            return None;
        };
        let Some(text) = ty.as_str() else {
            self.fault(at.inside(names::TYPE), format!("the type should be a string, this is {}", ty.kind()));
            return None;
        };
        let ty = match text.parse::<Type>() {
            Ok(ty) => ty,
            Err(error) => {
                self.fault(at.inside(names::TYPE), error.to_string());
                return None;
            }
        };
        let mut attr = AttrSchema::new(ty);
        attr.required = self.flag(at, names::REQUIRED).unwrap_or_default();
        attr.description = self.text(at, names::DESCRIPTION);
        attr.sensitive = self.flag(at, names::SENSITIVE).unwrap_or_default();
        attr.is_path = self.flag(at, names::IS_PATH).unwrap_or_default();
        attr.deprecated = Some(self.text(at, names::DEPRECATED)).filter(|text| !text.is_empty());
        if let Some(default) = at.get(names::DEFAULT) {
            match read_default(Path::of(name), &attr.ty, default) {
                Ok(default) => attr.default = default,
                Err(complaints) => {
                    for complaint in complaints {
                        self.fault(at.inside(names::DEFAULT), complaint.to_string());
                    }
                }
            }
        }
        if attr.required && attr.default.is_some() {
            self.warn(at.place.clone(), "a required attribute needs no default");
        }
        self.choices(at, name, &mut attr);
        Some(attr)
    }

    fn choices(&mut self, at: &At<'_>, name: &str, attr: &mut AttrSchema) {
        let place = at.inside(names::CHOICES);
        let choices = match at.get(names::CHOICES) {
            None => return,
            Some(Value::List(choices)) => choices,
            Some(other) => return self.fault(place, format!("a list is needed, this is {}", other.kind())),
        };
        for choice in choices {
            match validate_at(Path::of(name), &attr.ty, choice) {
                Ok(choice) => attr.choices.push(choice),
                Err(complaints) => {
                    for complaint in complaints {
                        self.fault(place.clone(), complaint.to_string());
                    }
                }
            }
        }
        let outside = attr.default.as_ref().is_some_and(|default| !attr.choices.contains(default));
        if outside && !attr.choices.is_empty() {
            self.warn(at.inside(names::DEFAULT), "the default is none of the values allowed");
        }
    }

    /// A schema that declares at least one extension, or needs one.
    fn extensions(&mut self, at: &At<'_>) -> Option<Extensions> {
        let place = at.inside(names::DECLARED);
        let members = match at.get(names::DECLARED)? {
            Value::Object(members) => members,
            other => {
                self.fault(place, format!("an object is needed, this is {}", other.kind()));
                return None;
            }
        };
        let at = At { place, members };
        let mut extensions =
            Extensions { require: self.list_of_text(&at, names::REQUIRE), ..Extensions::default() };
        if let Some(most) = self.whole(&at, names::MAX_IN_FLIGHT) {
            extensions.max_in_flight = u32::try_from(most).unwrap_or(u32::MAX);
            if most == 0 {
                self.warn(at.inside(names::MAX_IN_FLIGHT), "0 is read as 1");
                extensions.max_in_flight = 1;
            }
        }
        let own = [names::REQUIRE, names::MAX_IN_FLIGHT];
        for (name, value) in members.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
            match value {
                Value::Bool(true) => extensions.offered.push(name.clone()),
                Value::Bool(false) | Value::Null => {}
                // An extension that is not known may carry anything.
                _ if Extension::from_name(name).is_none() => {
                    extensions.offered.push(name.clone());
                }
                other => {
                    self.fault(at.inside(name), format!("true or false is needed, this is {}", other.kind()));
                }
            }
        }
        // What it cannot do without, it has.
        let needed = extensions.require.iter().filter(|name| !own.contains(&name.as_str()));
        extensions.offered.extend(needed.cloned());
        extensions.offered.sort();
        extensions.offered.dedup();
        Some(extensions)
    }

    fn text(&mut self, at: &At<'_>, name: &str) -> String {
        match at.get(name) {
            None => String::new(),
            Some(Value::String(text)) => text.to_string(),
            Some(other) => {
                self.fault(at.inside(name), format!("a string is needed, this is {}", other.kind()));
                String::new()
            }
        }
    }

    fn flag(&mut self, at: &At<'_>, name: &str) -> Option<bool> {
        let value = at.get(name)?;
        if value.as_bool().is_none() {
            self.fault(at.inside(name), format!("true or false is needed, this is {}", value.kind()));
        }
        value.as_bool()
    }

    fn whole(&mut self, at: &At<'_>, name: &str) -> Option<u64> {
        let value = at.get(name)?;
        let number = value.as_number().and_then(Number::as_u64);
        if number.is_none() {
            self.fault(at.inside(name), "a whole number that is not negative is needed");
        }
        number
    }

    fn list_of_text(&mut self, at: &At<'_>, name: &str) -> Vec<String> {
        strings(at.members, name).unwrap_or_else(|| {
            self.fault(at.inside(name), "a list of strings is needed");
            Vec::new()
        })
    }
}
