//! Who may publish and subscribe what: one table, from which the broker's configuration and the tests of it are made.

use super::{
    fault::Fault,
    key,
    token::{esc, is_bucket_name, is_name, unesc},
};

/// A user of the broker: one program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// `provisioner.<node>`: the client of a machine.
    Provisioner {
        /// The machine.
        node: String,
    },
    /// `engine.<node>`: what writes a machine's files.
    Engine {
        /// The machine.
        node: String,
    },
    /// `toolrunner.<node>`: what runs modules' code on a machine.
    ToolRunner {
        /// The machine.
        node: String,
    },
    /// `mesh-vault`.
    Vault,
    /// `mesh-config`.
    Config,
    /// `provider.<node>.<module>`: a provider's helper.
    Provider {
        /// The machine.
        node: String,
        /// The provider.
        module: String,
    },
    /// `mesh-controller`.
    Controller,
}

/// What a user may do. Patterns of the broker, `*` and `>` included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// Subjects it may publish.
    pub publish: Vec<String>,
    /// Subjects it may subscribe.
    pub subscribe: Vec<String>,
}

impl Account {
    /// The name, as one or more tokens of a subject.
    pub fn name(&self) -> String {
        match self {
            Self::Provisioner { node } => format!("provisioner.{}", esc(node)),
            Self::Engine { node } => format!("engine.{}", esc(node)),
            Self::ToolRunner { node } => format!("toolrunner.{}", esc(node)),
            Self::Vault => "mesh-vault".to_owned(),
            Self::Config => "mesh-config".to_owned(),
            Self::Provider { node, module } => format!("provider.{}.{}", esc(node), esc(module)),
            Self::Controller => "mesh-controller".to_owned(),
        }
    }

    /// The account of this name.
    ///
    /// # Errors
    /// It is none of ours.
    pub fn parse(name: &str) -> Result<Self, Fault> {
        let bad = || Fault::new("account", "is none of the mesh's accounts");
        let node = |token: &str| unesc(token).filter(|name| is_name(name)).ok_or_else(bad);
        let tokens: Vec<&str> = name.split('.').collect();
        match *tokens.as_slice() {
            ["provisioner", token] => Ok(Self::Provisioner { node: node(token)? }),
            ["engine", token] => Ok(Self::Engine { node: node(token)? }),
            ["toolrunner", token] => Ok(Self::ToolRunner { node: node(token)? }),
            ["provider", token, module] if is_bucket_name(module) => {
                Ok(Self::Provider { node: node(token)?, module: module.to_owned() })
            }
            ["mesh-vault"] => Ok(Self::Vault),
            ["mesh-config"] => Ok(Self::Config),
            ["mesh-controller"] => Ok(Self::Controller),
            _ => Err(bad()),
        }
    }

    /// What its inboxes begin with, without the final dot.
    pub fn inbox_prefix(&self) -> String {
        format!("_INBOX_{}", self.name())
    }

    /// What it may do, and nothing else.
    pub fn grant(&self) -> Grant {
        let inbox = format!("{}.>", self.inbox_prefix());
        let (publish, mut subscribe) = match self {
            Self::Provisioner { node } => {
                let (me, node) = (self.name(), esc(node));
                let publish = vec![
                    format!("$JS.API.CONSUMER.CREATE.*.*.$KV.*.{node}.>"),
                    whole_bucket(key::ASSIGNMENTS),
                    whole_bucket(key::REGISTRY),
                    create(&format!("OBJ_{}", key::TEMPLATES), &format!("$O.{}.>", key::TEMPLATES)),
                    create(key::CHANGED_STREAM, &format!("{}.{me}.>", key::SECRET_CHANGED)),
                    key::kv_subject(key::NEEDS, &format!("{node}.>")),
                    key::kv_subject(key::COLLECT, &format!("{node}.>")),
                    key::kv_subject(key::APPLIED, &format!("{node}.>")),
                    format!("{}.{me}", key::VAULT_GET),
                    format!("prov.applied.{node}.>"),
                    format!("prov.changed.{node}.>"),
                    format!("_INBOX_toolrunner.{node}.>"),
                ];
                (publish, vec![format!("prov.ask.{node}")])
            }
            Self::Engine { node } => {
                let own = key::kv_subject(key::ASSIGNMENTS, &format!("{}.>", esc(node)));
                (vec![create(&kv_stream(key::ASSIGNMENTS), &own)], vec![])
            }
            Self::ToolRunner { node } => {
                let node = esc(node);
                (vec![format!("prov.ask.{node}")], vec![format!("prov.changed.{node}.>")])
            }
            Self::Vault => (
                vec![
                    whole_bucket(key::ASSIGNMENTS),
                    format!("{}.>", key::SECRET_CHANGED),
                    "_INBOX_provisioner.*.>".to_owned(),
                    "_INBOX_provider.*.*.>".to_owned(),
                ],
                vec![format!("{}.>", key::VAULT_GET), format!("{}.>", key::VAULT_PUT)],
            ),
            Self::Config => (
                vec![
                    whole_bucket(key::NEEDS),
                    whole_bucket(key::ASSIGNMENTS),
                    key::kv_subject(key::CONFIG, ">"),
                ],
                vec![],
            ),
            Self::Provider { module, .. } => (
                vec![
                    whole_bucket(key::REGISTRY),
                    key::kv_subject(&key::bound_bucket(module), ">"),
                    format!("{}.{}", key::VAULT_PUT, self.name()),
                ],
                vec![],
            ),
            Self::Controller => (
                vec![
                    "$JS.API.>".to_owned(),
                    key::kv_subject(key::ASSIGNMENTS, ">"),
                    key::kv_subject(key::REGISTRY, ">"),
                    format!("$O.{}.>", key::TEMPLATES),
                ],
                vec!["prov.applied.>".to_owned()],
            ),
        };
        subscribe.push(inbox);
        Grant { publish, subscribe }
    }
}

