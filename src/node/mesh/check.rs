//! `quartermaster mesh check`: a catalogue, a module's file or an assignment, without a broker.

use std::path::{Path, PathBuf};

use quartermaster_node::mesh::{between, plan_faults, plan_for};
use quartermaster_node::offline::{OfflineError, check_plan, read_file, read_templates};
use quartermaster_proto::mesh::plan::{Digest, ModuleFile, Placement, Reference, read_module_file};
use serde_json::{Value, json};

use super::super::serve::Chain;
use super::place::{clean, json as print};
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// What declares a module in a catalogue.
const MODULE: &str = "module.json";
/// The folder of a module's templates beside it.
const TEMPLATES: &str = "templates";

/// Arguments of `quartermaster mesh check`.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckArgs {
    /// A module's file, an assignment, a module's folder, or a catalogue: a folder of modules' folders, each with a module.json and
    /// a folder templates
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    /// Its templates: an archive or a folder [default: the folder `templates` beside the file]
    #[arg(long, value_name = "PATH")]
    templates: Option<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// What was found in one file.
#[derive(Default)]
struct Found {
    file: PathBuf,
    faults: Vec<String>,
    unknown: Vec<String>,
    needs: Vec<String>,
}

pub(super) fn check(args: &CheckArgs, out: &mut Out) -> Exit {
    match look(args) {
        Ok(found) if found.is_empty() => {
            say(&format!("error: {} holds no {MODULE}, and no folder with one\n", args.path.display()));
            Exit::Files
        }
        Ok(found) => show(&found, args.json, out),
        Err(error) => {
            say(&format!("error: {}\n", clean(&Chain(&error).to_string())));
            Exit::Files
        }
    }
}

fn look(args: &CheckArgs) -> Result<Vec<Found>, OfflineError> {
    if !args.path.is_dir() {
        return Ok(vec![one(&args.path, args.templates.as_deref(), None)?.0]);
    }
    let own = args.path.join(MODULE);
    if own.exists() {
        return Ok(vec![one(&own, args.templates.as_deref(), None)?.0]);
    }
    let unreadable = |source| OfflineError::Read { path: args.path.clone(), source };
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(&args.path).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.join(MODULE).exists() {
            folders.push(path);
        }
    }
    folders.sort_unstable();
    let (mut found, mut modules) = (Vec::new(), Vec::new());
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (looked, module) = one(&folder.join(MODULE), None, Some(&name))?;
        found.push(looked);
        modules.extend(module.map(|module| (name, module)));
    }
    for (module, fault) in between(&modules) {
        let file = args.path.join(&module).join(MODULE);
        if let Some(found) = found.iter_mut().find(|found| found.file == file) {
            found.faults.push(fault);
        }
    }
    Ok(found)
}

/// Looks at one file with its templates; `name` is the module's, where that is known.
fn one(
    file: &Path,
    templates: Option<&Path>,
    name: Option<&str>,
) -> Result<(Found, Option<ModuleFile>), OfflineError> {
    let text = read_file(file)?;
    let beside = file.parent().map(|folder| folder.join(TEMPLATES)).filter(|beside| beside.is_dir());
    let templates = templates.or(beside.as_deref()).map(read_templates).transpose()?;
    let findings = check_plan(&text, templates.as_ref());
    let mut found = Found {
        file: file.to_owned(),
        faults: findings.faults,
        unknown: findings.unknown,
        needs: findings
            .needs
            .into_iter()
            .map(|(need, by)| format!("{need}, named by {}", by.join(", ")))
            .collect(),
    };
    let module = read_module_file(&text).ok().map(|(module, _)| module);
    if let (Some(name), Some(module), Some(templates)) = (name, &module, &templates) {
        let reference = Reference::File("/templates".to_owned());
        let plan = plan_for(module, &Placement::new(), reference, Digest::of(b""));
        let more = plan_faults("node", name, &plan, templates);
        // Most of them were found above as well.
        for fault in more {
            if !found.faults.contains(&fault) {
                found.faults.push(fault);
            }
        }
    }
    Ok((found, module))
}

fn show(found: &[Found], is_json: bool, out: &mut Out) -> Exit {
    let count: usize = found.iter().map(|found| found.faults.len()).sum();
    if is_json {
        let files: Vec<Value> = found
            .iter()
            .map(|found| {
                json!({
                    "file": found.file, "faults": found.faults, "unknown": found.unknown, "needs": found.needs,
                })
            })
            .collect();
        print(out, &json!({"ok": count == 0, "files": files}));
    } else {
        for found in found {
            let file = found.file.display();
            let lines = |what: &str, lines: &[String]| {
                let lines: Vec<String> =
                    lines.iter().map(|line| format!("{file}: {what}{}\n", clean(line))).collect();
                lines.concat()
            };
            out.text(&lines("fault: ", &found.faults));
            out.text(&lines("nobody knows this member: ", &found.unknown));
            out.text(&lines("needs ", &found.needs));
        }
        let faults = if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") };
        out.text(&format!("{} looked at, {faults}\n", files(found.len())));
    }
    if count == 0 { Exit::Success } else { Exit::Failure }
}

fn files(count: usize) -> String {
    if count == 1 { "1 module".to_owned() } else { format!("{count} modules") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue(modules: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, module, template) in modules {
            let folder = dir.path().join(name);
            std::fs::create_dir_all(folder.join(TEMPLATES)).unwrap();
            std::fs::write(folder.join(MODULE), module).unwrap();
            std::fs::write(folder.join("templates/t"), template).unwrap();
        }
        dir
    }

    fn faults(path: &Path) -> Vec<String> {
        let args = CheckArgs { path: path.to_owned(), templates: None, json: false };
        look(&args).unwrap().into_iter().flat_map(|found| found.faults).collect()
    }

    const DB: &str = r#"{"files":[{"path":"/c","template":"t","owner-at-runtime":"owned","mode":"0600"}],"provides":["sql"]}"#;
    const WEB: &str = r#"{"files":[{"path":"/w","template":"t","owner-at-runtime":"owned"}],"provisions":[{"provision":"sql","provider":"db","credential":"pair","name":"pw"}]}"#;

    /// T38: the whole catalogue is held to its rules.
    #[test]
    fn a_catalogue_is_looked_at_as_a_whole() {
        let good = catalogue(&[("db", DB, "${consumers:sql}"), ("web", WEB, "${bound:sql:host}")]);
        assert_eq!(faults(good.path()), Vec::<String>::new());
        assert_eq!(faults(&good.path().join("web")), Vec::<String>::new());
        let open = DB.replace("0600", "0640");
        let bad = catalogue(&[("db.x", &open, "${consumers:sql}"), ("web", WEB, "${bound:sql:host}")]);
        let found = faults(bad.path());
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[1].contains("`db.x` cannot be the name of a provider"), "{found:?}");
        assert_eq!(found[2], "provisions[0].provider: the catalogue has no module `db`");
    }

    #[test]
    fn what_holds_no_module_is_no_catalogue() {
        let dir = tempfile::tempdir().unwrap();
        let args = CheckArgs { path: dir.path().to_owned(), templates: None, json: false };
        assert_eq!(check(&args, &mut Out::new(Box::new(Vec::new()))), Exit::Files);
    }
}
