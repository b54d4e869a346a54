//! Buckets, keys and subjects.

use super::{
    fault::Fault,
    token::{esc, unesc},
};

/// The bucket with every assignment, `<node>.<module>`: the mirror.
pub const ASSIGNMENTS: &str = "mesh-controller_assignments";
/// The bucket that names the owner of each kind, `<kind>`.
pub const REGISTRY: &str = "mesh-provisioner_registry";
/// The bucket of needs, `<node>.<module>.<kind>.<name>`.
pub const NEEDS: &str = "mesh-provisioner_needs";
/// The bucket of items, `<node>.<collection>.<contributor>`.
pub const COLLECT: &str = "mesh-provisioner_collect";
/// The bucket of latest reports, `<node>.<module>`.
pub const APPLIED: &str = "mesh-provisioner_applied";
/// The bucket of config values, `<node>.<module>.<key>`.
pub const CONFIG: &str = "mesh-config_resolved";
/// The object store of template archives.
pub const TEMPLATES: &str = "mesh-templates";
/// The stream that keeps the latest word of a changed secret.
pub const CHANGED_STREAM: &str = "mesh-vault_changed";
/// Where the vault is asked for a value, followed by the account.
pub const VAULT_GET: &str = "mesh-vault.get";
/// Where a value is deposited with the vault, followed by the account.
pub const VAULT_PUT: &str = "mesh-vault.put";
/// Where the vault says that a secret changed, followed by the account and the name.
pub const SECRET_CHANGED: &str = "mesh-vault.secret-changed";

/// Longest key, in bytes.
pub const MAX_KEY: usize = 1_024;

/// The key of these parts, each escaped.
///
/// # Errors
/// A part is empty, or the key is longer than [`MAX_KEY`].
pub fn key(parts: &[&str]) -> Result<String, Fault> {
    if parts.iter().any(|part| part.is_empty()) {
        return Err(Fault::new("", "a part of the key is empty"));
    }
    let key = parts.iter().map(|part| esc(part)).collect::<Vec<_>>().join(".");
    if key.len() > MAX_KEY {
        return Err(Fault::new("", format!("the key has {} bytes, over the limit of {MAX_KEY}", key.len())));
    }
    Ok(key)
}

/// The parts of a key of exactly `N` parts; none when it has others or one is no token.
pub fn parts<const N: usize>(key: &str) -> Option<[String; N]> {
    if key.len() > MAX_KEY {
        return None;
    }
    let parts: Vec<String> = key.split('.').map(unesc).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// The key of what belongs to a module on a machine: its assignment, its report.
pub fn module_key(node: &str, module: &str) -> Result<String, Fault> {
    key(&[node, module])
}

/// The key of a need.
pub fn need_key(node: &str, module: &str, kind: &str, name: &str) -> Result<String, Fault> {
    key(&[node, module, kind, name])
}

/// The key of a config value, in its escaped form.
pub fn config_key(node: &str, module: &str, name: &str) -> Result<String, Fault> {
    key(&[node, module, name])
}

/// The key of an item.
pub fn collect_key(node: &str, collection: &str, contributor: &str) -> Result<String, Fault> {
    key(&[node, collection, contributor])
}

/// The bucket of a provider.
pub fn bound_bucket(provider: &str) -> String {
    format!("{provider}_bound")
}

/// The key of what a provider serves a module.
pub fn bound_key(node: &str, module: &str, provision: &str, local: Option<&str>) -> Result<String, Fault> {
    match local {
        Some(local) => key(&[node, module, provision, local]),
        None => key(&[node, module, provision]),
    }
}

/// What a key of a config bucket means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigKey {
    /// The machine.
    pub node: String,
    /// The module.
    pub module: String,
    /// The name of the value.
    pub name: String,
    /// It was written with plain dots; the escaped form wins where both exist.
    pub dotted: bool,
}

