//! What the catalogue holds a module to, before any machine hears of it.

use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::plan::{
    Assignment, Digest, ModuleFile, Placement, Plan, Planned, Reference, Templates as TemplatesPlan,
    read_assignment,
};
use quartermaster_proto::mesh::{Fault, is_bucket_name, is_name, key};

use crate::archive::Templates;
use crate::check;

/// The names of a machine and of a module.
///
/// # Errors
/// One is no name.
pub(super) fn names(node: &str, module: &str) -> Result<(), Fault> {
    for (what, name) in [("the machine's name", node), ("the module's name", module)] {
        if !is_name(name) {
            return Err(Fault::new(what, "is not 1 to 255 bytes without `/` and control characters"));
        }
    }
    Ok(())
}

/// A plan for one machine: what the module declares, where its templates lie, and the machine's placement before the module's.
pub fn plan_for(file: &ModuleFile, placement: &Placement, reference: Reference, digest: Digest) -> Plan {
    let mut placed = file.placement.clone();
    for (kind, values) in placement {
        placed.entry(*kind).or_default().extend(values.clone());
    }
    let templates = TemplatesPlan { reference, digest };
    Plan { templates, placement: placed, contents: file.contents.clone() }
}

/// Everything that can never be right about a plan with its templates.
pub fn plan_faults(node: &str, module: &str, plan: &Plan, templates: &Templates) -> Vec<String> {
    let mut faults = Vec::new();
    if !plan.contents.provides.is_empty() && !is_bucket_name(module) {
        faults.push(format!(
            "provides: `{}` cannot be the name of a provider, which is of A-Z a-z 0-9 _ - alone",
            module.escape_debug()
        ));
    }
    match check::read(&plan.contents, templates) {
        Ok(sources) => {
            faults.extend(check::faults(node, module, plan, sources).iter().map(ToString::to_string));
        }
        Err(error) => faults.push(error.to_string()),
    }
    faults
}

/// The bytes of an assignment, as every reader will understand them.
///
/// # Errors
/// The readers would not.
pub(super) fn encode(node: &str, module: &str, serial: u64, plan: Option<Plan>) -> Result<Vec<u8>, Fault> {
    let planned = plan.map_or(Planned::Nothing, |plan| Planned::Plan(Box::new(plan)));
    let assignment = Assignment { node: node.to_owned(), module: module.to_owned(), serial, planned };
    let bytes = assignment.encode();
    match read_assignment(&key::module_key(node, module)?, &bytes)?.0.planned {
        Planned::Unreadable(fault) => Err(fault),
        _ => Ok(bytes),
    }
}

/// Paths of a plan that another one of the same machine has too; the engine gives each to one module alone.
pub(super) fn shared_paths(plan: &Plan, other: &Assignment) -> Vec<String> {
    let Some(others) = other.plan() else { return Vec::new() };
    let taken = paths(others);
    paths(plan).into_iter().filter(|path| taken.contains(path)).map(str::to_owned).collect()
}

/// Every path a plan writes.
pub fn paths(plan: &Plan) -> Vec<&str> {
    let contents = &plan.contents;
    let files = contents.files.iter().map(|file| file.path.as_str());
    let secrets = contents.secrets.iter().filter_map(|secret| secret.path.as_deref());
    let credentials = contents.provisions.iter().filter_map(|entry| entry.path.as_deref());
    files.chain(secrets).chain(credentials).collect()
}

/// The provider's account that may say what is served.
pub fn provider_account(node: &str, provider: &str) -> Account {
    Account::Provider { node: node.to_owned(), module: provider.to_owned() }
}

/// What is wrong between the modules of a catalogue: a provider that is not there, or does not serve what is asked of it.
pub fn between(modules: &[(String, ModuleFile)]) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for (name, file) in modules {
        for (at, entry) in file.contents.provisions.iter().enumerate() {
            let provider = modules.iter().find(|(other, _)| *other == entry.provider);
            let what = match provider {
                None => format!("provider: the catalogue has no module `{}`", entry.provider),
                Some((_, provider)) if !provider.contents.provides.contains(&entry.provision) => {
                    format!("provision: `{}` does not provide `{}`", entry.provider, entry.provision)
                }
                Some(_) => continue,
            };
            faults.push((name.clone(), format!("provisions[{at}].{what}")));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quartermaster_proto::mesh::plan::read_module_file;

    use super::*;

    fn file(text: &str) -> ModuleFile {
        read_module_file(text.as_bytes()).unwrap().0
    }

    fn reference() -> Reference {
        "file:/t".parse().unwrap()
    }

    fn faults(module: &str, text: &str, template: &str) -> Vec<String> {
        let templates: Templates = [("t".to_owned(), Arc::from(template.as_bytes()))].into();
        let plan = plan_for(&file(text), &Placement::new(), reference(), Digest::of(b""));
        plan_faults("web1", module, &plan, &templates)
    }

    /// T38: what the catalogue refuses of a provider's file.
    #[test]
    fn a_file_of_consumers_is_private_owned_and_of_what_the_module_provides() {
        let module = |write: &str, mode: &str, provides: &str| {
            let text = format!(
                r#"{{"files":[{{"path":"/a","template":"t","owner-at-runtime":"{write}","mode":"{mode}"}}],"provides":["{provides}"]}}"#
            );
            faults("db", &text, "${consumers:sql}")
        };
        assert_eq!(module("owned", "0600", "sql"), Vec::<String>::new());
        for (write, mode, provides) in
            [("owned", "0640", "sql"), ("seed", "0600", "sql"), ("owned", "0600", "other")]
        {
            assert_eq!(module(write, mode, provides).len(), 1, "{write} {mode} {provides}");
        }
    }

    #[test]
    fn a_provider_has_a_name_that_a_bucket_can_have() {
        let text = r#"{"files":[],"provides":["sql"]}"#;
        assert_eq!(faults("data.base", text, "").len(), 1);
        assert_eq!(faults("data-base", text, ""), Vec::<String>::new());
        assert_eq!(faults("data.base", r#"{"files":[]}"#, ""), Vec::<String>::new());
    }

    #[test]
    fn a_machines_placement_goes_before_the_modules() {
        let module = file(r#"{"placement":{"port":{"http":80,"admin":81},"dir":{"data":"/d"}}}"#);
        let machine = file(r#"{"placement":{"port":{"http":3000}}}"#).placement;
        let plan = plan_for(&module, &machine, reference(), Digest::of(b""));
        let bytes = encode("web1", "forge", 7, Some(plan)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains(r#""placement":{"dir":{"data":"/d"},"port":{"admin":81,"http":3000}}"#),
            "{text}"
        );
        assert!(text.contains(r#""serial":7"#), "{text}");
        assert_eq!(encode("web1", "x", 0, None).unwrap(), br#"{"node":"web1","module":"x","serial":0}"#);
    }

    #[test]
    fn a_catalogue_has_a_provider_for_everything() {
        let uses = |provider: &str, provision: &str| {
            let text = format!(
                r#"{{"provisions":[{{"provision":"{provision}","provider":"{provider}","credential":"none"}}]}}"#
            );
            between(&[("forge".to_owned(), file(&text)), ("db".to_owned(), file(r#"{"provides":["sql"]}"#))])
        };
        assert_eq!(uses("db", "sql"), []);
        let fault = |what: &str| vec![("forge".to_owned(), format!("provisions[0].{what}"))];
        assert_eq!(uses("pg", "sql"), fault("provider: the catalogue has no module `pg`"));
        assert_eq!(uses("db", "kv"), fault("provision: `db` does not provide `kv`"));
    }
}
