//! A plan that can be filled, with what it wants from whom.

use std::collections::BTreeSet;

use quartermaster_proto::mesh::{
    Kind,
    plan::{Attributes, Mode, Plan, WriteMode},
};

use super::{
    read::{Source, Sources},
    resolve::{CheckError, Meaning, meaning, meant, secret_of},
    want::Want,
};
use crate::template::Placeholder;

/// A file, its template, and what each placeholder means.
#[derive(Debug, Clone)]
pub struct PreparedFile {
    /// Where.
    pub path: String,
    /// What it is filled from.
    pub filled: Attached,
    /// A secret goes into it.
    pub sensitive: bool,
}

/// What a file or an item is filled from.
#[derive(Debug, Clone)]
pub enum Attached {
    /// A template; the meanings stand in the order of its placeholders.
    Template(Source, Vec<Meaning>),
    /// One value and nothing else.
    Value(Want),
}

/// An item and what it is filled from.
#[derive(Debug, Clone)]
pub struct PreparedItem {
    /// The collection.
    pub collection: String,
    /// Its template, and the meanings in the order of its placeholders.
    pub filled: Attached,
}

/// A plan that was looked at and found good.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The files in the order in which they are written: those that hold one secret alone, then the plan's own, so that what a
    /// program's main file names is there before it.
    pub files: Vec<PreparedFile>,
    /// The items.
    pub items: Vec<PreparedItem>,
    /// Everything that is wanted from elsewhere.
    pub wants: BTreeSet<Want>,
}

/// Looks at a plan and its templates.
///
/// # Errors
/// The first thing that can never be right.
pub fn prepare(node: &str, module: &str, plan: &Plan, sources: Sources) -> Result<Prepared, CheckError> {
    let mut prepared = Prepared::default();
    for (path, want) in secret_files(node, module, plan) {
        prepared.wants.insert(want.clone());
        prepared.files.push(PreparedFile { path, filled: Attached::Value(want), sensitive: true });
    }
    for (file, source) in plan.contents.files.iter().zip(sources.files) {
        let meanings = meanings(node, module, plan, &source, &mut prepared.wants)?;
        let is = |kind| move |meaning: &Meaning| kind_of(meaning) == kind;
        let has_consumers = meanings.iter().any(is(Kind::Consumers));
        let sensitive = has_consumers || meanings.iter().any(is(Kind::Secret));
        let fault = |what| CheckError::File { path: file.path.clone(), what };
        if sensitive && is_open(&file.attributes) {
            return Err(fault("a secret goes into it, and its mode lets others read it"));
        }
        if has_consumers && file.write != WriteMode::Owned {
            return Err(fault("a file with consumers must be `owned`"));
        }
        if has_consumers && file.attributes.mode.is_some_and(|mode| mode != Mode::PRIVATE) {
            return Err(fault("a file with consumers must have the mode 0600"));
        }
        let filled = Attached::Template(source, meanings);
        prepared.files.push(PreparedFile { path: file.path.clone(), filled, sensitive });
    }
    for (item, source) in plan.contents.items.iter().zip(sources.items) {
        let meanings = meanings(node, module, plan, &source, &mut prepared.wants)?;
        for (placeholder, meaning) in source.template.placeholders().zip(&meanings) {
            let what = match kind_of(meaning) {
                Kind::Secret => "an item is kept in a bucket, and no secret is",
                Kind::Consumers => "an item is kept in a bucket, and no consumer's credential is",
                Kind::Collected => "an item may not hold a collection",
                _ => continue,
            };
            return Err(placeholder_fault(plan, &source, placeholder, what));
        }
        let filled = Attached::Template(source, meanings);
        prepared.items.push(PreparedItem { collection: item.collection.clone(), filled });
    }
    // Every secret that the plan names is asked for, also one that no template names yet.
    let secrets = plan.contents.secrets.iter().map(|secret| secret.name.as_str());
    let credentials = plan.contents.provisions.iter().filter_map(|entry| entry.name.as_deref());
    let names = secrets.chain(credentials).filter_map(|name| secret_of(module, node, plan, name));
    prepared.wants.extend(names.map(Want::Vault));
    Ok(prepared)
}

/// Everything that can never be right: of all placeholders, or else the first fault of the plan as a whole.
pub fn faults(node: &str, module: &str, plan: &Plan, sources: Sources) -> Vec<CheckError> {
    let all = sources.files.iter().chain(&sources.items);
    let found = all.flat_map(|source| {
        source.template.placeholders().filter_map(|found| {
            let what = meaning(module, node, plan, found).err()?;
            Some(placeholder_fault(plan, source, found, what))
        })
    });
    let found: Vec<CheckError> = found.collect();
    if found.is_empty() { prepare(node, module, plan, sources).err().into_iter().collect() } else { found }
}

fn placeholder_fault(plan: &Plan, source: &Source, found: &Placeholder, what: &'static str) -> CheckError {
    CheckError::Placeholder {
        template: source.name.clone(),
        line: found.line,
        kind: found.kind.clone(),
        name: found.name.clone(),
        what,
        near: meant(plan, found),
    }
}

fn is_open(attributes: &Attributes) -> bool {
    attributes.mode.is_some_and(Mode::is_open_to_others)
}

/// Files that hold one secret and nothing else.
fn secret_files(node: &str, module: &str, plan: &Plan) -> Vec<(String, Want)> {
    let secrets = plan.contents.secrets.iter().map(|secret| (&secret.path, Some(&secret.name)));
    let credentials = plan.contents.provisions.iter().map(|entry| (&entry.path, entry.name.as_ref()));
    let found = secrets
        .chain(credentials)
        .filter_map(|(path, name)| Some((path.clone()?, Want::Vault(secret_of(module, node, plan, name?)?))));
    found.collect()
}

fn meanings(
    node: &str,
    module: &str,
    plan: &Plan,
    source: &Source,
    wants: &mut BTreeSet<Want>,
) -> Result<Vec<Meaning>, CheckError> {
    let mut found = Vec::new();
    for placeholder in source.template.placeholders() {
        let meaning = meaning(module, node, plan, placeholder)
            .map_err(|what| placeholder_fault(plan, source, placeholder, what))?;
        if let Meaning::Want(want) | Meaning::Bound(want, _) = &meaning {
            wants.insert(want.clone());
        }
        found.push(meaning);
    }
    Ok(found)
}

/// The kind of a meaning; the old names of collections are collections.
const fn kind_of(meaning: &Meaning) -> Kind {
    match meaning {
        Meaning::Placement(kind, _) => *kind,
        Meaning::Want(want) | Meaning::Bound(want, _) => want.kind(),
    }
}
