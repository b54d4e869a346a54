//! The mirror of all assignments: which modules are on this machine, and who on any machine is bound to them.

use std::collections::{BTreeMap, BTreeSet};

use quartermaster_proto::mesh::{plan::Assignment, vault::Binding};

use crate::core::ConsumerRef;

/// A provider's module and one of its provisions.
pub type Offer = (String, String);

/// Every assignment, and the index of consumers.
#[derive(Debug, Default)]
pub struct Mirror {
    /// Of each key, the offers that its plan is bound to, with the plan's place in the list.
    bound: BTreeMap<String, BTreeMap<Offer, Vec<Bound>>>,
    /// The other way round: keys by offer, in the order of the keys' bytes.
    consumers: BTreeMap<Offer, BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    consumer: ConsumerRef,
    /// The provider on this machine only.
    at: Option<String>,
}

impl Mirror {
    /// An assignment was put; answers the offers whose consumers are others now.
    pub fn put(&mut self, key: &str, assignment: &Assignment) -> BTreeSet<Offer> {
        let mut found: BTreeMap<Offer, Vec<Bound>> = BTreeMap::new();
        for entry in assignment.plan().into_iter().flat_map(|plan| &plan.contents.provisions) {
            let binding = Binding {
                provider: entry.provider.clone(),
                provision: entry.provision.clone(),
                node: assignment.node.clone(),
                module: assignment.module.clone(),
                local: entry.local.clone(),
            };
            let consumer = ConsumerRef { binding, credential: entry.credential };
            let offer = (entry.provider.clone(), entry.provision.clone());
            found.entry(offer).or_default().push(Bound { consumer, at: entry.at.clone() });
        }
        self.replace(key, found)
    }

    /// An assignment is gone; answers the offers whose consumers are others now.
    pub fn gone(&mut self, key: &str) -> BTreeSet<Offer> {
        self.replace(key, BTreeMap::new())
    }

    fn replace(&mut self, key: &str, found: BTreeMap<Offer, Vec<Bound>>) -> BTreeSet<Offer> {
        let before = self.bound.remove(key).unwrap_or_default();
        let offers: BTreeSet<&Offer> = before.keys().chain(found.keys()).collect();
        let changed: BTreeSet<Offer> =
            offers.into_iter().filter(|offer| before.get(*offer) != found.get(*offer)).cloned().collect();
        for offer in &changed {
            if found.contains_key(offer) {
                self.consumers.entry(offer.clone()).or_default().insert(key.to_owned());
            } else if let Some(keys) = self.consumers.get_mut(offer) {
                keys.remove(key);
                if keys.is_empty() {
                    self.consumers.remove(offer);
                }
            }
        }
        if !found.is_empty() {
            self.bound.insert(key.to_owned(), found);
        }
        changed
    }

    /// Everybody who is bound to this provision of the provider on this machine: by the bytes of the assignments' keys, and within
    /// a plan as it stands there.
    pub fn consumers(&self, node: &str, offer: &Offer) -> Vec<ConsumerRef> {
        let keys = self.consumers.get(offer).into_iter().flatten();
        let bound = keys.filter_map(|key| self.bound.get(key)?.get(offer)).flatten();
        let here = bound.filter(|bound| bound.at.as_deref().is_none_or(|at| at == node));
        here.map(|bound| bound.consumer.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::mesh::{key, plan::read_assignment};

    use super::*;

    /// An assignment whose plan has these provisions: provision, provider, local, at.
    fn put(mirror: &mut Mirror, node: &str, module: &str, provisions: &[(&str, &str, &str, &str)]) -> usize {
        let entries: Vec<String> = provisions
            .iter()
            .map(|(provision, provider, local, at)| {
                let member = |name: &str, value: &str| {
                    if value.is_empty() { String::new() } else { format!(r#","{name}":"{value}""#) }
                };
                let (local, at) = (member("local", local), member("at", at));
                format!(
                    r#"{{"provision":"{provision}","provider":"{provider}","credential":"pair"{local}{at}}}"#
                )
            })
            .collect();
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            r#"{{"node":"{node}","module":"{module}","provisioning":{{"templates":{{"reference":"file:/t","digest":"{digest}"}},"provisions":[{}]}}}}"#,
            entries.join(",")
        );
        let key = key::module_key(node, module).unwrap();
        let (assignment, _) = read_assignment(&key, text.as_bytes()).unwrap();
        assert!(assignment.plan().is_some());
        mirror.put(&key, &assignment).len()
    }

    fn consumers(mirror: &Mirror, node: &str) -> Vec<String> {
        let found = mirror.consumers(node, &("pg".to_owned(), "db".to_owned()));
        let shown = found.iter().map(|consumer| {
            let Binding { node, module, local, .. } = &consumer.binding;
            format!("{node}.{module}/{}", local.as_deref().unwrap_or_default())
        });
        shown.collect()
    }

    #[test]
    fn consumers_stand_by_their_keys_and_within_a_plan_as_it_has_them() {
        let mut mirror = Mirror::default();
        put(
            &mut mirror,
            "web2",
            "a",
            &[("db", "pg", "z", ""), ("other", "pg", "", ""), ("db", "pg", "b", "")],
        );
        put(&mut mirror, "web1.x", "b", &[("db", "pg", "", "")]);
        put(&mut mirror, "web1", "b", &[("db", "pg", "", ""), ("db", "mysql", "m", "")]);
        // In its key `web1.x` is `web1=2Ex`, and `=` comes after `.`.
        assert_eq!(consumers(&mirror, "db1"), ["web1.b/", "web1.x.b/", "web2.a/z", "web2.a/b"]);
    }

    #[test]
    fn an_entry_may_mean_the_provider_on_one_machine_alone() {
        let mut mirror = Mirror::default();
        put(
            &mut mirror,
            "web1",
            "a",
            &[("db", "pg", "x", "db1"), ("db", "pg", "y", "db2"), ("db", "pg", "z", "")],
        );
        assert_eq!(consumers(&mirror, "db1"), ["web1.a/x", "web1.a/z"]);
        assert_eq!(consumers(&mirror, "db2"), ["web1.a/y", "web1.a/z"]);
    }

    #[test]
    fn only_offers_whose_consumers_changed_are_named() {
        let mut mirror = Mirror::default();
        assert_eq!(put(&mut mirror, "web1", "a", &[("db", "pg", "", ""), ("x", "y", "", "")]), 2);
        assert_eq!(put(&mut mirror, "web1", "a", &[("db", "pg", "", ""), ("x", "y", "", "")]), 0);
        assert_eq!(put(&mut mirror, "web1", "a", &[("db", "pg", "l", ""), ("x", "y", "", "")]), 1);
        assert_eq!(mirror.gone("web1.a").len(), 2);
        assert_eq!(mirror.gone("web1.a").len(), 0);
        assert!(
            consumers(&mirror, "db1").is_empty() && mirror.consumers.is_empty() && mirror.bound.is_empty()
        );
    }
}