impl ConfigKey {
    /// Reads a key: two tokens, then the name as one token or, leniently, as several with dots between them.
    pub fn read(key: &str) -> Option<Self> {
        if key.len() > MAX_KEY {
            return None;
        }
        let mut tokens = key.splitn(3, '.');
        let (node, module, rest) = (tokens.next()?, tokens.next()?, tokens.next()?);
        let names: Vec<String> = rest.split('.').map(unesc).collect::<Option<_>>()?;
        Some(Self {
            node: unesc(node)?,
            module: unesc(module)?,
            dotted: names.len() > 1,
            name: names.join("."),
        })
    }
}

/// Where a module's reports are published.
pub fn applied_subject(node: &str, module: &str) -> String {
    format!("prov.applied.{}.{}", esc(node), esc(module))
}

/// Where a machine's client is asked for config values.
pub fn ask_subject(node: &str) -> String {
    format!("prov.ask.{}", esc(node))
}

/// Where the client says which value of a module moved.
pub fn changed_subject(node: &str, module: &str) -> String {
    format!("prov.changed.{}.{}", esc(node), esc(module))
}

/// Where an account hears that a secret changed; `base` as the registry says.
pub fn secret_changed_subject(base: &str, account: &str, name: &str) -> String {
    format!("{base}.{account}.{}", esc(name))
}

/// The subject under which a bucket keeps a key.
pub fn kv_subject(bucket: &str, key: &str) -> String {
    format!("$KV.{bucket}.{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_with_every_part_escaped() {
        for (key, expected) in [
            (module_key("web1.example.com", "forge"), "web1=2Eexample=2Ecom.forge"),
            (
                need_key("web1", "forge", "bound", "postgres.main:host"),
                "web1.forge.bound.postgres=2Emain=3Ahost",
            ),
            (config_key("web1", "forge", "http.port"), "web1.forge.http=2Eport"),
            (collect_key("web1", "shell:zsh:normal", "forge"), "web1.shell=3Azsh=3Anormal.forge"),
            (bound_key("web1", "forge", "postgres", Some("main")), "web1.forge.postgres.main"),
            (bound_key("web1", "forge", "postgres", None), "web1.forge.postgres"),
        ] {
            assert_eq!(key.as_deref(), Ok(expected));
        }
        assert_eq!(applied_subject("a.b", "c"), "prov.applied.a=2Eb.c");
        assert_eq!(ask_subject("a.b"), "prov.ask.a=2Eb");
        assert_eq!(changed_subject("a", "c"), "prov.changed.a.c");
        let changed = secret_changed_subject(SECRET_CHANGED, "provisioner.web1", "own/forge/a.b");
        assert_eq!(changed, "mesh-vault.secret-changed.provisioner.web1.own/forge/a=2Eb");
    }

    #[test]
    fn a_key_that_cannot_be_is_an_error() {
        assert!(module_key("", "forge").is_err());
        assert!(config_key("web1", "forge", &"x".repeat(1_013)).is_ok());
        assert!(config_key("web1", "forge", &"x".repeat(1_014)).is_err());
    }

    #[test]
    fn parts_come_back_only_from_keys_of_ours() {
        assert_eq!(parts::<2>("web1=2Ea.forge"), Some(["web1.a".to_owned(), "forge".to_owned()]));
        for key in ["web1", "web1.forge.x", "web1.", ".forge", "web1.fo=72ge", "web1.a b", ""] {
            assert_eq!(parts::<2>(key), None, "{key}");
        }
    }

    #[test]
    fn config_keys_with_plain_dots_are_understood() {
        let check = |key: &str, name: &str, dotted: bool| {
            let expected = ConfigKey {
                node: "web1".to_owned(),
                module: "forge".to_owned(),
                name: name.to_owned(),
                dotted,
            };
            assert_eq!(ConfigKey::read(key), Some(expected));
        };
        check("web1.forge.http=2Eport", "http.port", false);
        check("web1.forge.http.port", "http.port", true);
        check("web1.forge.port", "port", false);
        for key in ["web1.forge", "web1.forge.", "web1.forge.a..b", "web1.forge.=61"] {
            assert_eq!(ConfigKey::read(key), None, "{key}");
        }
    }
}
