//! Who may have which value: decided from the mesh's own assignments, and from nothing an asker says of itself.

use std::collections::BTreeMap;

use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::plan::{Assignment, Credential, Plan, ProvisionPlan};
use quartermaster_proto::mesh::vault::{Binding, SecretName};

use super::rules::Rules;

/// Every assignment of the mesh, by machine and module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirror {
    assignments: BTreeMap<(String, String), Assignment>,
    /// The highest revision that is in here.
    pub revision: u64,
}

impl Mirror {
    /// Takes an assignment in.
    pub fn put(&mut self, assignment: Assignment) {
        self.assignments.insert((assignment.node.clone(), assignment.module.clone()), assignment);
    }

    /// Forgets an assignment.
    pub fn remove(&mut self, node: &str, module: &str) {
        self.assignments.remove(&(node.to_owned(), module.to_owned()));
    }

    fn is_assigned(&self, node: &str, module: &str) -> bool {
        self.assignments.contains_key(&(node.to_owned(), module.to_owned()))
    }

    fn plan(&self, node: &str, module: &str) -> Option<&Plan> {
        self.assignments.get(&(node.to_owned(), module.to_owned()))?.plan()
    }

    /// Every machine.
    fn nodes(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        self.assignments.keys().filter_map(move |(node, _)| {
            let is_new = last != Some(node);
            last = Some(node);
            is_new.then_some(node.as_str())
        })
    }

    /// The machines that a module is assigned to.
    fn nodes_of<'a>(&'a self, module: &'a str) -> impl Iterator<Item = &'a str> {
        self.nodes().filter(move |node| self.is_assigned(node, module))
    }

    /// The entry of the consumer's plan that binds it so.
    fn binding(&self, binding: &Binding) -> Option<&ProvisionPlan> {
        self.plan(&binding.node, &binding.module)?.contents.provisions.iter().find(|entry| {
            entry.provider == binding.provider
                && entry.provision == binding.provision
                && entry.local == binding.local
        })
    }
}

/// What an account gets to its question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The first of these rows that has a value.
    Granted {
        /// The rows that decide the answer, the preferred one first.
        rows: Vec<String>,
        /// The vault makes the value where there is none yet.
        is_made: bool,
    },
    /// Nothing.
    Refused(String),
}

fn granted(rows: impl IntoIterator<Item = String>) -> Verdict {
    Verdict::Granted { rows: rows.into_iter().collect(), is_made: false }
}

/// Whether an account may have a value, and which rows decide it: the site's denials first, then the assignments, then
/// what the site allows beyond them.
pub fn may_get(rules: &Rules, mirror: &Mirror, account: &Account, name: &SecretName) -> Verdict {
    let (who, what) = (account.name(), name.to_string());
    if rules.denies(&who, &what) {
        return Verdict::Refused(format!("{what} is denied to {who} here"));
    }
    match assigned(mirror, account, name) {
        Verdict::Refused(_) if rules.allows(&who, &what) => granted([what]),
        verdict => verdict,
    }
}

