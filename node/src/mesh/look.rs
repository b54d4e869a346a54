//! What the mesh holds, for people.

use std::collections::BTreeMap;

use quartermaster_proto::mesh::need::Need;
use quartermaster_proto::mesh::plan::{Assignment, Plan, Planned, read_assignment};
use quartermaster_proto::mesh::registry::Entry;
use quartermaster_proto::mesh::report::Report;
use quartermaster_proto::mesh::signature::PublicNkey;
use quartermaster_proto::mesh::{Kind, key};

use super::error::MeshError;
use super::rows::{Row, rows};
use crate::client::bus::Bus;

/// Which modules are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Of this machine alone.
    pub node: Option<String>,
    /// This module alone.
    pub module: Option<String>,
}

impl Selection {
    /// True for a module that is meant.
    pub fn takes(&self, node: &str, module: &str) -> bool {
        self.node.as_deref().is_none_or(|wanted| wanted == node)
            && self.module.as_deref().is_none_or(|wanted| wanted == module)
    }
}

/// A module on a machine.
#[derive(Debug, Clone)]
pub struct Placed {
    /// What the mirror says.
    pub assignment: Assignment,
    /// Its place in the mirror.
    pub revision: u64,
    /// Why nobody who pins the controller's key believes it, if so.
    pub disbelieved: Option<String>,
    /// The client's latest report.
    pub report: Option<Report>,
}

impl Placed {
    /// Its plan, where there is a good one.
    pub fn plan(&self) -> Option<&Plan> {
        self.assignment.plan()
    }

    /// Why its plan cannot be read, if so.
    pub fn fault(&self) -> Option<String> {
        if let Planned::Unreadable(fault) = &self.assignment.planned { Some(fault.to_string()) } else { None }
    }
}

/// The latest reports, in the order of machines and modules.
///
/// # Errors
/// The bucket cannot be read.
pub async fn reports(bus: &Bus, selection: &Selection) -> Result<Vec<Report>, MeshError> {
    let found = rows(bus, key::APPLIED, ">").await?;
    let read = |row: Row| Report::read(&row.value?).ok();
    let mut found: Vec<Report> = found.into_iter().filter_map(read).collect();
    found.retain(|report| selection.takes(&report.node, &report.module));
    found.sort_by(|one, other| (&one.node, &one.module).cmp(&(&other.node, &other.module)));
    Ok(found)
}

/// The needs, in the order of machines, modules, kinds and names.
///
/// # Errors
/// The bucket cannot be read.
pub async fn needs(bus: &Bus, selection: &Selection) -> Result<Vec<Need>, MeshError> {
    let found = rows(bus, key::NEEDS, ">").await?;
    let mut found: Vec<Need> = found.into_iter().filter_map(|row| Need::read(&row.value?).ok()).collect();
    found.retain(|need| selection.takes(&need.node, &need.module));
    found.sort_by(|one, other| {
        let order = |need: &Need| [&need.node, &need.module, &need.kind, &need.name].map(Clone::clone);
        order(one).cmp(&order(other))
    });
    Ok(found)
}

/// Every assigned module with its latest report, in the order of machines and modules.
///
/// # Errors
/// A bucket cannot be read.
pub async fn modules(
    bus: &Bus,
    controller: &PublicNkey,
    selection: &Selection,
) -> Result<Vec<Placed>, MeshError> {
    let said = reports(bus, selection).await?;
    let mut said: BTreeMap<(String, String), Report> =
        said.into_iter().map(|report| ((report.node.clone(), report.module.clone()), report)).collect();
    let mut found = Vec::new();
    for row in rows(bus, key::ASSIGNMENTS, ">").await? {
        let Some(value) = &row.value else { continue };
        // What is no assignment at all is nobody's.
        let Ok((assignment, _)) = read_assignment(&row.key, value) else { continue };
        if selection.takes(&assignment.node, &assignment.module) {
            let report = said.remove(&(assignment.node.clone(), assignment.module.clone()));
            let disbelieved = row.is_signed_by(controller).err().map(|error| error.to_string());
            found.push(Placed { revision: row.revision, disbelieved, report, assignment });
        }
    }
    found.sort_by(|one, other| {
        let order = |placed: &Placed| (placed.assignment.node.clone(), placed.assignment.module.clone());
        order(one).cmp(&order(other))
    });
    Ok(found)
}

/// What is wrong with the registry: the kind, and what.
///
/// # Errors
/// The bucket cannot be read.
pub async fn registry_faults(
    bus: &Bus,
    controller: &PublicNkey,
) -> Result<Vec<(&'static str, String)>, MeshError> {
    let found: BTreeMap<String, Row> =
        rows(bus, key::REGISTRY, ">").await?.into_iter().map(|row| (row.key.clone(), row)).collect();
    let fault = |kind: Kind| {
        let row = found.get(kind.as_str());
        let Some((row, value)) = row.and_then(|row| Some((row, row.value.as_deref()?))) else {
            return Some("has no entry".to_owned());
        };
        let read = Entry::read(&row.key, value).err().map(|fault| fault.to_string());
        read.or_else(|| row.is_signed_by(controller).err().map(|error| error.to_string()))
    };
    Ok(Kind::ALL.into_iter().filter_map(|kind| Some((kind.as_str(), fault(kind)?))).collect())
}
