//! Where something that is missing was looked for, and what is there under a like name: for people, never with a value.

use quartermaster_proto::mesh::{
    Kind, key,
    plan::{Plan, ProvisionPlan},
    registry::Source,
    report::Waiting,
};

use crate::{check::secret_of, core::RegistryView, near::near};

/// What is known around a module that waits.
pub(super) struct Around<'a> {
    pub(super) node: &'a str,
    pub(super) module: &'a str,
    pub(super) plan: &'a Plan,
    pub(super) registry: &'a RegistryView,
    /// The names of the module's config values that are there.
    pub(super) config: Vec<&'a str>,
}

impl Around<'_> {
    /// Where it was looked for.
    pub(super) fn looked(&self, missing: &Waiting) -> Option<String> {
        let name = missing.name.as_str();
        if missing.kind == "registry" {
            return Some(format!("{name} in the bucket {}", key::REGISTRY));
        }
        let kind = Kind::parse(&missing.kind)?;
        if kind.is_placement() {
            return Some(format!("placement.{}.{name} of its plan", kind.as_str()));
        }
        let source = &self.registry.entries.get(&kind)?.source;
        match kind {
            Kind::Config => {
                let key = key::config_key(self.node, self.module, name).ok()?;
                Some(format!("{key} in the bucket {}", self.bucket(kind, "")?))
            }
            Kind::Bound => {
                let entry = self.provision(name)?;
                let (provision, local) = (entry.provision.as_str(), entry.local.as_deref());
                let key = key::bound_key(self.node, self.module, provision, local).ok()?;
                Some(format!("{key} in the bucket {}", self.bucket(kind, &entry.provider)?))
            }
            Kind::Collected => {
                let keys = key::collect_key(self.node, name, "*").ok()?.replace("=2A", "*");
                Some(format!("{keys} in the bucket {}", self.bucket(kind, "")?))
            }
            Kind::Secret => {
                let Source::Vault(vault) = source else { return None };
                let name = secret_of(self.module, self.node, self.plan, name)?;
                Some(format!("{name} at {}", vault.request))
            }
            _ => None,
        }
    }

    /// What is there under a like name.
    pub(super) fn near(&self, missing: &Waiting) -> Option<String> {
        let kind = Kind::parse(&missing.kind)?;
        let found = if kind == Kind::Config {
            near(&missing.name, self.config.iter().copied())
        } else {
            near(&missing.name, self.plan.placement.get(&kind)?.keys().map(String::as_str))
        };
        found.map(str::to_owned)
    }

    fn bucket(&self, kind: Kind, provider: &str) -> Option<String> {
        self.registry.entries.get(&kind)?.bucket(provider)
    }

    /// The entry of the plan that is meant by `provision[.local][:key]`.
    fn provision(&self, name: &str) -> Option<&ProvisionPlan> {
        let named = |name: &str| {
            self.plan.contents.provisions.iter().find(|entry| match &entry.local {
                None => entry.provision == name,
                Some(local) => format!("{}.{local}", entry.provision) == name || entry.provision == name,
            })
        };
        named(name).or_else(|| named(name.rsplit_once(':')?.0))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use quartermaster_proto::{
        mesh::{plan::read_assignment, registry::Entry, report::Why},
        time::WallClock,
    };

    use super::*;

    const PLAN: &str = r#"{"node":"web1","module":"forge","provisioning":{
      "templates":{"reference":"file:/t","digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
      "placement":{"port":{"http":80}},"secrets":[{"name":"pw"}],
      "provisions":[{"provision":"sql","provider":"db","credential":"pair","local":"main"}]}}"#;

    /// Where it was looked for, and what is near; `-` for neither.
    fn check(kind: &str, name: &str, looked: &str, near: &str) {
        let (assignment, _) = read_assignment("web1.forge", PLAN.as_bytes()).unwrap();
        let entries: BTreeMap<_, _> =
            Entry::defaults(None).into_iter().map(|entry| (entry.kind, entry)).collect();
        let registry = RegistryView { unknown: None, entries: Arc::new(entries) };
        let around = Around {
            node: "web1",
            module: "forge",
            plan: assignment.plan().unwrap(),
            registry: &registry,
            config: vec!["http.port", "title"],
        };
        let missing = Waiting {
            kind: kind.to_owned(),
            name: name.to_owned(),
            why: Why::NoEntry,
            since: WallClock::from_seconds(0),
        };
        let shown = |found: Option<String>| found.unwrap_or_else(|| "-".to_owned());
        assert_eq!(
            (shown(around.looked(&missing)), shown(around.near(&missing))),
            (looked.to_owned(), near.to_owned())
        );
    }

    #[test]
    fn what_is_missing_is_named_with_its_place_and_what_is_like_it() {
        check("config", "Title", "web1.forge.Title in the bucket mesh-config_resolved", "title");
        check(
            "config",
            "http.prot",
            "web1.forge.http=2Eprot in the bucket mesh-config_resolved",
            "http.port",
        );
        check("config", "colour", "web1.forge.colour in the bucket mesh-config_resolved", "-");
        check("port", "htpp", "placement.port.htpp of its plan", "http");
        check("dir", "data", "placement.dir.data of its plan", "-");
        check("secret", "pw", "own/forge/pw at mesh-vault.get", "-");
        check("bound", "sql.main", "web1.forge.sql.main in the bucket db_bound", "-");
        check("bound", "sql.main:host", "web1.forge.sql.main in the bucket db_bound", "-");
        check("collected", "c:d", "web1.c=3Ad.* in the bucket mesh-provisioner_collect", "-");
        check("registry", "config", "config in the bucket mesh-provisioner_registry", "-");
        check("templates", "file:/t", "-", "-");
        check("engine", "", "-", "-");
    }
}
