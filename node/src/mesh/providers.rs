//! The providers that a plan names, looked for among what is assigned.

use quartermaster_proto::mesh::plan::{Assignment, Plan, Planned};

use crate::near::near;

/// What is not as a plan has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Providers {
    /// A provider is there and does not provide what is asked of it, so it never will be served.
    pub(super) wrong: Vec<String>,
    /// A provider is not there yet.
    pub(super) missing: Vec<String>,
}

/// Looks for every provider of a plan. One without a plan, or whose plan cannot be read, may provide anything.
pub(super) fn providers(plan: &Plan, others: &[Assignment]) -> Providers {
    let mut found = Providers::default();
    for (at, entry) in plan.contents.provisions.iter().enumerate() {
        let is_meant = |other: &&Assignment| {
            other.module == entry.provider && entry.at.as_ref().is_none_or(|node| *node == other.node)
        };
        let place = format!("provisions[{at}]");
        let provider = &entry.provider;
        let mut meant = others.iter().filter(is_meant).peekable();
        if meant.peek().is_none() {
            let machine = entry
                .at
                .as_deref()
                .map_or_else(|| "no machine has".to_owned(), |at| format!("{at} does not have"));
            let known = others
                .iter()
                .filter(|other| other.plan().is_some_and(|plan| !plan.contents.provides.is_empty()));
            let like = near(provider, known.map(|other| other.module.as_str()));
            let like = like.map_or_else(String::new, |like| format!("; is `{like}` meant?"));
            found.missing.push(format!("{place}.provider: {machine} the module `{provider}`{like}"));
            continue;
        }
        let served: Option<Vec<&str>> = meant
            .map(|other| match &other.planned {
                Planned::Plan(plan) => Some(plan.contents.provides.iter().map(String::as_str)),
                Planned::Nothing | Planned::Unreadable(_) => None,
            })
            .try_fold(Vec::new(), |mut all, provides| {
                all.extend(provides?);
                Some(all)
            });
        if let Some(served) = served.filter(|served| !served.contains(&entry.provision.as_str())) {
            let like = near(&entry.provision, served);
            let like = like.map_or_else(String::new, |like| format!("; is `{like}` meant?"));
            found.wrong.push(format!(
                "{place}.provision: `{provider}` does not provide `{}`{like}",
                entry.provision
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::mesh::plan::read_assignment;

    use super::*;

    fn assignment(key: &str, plan: &str) -> Assignment {
        let (node, module) = key.split_once('.').unwrap();
        let templates =
            format!(r#""templates":{{"reference":"file:/t","digest":"sha256:{}"}}"#, "0".repeat(64));
        let plan = if plan.is_empty() {
            String::new()
        } else {
            format!(r#","provisioning":{{{templates},{plan}}}"#)
        };
        let text = format!(r#"{{"node":"{node}","module":"{module}"{plan}}}"#);
        read_assignment(key, text.as_bytes()).unwrap().0
    }

    fn check(entry: &str, wrong: &[&str], missing: &[&str]) {
        let others = [
            assignment("db1.db", r#""provides":["sql"]"#),
            assignment("db1.bare", ""),
            assignment("web2.app", r#""provisions":[]"#),
        ];
        let text = format!(r#""provisions":[{{"credential":"none",{entry}}}]"#);
        let consumer = assignment("web1.web", &text);
        let found = providers(consumer.plan().unwrap(), &others);
        assert_eq!(
            (found.wrong.as_slice(), found.missing.as_slice()),
            (&owned(wrong)[..], &owned(missing)[..])
        );
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_provider_is_there_or_not_and_provides_what_is_asked_of_it_or_not() {
        check(r#""provision":"sql","provider":"db""#, &[], &[]);
        check(r#""provision":"sql","provider":"db","at":"db1""#, &[], &[]);
        check(r#""provision":"anything","provider":"bare""#, &[], &[]);
        check(
            r#""provision":"SQL","provider":"db""#,
            &["provisions[0].provision: `db` does not provide `SQL`; is `sql` meant?"],
            &[],
        );
        check(
            r#""provision":"kv","provider":"app""#,
            &["provisions[0].provision: `app` does not provide `kv`"],
            &[],
        );
        check(
            r#""provision":"sql","provider":"DB""#,
            &[],
            &["provisions[0].provider: no machine has the module `DB`; is `db` meant?"],
        );
        check(
            r#""provision":"sql","provider":"db","at":"db2""#,
            &[],
            &["provisions[0].provider: db2 does not have the module `db`"],
        );
    }
}
