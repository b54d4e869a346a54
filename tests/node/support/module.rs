//! A module as a test describes it: its files with their templates, and what else stands in its plan.

use std::path::{Path, PathBuf};

use quartermaster_proto::mesh::plan::Digest;
use serde_json::{Map, Value, json};

use super::archive::{Entry, archive};

/// A module of one machine.
#[derive(Debug, Clone)]
pub struct Module {
    /// The machine.
    pub node: String,
    /// The module.
    pub name: String,
    root: PathBuf,
    templates: Vec<Entry>,
    files: Vec<Value>,
    members: Map<String, Value>,
    archive: Option<Vec<u8>>,
    reference: Option<String>,
    digest: Option<Value>,
}

impl Module {
    /// A module without files, whose paths lie below this folder.
    pub fn new(node: &str, name: &str, root: &Path) -> Self {
        Self {
            node: node.to_owned(),
            name: name.to_owned(),
            root: root.to_owned(),
            templates: Vec::new(),
            files: Vec::new(),
            members: Map::new(),
            archive: None,
            reference: None,
            digest: None,
        }
    }

    /// With an owned file, filled from this template.
    pub fn file(self, path: &str, template: &str) -> Self {
        self.file_with(path, template, json!({}))
    }

    /// With a file that declares more than its path and template.
    pub fn file_with(mut self, path: &str, template: &str, more: Value) -> Self {
        let name = format!("{path}.tpl");
        let path = self.root.join(path);
        let mut file = json!({"path": path.to_str().unwrap(), "template": name, "owner-at-runtime": "owned"});
        extend(&mut file, more);
        self.templates.push(Entry::file(&name, template.as_bytes()));
        self.files.push(file);
        self
    }

    /// With an item of a collection.
    pub fn item(mut self, collection: &str, template: &str) -> Self {
        let name = format!("item-{}.tpl", self.templates.len());
        self.templates.push(Entry::file(&name, template.as_bytes()));
        self.push("items", json!({"collection": collection, "template": name}))
    }

    /// With a collection that it collects.
    pub fn collects(self, collection: &str, comment: &str) -> Self {
        self.push("collections", json!({"collection": collection, "comment": comment}))
    }

    /// With a secret of its own.
    pub fn secret(self, name: &str) -> Self {
        self.push("secrets", json!({"name": name}))
    }

    /// With a secret that is a file.
    pub fn secret_file(self, name: &str, path: &str, more: Value) -> Self {
        let path = self.root.join(path);
        let mut secret = json!({"name": name, "path": path.to_str().unwrap()});
        extend(&mut secret, more);
        self.push("secrets", secret)
    }

    /// With something it requires of a provider.
    pub fn requires(self, entry: Value) -> Self {
        self.push("provisions", entry)
    }

    /// With what it provides.
    pub fn provides(self, provision: &str) -> Self {
        self.push("provides", json!(provision))
    }

    /// With one more entry in a list of its plan.
    pub fn push(mut self, list: &str, entry: Value) -> Self {
        let list = self.members.entry(list).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(entry);
        self
    }

    /// With a member of its plan.
    pub fn with(mut self, member: &str, value: Value) -> Self {
        self.members.insert(member.to_owned(), value);
        self
    }

    /// With this archive instead of the one of its templates.
    pub fn archive(mut self, archive: Vec<u8>) -> Self {
        self.archive = Some(archive);
        self
    }

    /// Fetched from elsewhere.
    pub fn reference(mut self, reference: &str) -> Self {
        self.reference = Some(reference.to_owned());
        self
    }

    /// With this digest instead of the archive's; null for none.
    pub fn digest(mut self, digest: Value) -> Self {
        self.digest = Some(digest);
        self
    }

    /// The templates: name and text.
    pub fn templates(&self) -> Vec<(&str, &[u8])> {
        self.templates.iter().map(Entry::shown).collect()
    }

    /// The archive's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.archive.clone().unwrap_or_else(|| archive(&self.templates))
    }

    /// The name of its archive in the object store.
    pub fn object(&self) -> String {
        format!("{}.tar", Digest::of(&self.bytes()).hex())
    }

    /// Where its file lies.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The value of its assignment.
    pub fn assignment(&self, serial: u64) -> Value {
        let reference =
            self.reference.clone().unwrap_or_else(|| format!("nats-object:mesh-templates/{}", self.object()));
        let digest = self.digest.clone().unwrap_or_else(|| json!(Digest::of(&self.bytes()).to_string()));
        let mut templates = json!({"reference": reference});
        if !digest.is_null() {
            templates["digest"] = digest;
        }
        let mut plan = json!({"templates": templates});
        if !self.files.is_empty() {
            plan["files"] = json!(self.files);
        }
        for (name, value) in &self.members {
            plan[name] = value.clone();
        }
        json!({"node": self.node, "module": self.name, "serial": serial, "provisioning": plan})
    }
}

/// Adds members to an object.
fn extend(object: &mut Value, more: Value) {
    let Value::Object(more) = more else { panic!("{more} is no object") };
    for (key, value) in more {
        object[key] = value;
    }
}
