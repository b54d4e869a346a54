//! Modules put on machines and taken off: signed entries of the mirror.

use quartermaster_proto::mesh::plan::{
    Assignment, Digest, ModuleFile, Placement, Plan, Reference, read_assignment,
};
use quartermaster_proto::mesh::{esc, key};
use quartermaster_proto::time::WallClock;

use super::catalogue::{encode, names, plan_faults, plan_for, shared_paths};
use super::error::MeshError;
use super::providers::providers;
use super::rows::{Before, delete, put, rows};
use super::signer::Signer;
use super::stores::prepare_bound;
use crate::archive;
use crate::client::bus::Bus;
use crate::client::templates::Fetcher;

/// What is to be assigned.
#[derive(Debug, Clone)]
pub struct Order {
    /// The machine.
    pub node: String,
    /// The module.
    pub module: String,
    /// What it declares; none for a module of which nothing is filled.
    pub file: Option<ModuleFile>,
    /// The machine's placement values, before those of the module's file.
    pub placement: Placement,
    /// Where its templates lie, when its file does not say so or says otherwise.
    pub reference: Option<Reference>,
}

/// What was assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// Its place in the mirror.
    pub revision: u64,
    /// Its serial.
    pub serial: u64,
    /// What its templates hash to.
    pub digest: Option<Digest>,
    /// What another module of the machine has too: the path and the module.
    pub shared: Vec<(String, String)>,
    /// Providers that no machine has yet, each as a sentence.
    pub unserved: Vec<String>,
}

/// Checks a module with its templates as the catalogue does, and only then writes its assignment. A provider gets its bucket.
///
/// # Errors
/// The catalogue refuses it, the templates cannot be had, or it is not stored.
pub async fn assign(
    bus: &Bus,
    signer: &Signer,
    order: &Order,
    now: WallClock,
) -> Result<Assigned, MeshError> {
    let (node, module) = (order.node.as_str(), order.module.as_str());
    names(node, module)?;
    let own = key::module_key(node, module)?;
    let mut shared = Vec::new();
    let plan = match &order.file {
        Some(file) => Some(checked(bus, order, file).await?),
        None => None,
    };
    let (mut before, mut last) = (0, 0);
    // Providers may be anywhere.
    let is_bound = plan.as_ref().is_some_and(|plan| !plan.contents.provisions.is_empty());
    let meant = if is_bound { ">".to_owned() } else { format!("{}.>", esc(node)) };
    let mut others = Vec::new();
    for row in rows(bus, key::ASSIGNMENTS, &meant).await? {
        let read = row.value.as_deref().and_then(|value| read_assignment(&row.key, value).ok());
        if row.key == own {
            before = row.revision;
            last = read.map_or(0, |(assignment, _)| assignment.serial);
        } else if let Some((other, _)) = read {
            others.push(other);
        }
    }
    let mut unserved = Vec::new();
    if let Some(plan) = &plan {
        for other in others.iter().filter(|other| other.node == node) {
            let Assignment { module, .. } = other;
            shared.extend(shared_paths(plan, other).into_iter().map(|path| (path, module.clone())));
        }
        let providers = providers(plan, &others);
        if !providers.wrong.is_empty() {
            return Err(MeshError::Refused(providers.wrong));
        }
        unserved = providers.missing;
    }
    let digest = plan.as_ref().map(|plan| plan.templates.digest);
    let is_provider = plan.as_ref().is_some_and(|plan| !plan.contents.provides.is_empty());
    let serial = next_serial(last, now);
    let value = encode(node, module, serial, plan)?;
    if is_provider {
        prepare_bound(bus, module).await?;
    }
    let revision = put(bus, key::ASSIGNMENTS, &own, value, Some(signer), Before::Revision(before)).await?;
    Ok(Assigned { revision, serial, digest, shared, unserved })
}

/// Writes any bytes as an assignment, signed and unchecked: what the catalogue would never let pass, for who tests what becomes of it.
///
/// # Errors
/// It is not stored.
pub async fn assign_unchecked(
    bus: &Bus,
    signer: &Signer,
    node: &str,
    module: &str,
    value: Vec<u8>,
) -> Result<u64, MeshError> {
    let own = key::module_key(node, module)?;
    put(bus, key::ASSIGNMENTS, &own, value, Some(signer), Before::Any).await
}

/// Takes a module off a machine; the mirror's revision of that, or none when it was not there.
///
/// # Errors
/// It is not stored.
pub async fn unassign(bus: &Bus, node: &str, module: &str) -> Result<Option<u64>, MeshError> {
    names(node, module)?;
    let own = key::module_key(node, module)?;
    let there = rows(bus, key::ASSIGNMENTS, &own).await?;
    if !there.iter().any(|row| row.value.is_some()) {
        return Ok(None);
    }
    delete(bus, key::ASSIGNMENTS, &own).await.map(Some)
}

async fn checked(bus: &Bus, order: &Order, file: &ModuleFile) -> Result<Plan, MeshError> {
    let refused = |why: String| MeshError::Refused(vec![why]);
    let Some(reference) = order.reference.clone().or_else(|| file.reference.clone()) else {
        return Err(refused(
            "templates.reference: is missing, and --templates says nothing: where do the templates lie?"
                .to_owned(),
        ));
    };
    let fetched = Fetcher::new(Some(bus.clone())).fetch(&reference).await;
    let bytes =
        fetched.map_err(|source| MeshError::Templates { reference: reference.to_string(), source })?;
    let digest = Digest::of(&bytes);
    if order.reference.is_none()
        && let Some(declared) = file.digest.filter(|declared| *declared != digest)
    {
        return Err(refused(format!("templates.digest: is {declared}, and {reference} hashes to {digest}")));
    }
    let templates = archive::read(&bytes).map_err(|error| refused(error.to_string()))?;
    let plan = plan_for(file, &order.placement, reference, digest);
    let faults = plan_faults(&order.node, &order.module, &plan, &templates);
    if faults.is_empty() { Ok(plan) } else { Err(MeshError::Refused(faults)) }
}

/// Milliseconds since 1970, and always more than the last one: so it also grows over the deletion of an entry.
fn next_serial(last: u64, now: WallClock) -> u64 {
    let millis = u64::try_from(now.nanos().div_euclid(1_000_000)).unwrap_or_default();
    millis.max(last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_grows() {
        let now = WallClock::from_seconds(1_795_975_200);
        assert_eq!(next_serial(0, now), 1_795_975_200_000);
        assert_eq!(next_serial(1_795_975_200_000, now), 1_795_975_200_001);
        assert_eq!(next_serial(9_795_975_200_000, now), 9_795_975_200_001);
    }
}