fn assigned(mirror: &Mirror, account: &Account, name: &SecretName) -> Verdict {
    let refused = |why: String| Verdict::Refused(why);
    let Account::Provisioner { node } = account else {
        return refused(format!("{} may ask for nothing", account.name()));
    };
    match name {
        SecretName::Own { module, name: secret, node: None } => {
            let is_named = mirror
                .plan(node, module)
                .is_some_and(|plan| plan.contents.secrets.iter().any(|entry| entry.name == *secret));
            if !is_named {
                return refused(format!("{name} is not in the plan of {node}.{module}"));
            }
            granted([format!("{name}/{node}"), name.to_string()])
        }
        SecretName::Own { .. } => refused(format!("{name} is asked for without its machine")),
        SecretName::Provision(binding) => {
            let entry = mirror.binding(binding).filter(|entry| entry.name.is_some() && binding.node == *node);
            match entry.map(|entry| entry.credential) {
                Some(Credential::Pair) => Verdict::Granted {
                    rows: vec![SecretName::Pair(binding.clone()).to_string()],
                    is_made: true,
                },
                Some(Credential::Issued) => granted([name.to_string()]),
                Some(Credential::None) => refused(format!("{name} hands no credential")),
                None => refused(format!("{name} is not in the plan of {node}.{}", binding.module)),
            }
        }
        SecretName::Pair(binding) => {
            if !mirror.is_assigned(node, &binding.provider) {
                return refused(format!("{} is not assigned to {node}", binding.provider));
            }
            let entry = mirror.binding(binding);
            match entry.filter(|entry| entry.at.as_ref().is_none_or(|at| at == node)) {
                Some(entry) if entry.credential == Credential::None => {
                    refused(format!("{name} hands no credential"))
                }
                Some(_) => Verdict::Granted { rows: vec![name.to_string()], is_made: true },
                None => {
                    let Binding { node: consumer, module, provider, .. } = binding;
                    refused(format!("{consumer}.{module} does not bind {provider} on {node} so"))
                }
            }
        }
    }
}

/// Whether an account may deposit a value; the row it goes to, or why not.
///
/// # Errors
/// The reason of the refusal.
pub fn may_put(
    rules: &Rules,
    mirror: &Mirror,
    account: &Account,
    name: &SecretName,
) -> Result<String, String> {
    let (who, what) = (account.name(), name.to_string());
    if rules.denies(&who, &what) {
        return Err(format!("{what} is denied to {who} here"));
    }
    let (Account::Provider { node, module }, SecretName::Provision(binding)) = (account, name) else {
        return Err(format!("{who} may not deposit {what}"));
    };
    let entry = mirror.binding(binding).filter(|_| binding.provider == *module);
    match entry {
        Some(entry) if entry.at.as_ref().is_some_and(|at| at != node) => {
            Err(format!("{}.{} binds {module} on another machine", binding.node, binding.module))
        }
        Some(entry) if entry.credential == Credential::Issued => Ok(what),
        _ => Err(format!("{}.{} does not ask {module} for it", binding.node, binding.module)),
    }
}

/// Every account that may have the value of this row now, with the name by which it asks.
pub fn readers(rules: &Rules, mirror: &Mirror, row: &str) -> Vec<(Account, String)> {
    let provisioner = |node: &str| Account::Provisioner { node: node.to_owned() };
    let mut asked: Vec<(Account, SecretName)> = Vec::new();
    match row.parse::<SecretName>() {
        Ok(SecretName::Own { module, name, node }) => {
            let for_all = SecretName::Own { module: module.clone(), name, node: None };
            let nodes =
                mirror.nodes_of(&module).filter(|own| node.as_deref().is_none_or(|node| node == *own));
            asked.extend(nodes.map(|node| (provisioner(node), for_all.clone())));
        }
        Ok(SecretName::Provision(binding)) => {
            asked.push((provisioner(&binding.node), SecretName::Provision(binding)));
        }
        Ok(SecretName::Pair(binding)) => {
            asked.push((provisioner(&binding.node), SecretName::Provision(binding.clone())));
            let providers = mirror.nodes_of(&binding.provider);
            asked.extend(providers.map(|node| (provisioner(node), SecretName::Pair(binding.clone()))));
        }
        Err(_) => return Vec::new(),
    }
    if let Ok(name) = row.parse::<SecretName>() {
        let allowed = mirror.nodes().map(provisioner).filter(|account| rules.allows(&account.name(), row));
        asked.extend(allowed.map(|account| (account, name.clone())));
    }
    let mut readers: Vec<(Account, String)> = Vec::new();
    for (account, name) in asked {
        let verdict = may_get(rules, mirror, &account, &name);
        let reader = (account, name.to_string());
        let decides =
            matches!(verdict, Verdict::Granted { rows, .. } if rows.iter().any(|other| other == row));
        if decides && !readers.contains(&reader) {
            readers.push(reader);
        }
    }
    readers
}
