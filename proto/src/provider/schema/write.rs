//! Schemas written: for who writes a provider, and for digests.

use sha2::{Digest as _, Sha256};

use crate::provider::{
    values::{Members, Value},
    wire::names,
};

use crate::time::whole_ms;

use super::{
    document::{ActionSchema, AttrSchema, Attrs, PROTOCOL, Schema},
    extension::Extensions,
};

impl Schema {
    /// The schema as a bare document. What has its usual value is left out; types are printed canonically.
    pub fn to_value(&self) -> Value {
        let mut out = Object::default();
        out.put(names::NAME, self.name.as_str().into());
        out.put(names::VERSION, self.version.as_str().into());
        out.put(names::PROTOCOL, PROTOCOL.into());
        out.put(names::CONFIG, attrs(&self.config));
        let actions = self.actions.iter().map(|(name, action)| (name.as_str(), action.to_value()));
        out.put(names::ACTIONS, actions.collect());
        if !self.protocols.is_empty() {
            out.put(names::PROTOCOLS, texts(&self.protocols));
        }
        if let Some(extensions) = &self.extensions {
            out.put(names::DECLARED, extensions.to_value());
        }
        out.done()
    }

    /// SHA-256 of the schema's canonical text: the same for two documents that mean the same.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_value().to_canonical().as_bytes()).into()
    }
}

#[derive(Default)]
struct Object(Members);

impl Object {
    fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Only when there is something to say.
    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.put(name, text.into());
        }
    }

    fn flag(&mut self, name: &str, flag: bool) {
        if flag {
            self.put(name, true.into());
        }
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

fn texts(texts: &[String]) -> Value {
    texts.iter().map(|text| Value::from(text.as_str())).collect()
}

fn attrs(attrs: &Attrs) -> Value {
    attrs.iter().map(|(name, attr)| (name.as_str(), attr.to_value())).collect()
}

impl ActionSchema {
    fn to_value(&self) -> Value {
        let mut out = Object::default();
        out.text(names::DESCRIPTION, &self.description);
        out.put(names::ATTRS, attrs(&self.attrs));
        if let Some(outputs) = &self.outputs {
            out.put(names::OUTPUTS, outputs.to_value());
        }
        out.flag(names::IDEMPOTENT, self.idempotent);
        out.flag(names::EXCLUSIVE, self.exclusive);
        if let Some(limit) = self.timeout {
            out.put(names::TIMEOUT_MS, whole_ms(limit).into());
        }
        if let Some(returns) = self.returns_undo {
            out.put(names::RETURNS_UNDO, returns.into());
        }
        out.done()
    }
}

impl AttrSchema {
    fn to_value(&self) -> Value {
        let mut out = Object::default();
        out.put(names::TYPE, self.ty.to_string().into());
        out.put(names::REQUIRED, self.required.into());
        if let Some(default) = &self.default {
            out.put(names::DEFAULT, self.written_default(default));
        }
        out.text(names::DESCRIPTION, &self.description);
        out.flag(names::SENSITIVE, self.sensitive);
        out.flag(names::IS_PATH, self.is_path);
        out.text(names::DEPRECATED, self.deprecated.as_deref().unwrap_or_default());
        if !self.choices.is_empty() {
            out.put(names::CHOICES, self.choices.iter().cloned().collect());
        }
        out.done()
    }

    /// A default in the form that reads back as itself: a text that would be taken for JSON inside a string is put inside one.
    fn written_default(&self, default: &Value) -> Value {
        match crate::provider::types::read_default(crate::provider::Path::default(), &self.ty, default) {
            Ok(Some(read)) if read == *default => default.clone(),
            _ => default.to_json().into(),
        }
    }
}

impl Extensions {
    fn to_value(&self) -> Value {
        let mut out = Object::default();
        for name in &self.offered {
            out.put(name, true.into());
        }
        if self.max_in_flight > 0 {
            out.put(names::MAX_IN_FLIGHT, u64::from(self.max_in_flight).into());
        }
        if !self.require.is_empty() {
            out.put(names::REQUIRE, texts(&self.require));
        }
        out.done()
    }
}
