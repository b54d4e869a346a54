//! Values that owners would write: config values, and what a provider serves.

use quartermaster_proto::mesh::bound::Bound;
use quartermaster_proto::mesh::value::Json;
use quartermaster_proto::mesh::{Fault, is_bucket_name, is_name, key};

use super::catalogue::names;
use super::error::MeshError;
use super::rows::{Before, delete, put};
use crate::client::bus::Bus;

/// Writes a config value, as `mesh-config`.
///
/// # Errors
/// A name is none, or it is not stored.
pub async fn set_config(
    bus: &Bus,
    node: &str,
    module: &str,
    name: &str,
    value: &Json,
) -> Result<u64, MeshError> {
    names(node, module)?;
    let key = key::config_key(node, module, name)?;
    put(bus, key::CONFIG, &key, value.get().as_bytes().to_vec(), None, Before::Any).await
}

/// Takes a config value away, as `mesh-config`.
///
/// # Errors
/// A name is none, or it is not stored.
pub async fn unset_config(bus: &Bus, node: &str, module: &str, name: &str) -> Result<u64, MeshError> {
    names(node, module)?;
    delete(bus, key::CONFIG, &key::config_key(node, module, name)?).await
}

/// Whom a provider serves what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The consumer's machine.
    pub node: &'a str,
    /// The consumer.
    pub module: &'a str,
    /// The provision.
    pub provision: &'a str,
    /// Which of several.
    pub local: Option<&'a str>,
}

impl Binding<'_> {
    fn key(&self) -> Result<String, Fault> {
        names(self.node, self.module)?;
        if !is_bucket_name(self.provider) {
            return Err(Fault::new("the provider", "is not of A-Z a-z 0-9 _ - alone"));
        }
        for name in [Some(self.provision), self.local].into_iter().flatten() {
            if !is_name(name) {
                return Err(Fault::new("the provision", "is no name"));
            }
        }
        key::bound_key(self.node, self.module, self.provision, self.local)
    }
}

/// Writes what a provider serves, or that it will not, as the provider's own account.
///
/// # Errors
/// A name is none, or it is not stored.
pub async fn bind(bus: &Bus, binding: &Binding<'_>, entry: &Bound) -> Result<u64, MeshError> {
    let key = binding.key()?;
    put(bus, &key::bound_bucket(binding.provider), &key, entry.encode(), None, Before::Any).await
}

/// Takes away what a provider served.
///
/// # Errors
/// A name is none, or it is not stored.
pub async fn unbind(bus: &Bus, binding: &Binding<'_>) -> Result<u64, MeshError> {
    let key = binding.key()?;
    delete(bus, &key::bound_bucket(binding.provider), &key).await
}
