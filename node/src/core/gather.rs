//! What is still missing, and what was refused.

use std::collections::BTreeSet;

use quartermaster_proto::mesh::{plan::Plan, report::Why, vault::SecretName};

use super::event::{ConsumerRef, Found, RegistryView, Stored};
use crate::check::{Attached, Meaning, Prepared, Want};

/// Something that is missing: kind, name, why.
pub(super) type Missing = (String, String, Why);

/// A refusal of a value's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// In words.
    pub reason: String,
    /// When it is asked again.
    pub retry_at: Option<quartermaster_proto::time::WallClock>,
}

/// What stands between a module and its files.
#[derive(Debug, Default)]
pub(super) struct Gap {
    /// Everything that is missing, once each.
    pub missing: BTreeSet<Missing>,
    /// The first refusal.
    pub refused: Option<Refusal>,
}

impl Gap {
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.refused.is_none()
    }
}

/// What a module has at hand to be filled with.
pub(super) struct Hand<'a> {
    pub plan: &'a Plan,
    pub registry: &'a RegistryView,
    pub found: &'a std::collections::BTreeMap<Want, Found>,
}

impl Hand<'_> {
    /// Everything that is missing for files and items together.
    pub fn gap(&self, prepared: &Prepared) -> Gap {
        let mut gap = Gap::default();
        for want in &prepared.wants {
            self.look_at(want, &mut gap);
        }
        for filled in prepared.files.iter().map(|file| &file.filled) {
            self.look_into(filled, &mut gap);
        }
        gap
    }

    /// What is missing for one item alone.
    pub fn gap_of(&self, filled: &Attached) -> Gap {
        let mut gap = Gap::default();
        if let Attached::Template(_, meanings) = filled {
            for meaning in meanings {
                if let Meaning::Want(want) | Meaning::Bound(want, _) = meaning {
                    self.look_at(want, &mut gap);
                }
            }
        }
        self.look_into(filled, &mut gap);
        gap
    }

    /// Placement values, and keys of what providers serve.
    fn look_into(&self, filled: &Attached, gap: &mut Gap) {
        let Attached::Template(source, meanings) = filled else { return };
        for (placeholder, meaning) in source.template.placeholders().zip(meanings) {
            let is_missing = match meaning {
                Meaning::Placement(kind, name) => {
                    if let Some(why) = self.unregistered(*kind) {
                        gap.missing.insert(("registry".to_owned(), kind.as_str().to_owned(), why));
                    }
                    self.plan.placement.get(kind).is_none_or(|values| !values.contains_key(name))
                }
                Meaning::Bound(want, key) => match self.found.get(want) {
                    Some(Found::Here(Stored::Bound(served))) => served.get(key).is_none(),
                    _ => false,
                },
                Meaning::Want(_) => false,
            };
            if is_missing {
                gap.missing.insert((placeholder.kind.clone(), placeholder.name.clone(), Why::Absent));
            }
        }
    }

    fn unregistered(&self, kind: quartermaster_proto::mesh::Kind) -> Option<Why> {
        match self.registry.unknown {
            Some(why) => Some(why),
            None => (!self.registry.entries.contains_key(&kind)).then_some(Why::NoEntry),
        }
    }

    fn look_at(&self, want: &Want, gap: &mut Gap) {
        let (kind, name) = self.shown(want);
        if let Some(why) = self.unregistered(want.kind()) {
            gap.missing.insert(("registry".to_owned(), want.kind().as_str().to_owned(), why));
            return;
        }
        match self.found.get(want) {
            None => {
                gap.missing.insert((kind, name, Why::NotLoaded));
            }
            Some(Found::Missing(why)) => {
                gap.missing.insert((kind, name, *why));
            }
            Some(Found::Refused { reason, retry_at }) => {
                let whose = if matches!(want, Want::Vault(_)) { "the vault" } else { "the provider" };
                let refusal = Refusal {
                    reason: format!("{kind} {name}: {whose} refused: {reason}"),
                    retry_at: *retry_at,
                };
                gap.refused.get_or_insert(refusal);
            }
            Some(Found::Here(Stored::Consumers(consumers))) => {
                self.look_at_credentials(&name, consumers, gap);
            }
            Some(Found::Here(_)) => {}
        }
    }

    /// A credential that is absent or refused leaves its consumer out; only silence is waited for.
    fn look_at_credentials(&self, provision: &str, consumers: &[ConsumerRef], gap: &mut Gap) {
        for name in consumers.iter().filter_map(ConsumerRef::pair) {
            let why = match self.found.get(&Want::Vault(name)) {
                None => Why::NotLoaded,
                Some(Found::Missing(Why::Absent) | Found::Here(_) | Found::Refused { .. }) => continue,
                Some(Found::Missing(why)) => *why,
            };
            gap.missing.insert(("consumers".to_owned(), provision.to_owned(), why));
        }
    }

    /// Kind and name of a want as a template or a plan has them.
    fn shown(&self, want: &Want) -> (String, String) {
        let name = match want {
            Want::Config(name)
            | Want::Consumers(name)
            | Want::Collection(name)
            | Want::Vault(SecretName::Own { name, .. }) => name.clone(),
            Want::Vault(SecretName::Provision(binding)) => {
                let entries = self.plan.contents.provisions.iter();
                let mut entry = entries.filter(|entry| {
                    entry.provider == binding.provider
                        && entry.provision == binding.provision
                        && entry.local == binding.local
                });
                entry.next().and_then(|entry| entry.name.clone()).unwrap_or_else(|| binding.provision.clone())
            }
            Want::Vault(name @ SecretName::Pair(_)) => name.to_string(),
            Want::Bound { provision, local, .. } => match local {
                Some(local) => format!("{provision}.{local}"),
                None => provision.clone(),
            },
        };
        (want.kind().as_str().to_owned(), name)
    }
}