/// The stream behind a bucket.
pub fn kv_stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

/// Where a consumer of this stream with exactly this filter is created; the broker refuses a request whose body names another.
pub fn create(stream: &str, filter: &str) -> String {
    format!("$JS.API.CONSUMER.CREATE.{stream}.*.{filter}")
}

fn whole_bucket(bucket: &str) -> String {
    create(&kv_stream(bucket), &key::kv_subject(bucket, ">"))
}

/// True when `subject` is matched by `pattern` as the broker does it.
pub fn matches(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (None, None) | (Some(">"), Some(_)) => return true,
            (Some("*"), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Vec<Account> {
        let node = || "web1.example".to_owned();
        vec![
            Account::Provisioner { node: node() },
            Account::Engine { node: node() },
            Account::ToolRunner { node: node() },
            Account::Vault,
            Account::Config,
            Account::Provider { node: node(), module: "postgres".to_owned() },
            Account::Controller,
        ]
    }

    #[test]
    fn names_come_back() {
        for account in accounts() {
            assert_eq!(Account::parse(&account.name()), Ok(account));
        }
        for name in
            ["", "provisioner", "provisioner.", "provisioner.a.b", "root", "provider.a.b=2Ec", "engine.=61"]
        {
            assert!(Account::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_client_may_do_what_the_table_says() {
        let grant = Account::Provisioner { node: "web1.example".to_owned() }.grant();
        let may = |subject: &str| grant.publish.iter().any(|pattern| matches(pattern, subject));
        for subject in [
            "$JS.API.CONSUMER.CREATE.KV_mesh-config_resolved.r4nd.$KV.mesh-config_resolved.web1=2Eexample.>",
            "$JS.API.CONSUMER.CREATE.KV_postgres_bound.r4nd.$KV.postgres_bound.web1=2Eexample.forge.postgres",
            "$JS.API.CONSUMER.CREATE.KV_mesh-controller_assignments.r4nd.$KV.mesh-controller_assignments.>",
            "$JS.API.CONSUMER.CREATE.KV_mesh-provisioner_registry.r4nd.$KV.mesh-provisioner_registry.>",
            "$JS.API.CONSUMER.CREATE.OBJ_mesh-templates.r4nd.$O.mesh-templates.C.x",
            "$JS.API.CONSUMER.CREATE.mesh-vault_changed.r4nd.mesh-vault.secret-changed.provisioner.web1=2Eexample.>",
            "$KV.mesh-provisioner_needs.web1=2Eexample.forge.config.a",
            "mesh-vault.get.provisioner.web1=2Eexample",
            "prov.applied.web1=2Eexample.forge",
            "_INBOX_toolrunner.web1=2Eexample.x.y",
        ] {
            assert!(may(subject), "{subject}");
        }
        for subject in [
            "$JS.API.CONSUMER.CREATE.KV_mesh-config_resolved.r4nd.$KV.mesh-config_resolved.>",
            "$JS.API.CONSUMER.CREATE.KV_mesh-config_resolved.r4nd.$KV.mesh-config_resolved.web2.>",
            "$JS.API.CONSUMER.CREATE.KV_mesh-config_resolved",
            "$JS.API.STREAM.INFO.KV_mesh-config_resolved",
            "$JS.API.DIRECT.GET.KV_mesh-config_resolved.$KV.mesh-config_resolved.web1=2Eexample.forge.a",
            "$KV.mesh-controller_assignments.web1=2Eexample.forge",
            "$KV.mesh-provisioner_applied.web2.forge",
            "mesh-vault.get.provisioner.web2",
            "mesh-vault.put.provisioner.web1=2Eexample",
            "_INBOX_toolrunner.web2.x",
            "_INBOX_provisioner.web1=2Eexample.x",
        ] {
            assert!(!may(subject), "{subject}");
        }
    }

    #[test]
    fn everybody_hears_only_the_own_inbox() {
        for account in accounts() {
            let inboxes: Vec<_> = account
                .grant()
                .subscribe
                .into_iter()
                .filter(|pattern| pattern.starts_with("_INBOX"))
                .collect();
            assert_eq!(inboxes, [format!("_INBOX_{}.>", account.name())]);
        }
    }

    #[test]
    fn patterns_match_as_the_broker_does() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            ("*.>", "a", false),
            ("a.b", "a", false),
            ("a", "a.b", false),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} {subject}");
        }
    }
}
