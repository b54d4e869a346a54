//! Plans and templates checked without a bus, for who writes them.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use quartermaster_proto::mesh::{
    Fault, Kind, key,
    plan::{Digest, Plan, Planned, Reference, Templates as TemplatesPlan, read_assignment, read_module_file},
    registry::Entry,
};

use crate::{
    archive::{self, ArchiveError, MAX_ENTRIES, MAX_FETCHED, MAX_TEMPLATE, Templates},
    check,
    template::Template,
};

/// What cannot be looked at at all.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// A file or folder cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The templates are refused.
    #[error("the templates are refused")]
    Archive(#[from] ArchiveError),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// What can never be right, each with its place.
    pub faults: Vec<String>,
    /// Members nobody knows, which are passed over.
    pub unknown: Vec<String>,
    /// What the templates name, as `kind:name`, and by what.
    pub needs: Vec<(String, Vec<String>)>,
}

/// Reads a file that is no longer than an archive may be.
///
/// # Errors
/// It cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, OfflineError> {
    let fault = |source| OfflineError::Read { path: path.to_owned(), source };
    let limit = u64::try_from(MAX_FETCHED).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path).map_err(fault)?.take(limit + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() > MAX_FETCHED { Err(ArchiveError::TooLong(bytes.len()).into()) } else { Ok(bytes) }
}

/// Templates from an archive, or from a folder of what goes into one.
///
/// # Errors
/// They cannot be read, or would be refused.
pub fn read_templates(path: &Path) -> Result<Templates, OfflineError> {
    if !path.is_dir() {
        return Ok(archive::read(&read_file(path)?)?);
    }
    let mut templates = Templates::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let fault = |source| OfflineError::Read { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let (kind, found) = (entry.file_type().map_err(fault)?, entry.path());
            let name = found.strip_prefix(path).unwrap_or(&found).to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(found);
            } else if kind.is_file() {
                let bytes = read_file(&found)?;
                if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_TEMPLATE) {
                    return Err(ArchiveError::Template(name).into());
                }
                templates.insert(name, bytes.into());
            } else {
                return Err(ArchiveError::NotAFile(name).into());
            }
            if templates.len() > MAX_ENTRIES {
                return Err(ArchiveError::TooMany.into());
            }
        }
    }
    Ok(templates)
}

/// Checks a plan: an entry of the mirror, or a module's file without what belongs to one machine. With its templates, also what
/// they name.
pub fn check_plan(text: &[u8], templates: Option<&Templates>) -> Findings {
    let mut findings = Findings::default();
    let (node, module, plan) = match read_plan(text, &mut findings.unknown) {
        Ok(read) => read,
        Err(fault) => {
            findings.faults.push(fault.to_string());
            return findings;
        }
    };
    let Some(templates) = templates else { return findings };
    let sources = match check::read(&plan.contents, templates) {
        Ok(sources) => sources,
        Err(error) => {
            findings.faults.push(error.to_string());
            return findings;
        }
    };
    let registry: BTreeMap<Kind, Entry> =
        Entry::defaults(None).into_iter().map(|entry| (entry.kind, entry)).collect();
    let needs = check::needs(&node, &module, &plan, &sources, &registry);
    findings.needs =
        needs.into_iter().map(|need| (format!("{}:{}", need.kind, need.name), need.by)).collect();
    findings.faults = check::faults(&node, &module, &plan, sources).iter().map(ToString::to_string).collect();
    findings
}

/// Machine, module and plan; what only a machine's own entry has is made up for a module's file.
fn read_plan(text: &[u8], unread: &mut Vec<String>) -> Result<(String, String, Plan), Fault> {
    let names = serde_json::from_slice::<serde_json::Value>(text).ok().and_then(|value| {
        let name = |member| value.get(member)?.as_str().map(str::to_owned);
        Some((name("node")?, name("module")?))
    });
    if let Some((node, module)) = names {
        let (assignment, unknown) = read_assignment(&key::module_key(&node, &module)?, text)?;
        *unread = unknown;
        return match assignment.planned {
            Planned::Plan(plan) => Ok((node, module, *plan)),
            Planned::Unreadable(fault) => Err(fault),
            Planned::Nothing => {
                Err(Fault::new("provisioning", "is missing: nothing of this module is filled"))
            }
        };
    }
    let (file, unknown) = read_module_file(text)?;
    *unread = unknown;
    let reference = file.reference.unwrap_or(Reference::File("/templates".to_owned()));
    let templates = TemplatesPlan { reference, digest: file.digest.unwrap_or_else(|| Digest::of(b"")) };
    let plan = Plan { templates, placement: file.placement, contents: file.contents };
    Ok(("node".to_owned(), "module".to_owned(), plan))
}

