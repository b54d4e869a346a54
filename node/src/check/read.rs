//! The templates that a plan names, read, and what they need.

use std::collections::{BTreeMap, BTreeSet};

use quartermaster_proto::mesh::{
    Kind,
    need::Need,
    plan::{Contents, Plan},
    registry::Entry,
};

use super::resolve::{CheckError, provision_of};
use crate::{archive::Templates, template::Template};

/// A template and what it fills.
#[derive(Debug, Clone)]
pub struct Source {
    /// The template's name in the archive.
    pub name: String,
    /// What it says.
    pub template: Template,
}

/// The templates of a plan, in the plan's order.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Of each file.
    pub files: Vec<Source>,
    /// Of each item.
    pub items: Vec<Source>,
}

/// Reads every template that the plan names.
///
/// # Errors
/// The archive lacks one, or one has a filter that is not known.
pub fn read(contents: &Contents, templates: &Templates) -> Result<Sources, CheckError> {
    let source = |name: &str, filters: bool| {
        let Some(bytes) = templates.get(name) else {
            return Err(CheckError::Missing { template: name.to_owned() });
        };
        match Template::parse(bytes, filters) {
            Ok(template) => Ok(Source { name: name.to_owned(), template }),
            Err(error) => Err(CheckError::Filter { template: name.to_owned(), error }),
        }
    };
    Ok(Sources {
        files: contents
            .files
            .iter()
            .map(|file| source(&file.template, file.filters))
            .collect::<Result<_, _>>()?,
        items: contents.items.iter().map(|item| source(&item.template, false)).collect::<Result<_, _>>()?,
    })
}

/// The needs of a module: one for each kind and name, known or not, with everything that names it.
pub fn needs(
    node: &str,
    module: &str,
    plan: &Plan,
    sources: &Sources,
    registry: &BTreeMap<Kind, Entry>,
) -> Vec<Need> {
    let mut found: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    let Contents { files, items, .. } = &plan.contents;
    let files = files.iter().map(|file| file.path.clone()).zip(&sources.files);
    let items = items.iter().map(|item| format!("item:{}", item.collection)).zip(&sources.items);
    for (by, source) in files.chain(items) {
        for placeholder in source.template.placeholders() {
            found.entry((&placeholder.kind, &placeholder.name)).or_default().insert(by.clone());
        }
    }
    let need = |((kind, name), by): ((&str, &str), BTreeSet<String>)| Need {
        node: node.to_owned(),
        module: module.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        owner: owner(kind, name, plan, registry),
        by: by.into_iter().collect(),
    };
    found.into_iter().map(need).collect()
}

/// Who owns a value, as far as the registry says; of a bound one its provider.
fn owner(kind: &str, name: &str, plan: &Plan, registry: &BTreeMap<Kind, Entry>) -> Option<String> {
    let kind = Kind::parse(kind)?;
    if kind == Kind::Bound {
        return provision_of(plan, name).ok().map(|(entry, _)| entry.provider.clone());
    }
    registry.get(&kind).map(|entry| entry.owner.clone())
}
