//! Assignments written, as the controller does.

use std::collections::BTreeMap;

use serde::Serialize;

use super::shape::{
    Assignment, Attributes, Contents, Managed, MarkerPlace, OnChange, Placement, Plan, Planned, WriteMode,
};
use crate::mesh::value::Json;

impl Assignment {
    /// The value of its entry in the mirror. A plan that could not be read is left out.
    pub fn encode(&self) -> Vec<u8> {
        let written = AssignmentOut {
            node: &self.node,
            module: &self.module,
            serial: self.serial,
            provisioning: if let Planned::Plan(plan) = &self.planned { Some(plan_out(plan)) } else { None },
        };
        crate::json::to_secret_bytes(&written).to_vec()
    }
}

#[derive(Serialize)]
struct AssignmentOut<'a> {
    node: &'a str,
    module: &'a str,
    serial: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioning: Option<PlanOut<'a>>,
}

#[derive(Serialize)]
struct PlanOut<'a> {
    templates: TemplatesOut,
    files: Vec<FileOut<'a>>,
    placement: BTreeMap<&'static str, &'a BTreeMap<String, Json>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    provisions: Vec<ProvisionOut<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    provides: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<ItemOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    collections: Vec<CollectionOut<'a>>,
}

#[derive(Serialize)]
struct TemplatesOut {
    reference: String,
    digest: String,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FileOut<'a> {
    path: &'a str,
    template: &'a str,
    owner_at_runtime: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    managed: Option<ManagedOut<'a>>,
    #[serde(flatten)]
    taken: TakenOut<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    filters: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ManagedOut<'a> {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment_end: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'static str>,
}

/// What every kind of file carries.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TakenOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    on_change: Option<OnChangeOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

#[derive(Default, Serialize)]
struct OnChangeOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    restart: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reload: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    command: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    start: bool,
}

#[derive(Serialize)]
struct SecretOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(flatten)]
    taken: TakenOut<'a>,
}

#[derive(Serialize)]
struct ProvisionOut<'a> {
    provision: &'a str,
    provider: &'a str,
    credential: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(flatten)]
    taken: TakenOut<'a>,
}

#[derive(Serialize)]
struct ItemOut<'a> {
    collection: &'a str,
    template: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct CollectionOut<'a> {
    collection: &'a str,
    comment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment_end: Option<&'a str>,
}

fn plan_out(plan: &Plan) -> PlanOut<'_> {
    let Contents { files, secrets, provisions, provides, items, collections } = &plan.contents;
    PlanOut {
        templates: TemplatesOut {
            reference: plan.templates.reference.to_string(),
            digest: plan.templates.digest.to_string(),
        },
        placement: placement_out(&plan.placement),
        files: files
            .iter()
            .map(|file| FileOut {
                path: &file.path,
                template: &file.template,
                owner_at_runtime: file.write.as_str(),
                managed: if let WriteMode::Managed(managed) = &file.write {
                    Some(managed_out(managed))
                } else {
                    None
                },
                taken: taken_out(&file.attributes, file.on_change.as_ref()),
                filters: file.filters,
            })
            .collect(),
        secrets: secrets
            .iter()
            .map(|secret| SecretOut {
                name: &secret.name,
                path: secret.path.as_deref(),
                taken: taken_out(&secret.attributes, secret.on_change.as_ref()),
            })
            .collect(),
        provisions: provisions
            .iter()
            .map(|entry| ProvisionOut {
                provision: &entry.provision,
                provider: &entry.provider,
                credential: entry.credential.as_str(),
                local: entry.local.as_deref(),
                name: entry.name.as_deref(),
                at: entry.at.as_deref(),
                path: entry.path.as_deref(),
                taken: taken_out(&entry.attributes, entry.on_change.as_ref()),
            })
            .collect(),
        provides,
        items: items
            .iter()
            .map(|item| ItemOut { collection: &item.collection, template: &item.template })
            .collect(),
        collections: collections
            .iter()
            .map(|found| CollectionOut {
                collection: &found.collection,
                comment: &found.comment,
                comment_end: found.comment_end.as_deref(),
            })
            .collect(),
    }
}

fn placement_out(placement: &Placement) -> BTreeMap<&'static str, &BTreeMap<String, Json>> {
    placement.iter().map(|(kind, values)| (kind.as_str(), values)).collect()
}

fn managed_out(managed: &Managed) -> ManagedOut<'_> {
    ManagedOut {
        format: managed.format.as_str(),
        comment: managed.comment.as_deref(),
        comment_end: managed.comment_end.as_deref(),
        at: (managed.place == MarkerPlace::Start).then_some("start"),
    }
}

fn taken_out<'a>(attributes: &'a Attributes, on_change: Option<&'a OnChange>) -> TakenOut<'a> {
    TakenOut {
        on_change: on_change.map(|on_change| match on_change {
            OnChange::Restart { unit, start } => {
                OnChangeOut { restart: Some(unit), start: *start, ..OnChangeOut::default() }
            }
            OnChange::Reload { unit, start } => {
                OnChangeOut { reload: Some(unit), start: *start, ..OnChangeOut::default() }
            }
            OnChange::Command(command) => OnChangeOut { command, ..OnChangeOut::default() },
        }),
        owner: attributes.owner.as_deref(),
        group: attributes.group.as_deref(),
        mode: attributes.mode.map(|mode| mode.to_string()),
    }
}
