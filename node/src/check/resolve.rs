//! What one placeholder means in one plan.

use quartermaster_proto::{
    mesh::{
        Kind,
        plan::{Plan, ProvisionPlan},
        value::ValueError,
        vault::{Binding, SecretName},
    },
    text::escape_bounded,
};

use super::want::Want;
use crate::{
    near::near,
    template::{FilterError, Placeholder, TemplateError},
};

/// Why a plan with its templates can never be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The archive lacks a template.
    #[error("template `{}` is not in the archive", escape_bounded(template, 120))]
    Missing {
        /// Its name.
        template: String,
    },
    /// A filter is not known.
    #[error("template `{}`, {error}", escape_bounded(template, 120))]
    Filter {
        /// The template.
        template: String,
        /// Where and which.
        error: TemplateError,
    },
    /// A placeholder cannot be.
    #[error(
        "template `{}`, line {line}: {kind} {}: {what}{}",
        escape_bounded(template, 120),
        escape_bounded(name, 120),
        near.as_ref().map_or_else(String::new, |near| format!("; is `{}` meant?", escape_bounded(near, 120)))
    )]
    Placeholder {
        /// The template.
        template: String,
        /// The line, from 1.
        line: usize,
        /// The placeholder's kind.
        kind: String,
        /// Its name.
        name: String,
        /// What is wrong.
        what: &'static str,
        /// What is there under a like name.
        near: Option<String>,
    },
    /// A file is declared as it must not be.
    #[error("{}: {what}", escape_bounded(path, 160))]
    File {
        /// Its path.
        path: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A value cannot be filled in.
    #[error("{kind} {}: {error}", escape_bounded(name, 120))]
    Value {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// Why.
        error: ValueFault,
    },
}

/// Why a value cannot be filled in. The value is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// It has no text.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A filter refuses it.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// It is not text, and an item is.
    #[error("the value is not UTF-8, and an item is text")]
    NotText,
}

/// Where the value of a placeholder comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// From the plan.
    Placement(Kind, String),
    /// From elsewhere.
    Want(Want),
    /// From what a provider serves, under this key.
    Bound(Want, String),
}

/// What a placeholder means.
///
/// # Errors
/// What is wrong with it.
pub(super) fn meaning(
    module: &str,
    node: &str,
    plan: &Plan,
    found: &Placeholder,
) -> Result<Meaning, &'static str> {
    let Some(kind) = Kind::parse(&found.kind) else { return Err("no such kind of placeholder is known") };
    let name = found.name.clone();
    Ok(match kind {
        Kind::Dir | Kind::Access | Kind::Port | Kind::Seat | Kind::Machine => Meaning::Placement(kind, name),
        Kind::Config => Meaning::Want(Want::Config(name)),
        Kind::Secret => Meaning::Want(Want::Vault(
            secret_of(module, node, plan, &name).ok_or("the plan names no such secret")?,
        )),
        Kind::Collected | Kind::Shell | Kind::Environment | Kind::Contribution => {
            let collection = kind.collection(&name).unwrap_or_default();
            if !plan.contents.collections.iter().any(|entry| entry.collection == collection) {
                return Err("the plan does not collect this collection");
            }
            Meaning::Want(Want::Collection(collection))
        }
        Kind::Consumers if plan.contents.provides.contains(&name) => Meaning::Want(Want::Consumers(name)),
        Kind::Consumers => return Err("the module does not provide this"),
        Kind::Bound => {
            let (entry, key) = provision_of(plan, &name)?;
            let want = Want::Bound {
                provider: entry.provider.clone(),
                provision: entry.provision.clone(),
                local: entry.local.clone(),
            };
            Meaning::Bound(want, key.to_owned())
        }
    })
}

/// What is there under a like name, where a placeholder means nothing.
pub(super) fn meant(plan: &Plan, found: &Placeholder) -> Option<String> {
    let contents = &plan.contents;
    let name = found.name.as_str();
    let Some(kind) = Kind::parse(&found.kind) else {
        return near(&found.kind, Kind::ALL.iter().map(|kind| kind.as_str())).map(str::to_owned);
    };
    match kind {
        Kind::Secret => {
            let secrets = contents.secrets.iter().map(|secret| secret.name.as_str());
            let credentials = contents.provisions.iter().filter_map(|entry| entry.name.as_deref());
            near(name, secrets.chain(credentials)).map(str::to_owned)
        }
        Kind::Collected | Kind::Shell | Kind::Environment | Kind::Contribution => {
            let collection = kind.collection(name)?;
            near(&collection, contents.collections.iter().map(|entry| entry.collection.as_str()))
                .map(str::to_owned)
        }
        Kind::Consumers => near(name, contents.provides.iter().map(String::as_str)).map(str::to_owned),
        Kind::Bound => {
            let (provision, _) = name.rsplit_once(':')?;
            let shown = |entry: &ProvisionPlan| match &entry.local {
                Some(local) => format!("{}.{local}", entry.provision),
                None => entry.provision.clone(),
            };
            let known: Vec<String> = contents.provisions.iter().map(shown).collect();
            near(provision, known.iter().map(String::as_str)).map(str::to_owned)
        }
        _ => None,
    }
}

/// The vault's name of a secret or a credential that the plan names.
pub(crate) fn secret_of(module: &str, node: &str, plan: &Plan, name: &str) -> Option<SecretName> {
    if plan.contents.secrets.iter().any(|secret| secret.name == name) {
        return Some(SecretName::Own { module: module.to_owned(), name: name.to_owned(), node: None });
    }
    let entry = plan.contents.provisions.iter().find(|entry| entry.name.as_deref() == Some(name))?;
    Some(SecretName::Provision(Binding {
        provider: entry.provider.clone(),
        provision: entry.provision.clone(),
        node: node.to_owned(),
        module: module.to_owned(),
        local: entry.local.clone(),
    }))
}

/// The entry and the key that `provision[.local]:key` means.
pub(super) fn provision_of<'p, 'n>(
    plan: &'p Plan,
    name: &'n str,
) -> Result<(&'p ProvisionPlan, &'n str), &'static str> {
    let (provision, key) = name.rsplit_once(':').ok_or("it is not <provision>:<key>")?;
    let entries = &plan.contents.provisions;
    let mut named = entries.iter().filter(|entry| entry.provision == provision);
    if let Some(first) = named.next() {
        if named.next().is_none() {
            return Ok((first, key));
        }
        // One of several without a local can be meant in no other way.
        let bare = entries.iter().find(|entry| entry.provision == provision && entry.local.is_none());
        return bare
            .map(|entry| (entry, key))
            .ok_or("the plan has this provision more than once: name its local");
    }
    let with_local = entries.iter().find(|entry| {
        entry.local.as_ref().is_some_and(|local| {
            provision.strip_prefix(&entry.provision).and_then(|rest| rest.strip_prefix('.')) == Some(local)
        })
    });
    with_local.map(|entry| (entry, key)).ok_or("the plan has no such provision")
}