/// Checks one template on its own: its form, its filters and its kinds.
pub fn check_template(text: &[u8], filters: bool) -> Findings {
    let mut findings = Findings::default();
    let template = match Template::parse(text, filters) {
        Ok(template) => template,
        Err(error) => {
            findings.faults.push(error.to_string());
            return findings;
        }
    };
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in template.placeholders() {
        let shown = format!("{}:{}", found.kind, found.name);
        if Kind::parse(&found.kind).is_none() {
            findings
                .faults
                .push(format!("line {}: {shown}: no such kind of placeholder is known", found.line));
        }
        needs.entry(shown).or_default().push(format!("line {}", found.line));
    }
    findings.needs = needs.into_iter().collect();
    findings
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const MODULE: &str = r#"{"files":[{"path":"/a","template":"sub/a","owner-at-runtime":"owned"}],"odd":1}"#;

    fn templates(text: &str) -> Templates {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/a"), text).unwrap();
        read_templates(dir.path()).unwrap()
    }

    #[test]
    fn every_placeholder_that_cannot_be_is_named_with_its_line() {
        let findings = check_plan(MODULE.as_bytes(), Some(&templates("${config:a}\n${foo:b}\n${secret:c}")));
        let expected = [
            "template `sub/a`, line 2: foo b: no such kind of placeholder is known",
            "template `sub/a`, line 3: secret c: the plan names no such secret",
        ];
        assert_eq!(findings.faults, expected);
        assert_eq!(findings.unknown, ["odd"]);
        let needs: Vec<_> = findings.needs.iter().map(|(need, by)| (need.as_str(), by.join(" "))).collect();
        assert_eq!(needs.len(), 3);
        assert_eq!(needs[0], ("config:a", "/a".to_owned()));
    }

    #[test]
    fn a_plan_is_checked_as_a_modules_file_and_as_an_entry_of_the_mirror() {
        assert_eq!(check_plan(MODULE.as_bytes(), Some(&templates("x"))).faults, Vec::<String>::new());
        let path = MODULE.replace("/a", "a");
        assert_eq!(check_plan(path.as_bytes(), None).faults, ["files[0].path: is not an absolute path"]);
        let entry = r#"{"node":"web1","module":"forge"}"#;
        let missing = "provisioning: is missing: nothing of this module is filled";
        assert_eq!(check_plan(entry.as_bytes(), None).faults, [missing]);
        let entry = r#"{"node":"web1","module":"forge","provisioning":{}}"#;
        let missing = "provisioning.templates.reference: is missing";
        assert_eq!(check_plan(entry.as_bytes(), None).faults, [missing]);
        assert_eq!(check_plan(b"{", None).faults.len(), 1);
    }

    #[test]
    fn a_template_is_checked_alone() {
        let findings = check_template(b"${config:a}\n${foo:b}\n${config:a}", false);
        assert_eq!(findings.faults, ["line 2: foo:b: no such kind of placeholder is known"]);
        assert_eq!(
            findings.needs[0],
            ("config:a".to_owned(), vec!["line 1".to_owned(), "line 3".to_owned()])
        );
        assert_eq!(
            check_template(b"${config:a|jsn}", true).faults,
            ["line 1: config a: unknown filter `jsn`"]
        );
    }

    #[test]
    fn templates_that_would_be_refused_are_refused() {
        let dir = TempDir::new().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("a")).unwrap();
        assert!(matches!(read_templates(dir.path()), Err(OfflineError::Archive(ArchiveError::NotAFile(_)))));
        assert!(matches!(read_templates(&dir.path().join("none")), Err(OfflineError::Read { .. })));
    }
}
