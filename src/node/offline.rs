//! `quartermaster node check`: a plan or a template looked at without a broker.

use std::path::PathBuf;

use quartermaster_node::offline::{
    Findings, OfflineError, check_plan, check_template, read_file, read_templates,
};
use serde::Serialize;

use super::serve::Chain;
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// Arguments of `quartermaster node check`.
#[derive(Debug, Clone, clap::Args)]
pub struct NodeCheckArgs {
    /// A module's file or an assignment, as JSON; with --template a template
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The plan's templates: the archive, or a folder of what goes into it
    #[arg(long, value_name = "PATH", conflicts_with = "template")]
    templates: Option<PathBuf>,
    /// FILE is a template
    #[arg(long)]
    template: bool,
    /// With --template: placeholders may have filters
    #[arg(long, requires = "template")]
    filters: bool,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub(super) fn check(args: &NodeCheckArgs, out: &mut Out) -> Exit {
    match look(args) {
        Ok(findings) => show(&findings, args.json, out),
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            Exit::Files
        }
    }
}

fn look(args: &NodeCheckArgs) -> Result<Findings, OfflineError> {
    let text = read_file(&args.file)?;
    if args.template {
        return Ok(check_template(&text, args.filters));
    }
    let templates = args.templates.as_deref().map(read_templates).transpose()?;
    Ok(check_plan(&text, templates.as_ref()))
}

/// What was found, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    faults: &'a [String],
    unknown: &'a [String],
    needs: Vec<NeedShown<'a>>,
}

#[derive(Serialize)]
struct NeedShown<'a> {
    need: &'a str,
    by: &'a [String],
}

fn show(findings: &Findings, json: bool, out: &mut Out) -> Exit {
    let Findings { faults, unknown, needs } = findings;
    if json {
        let needs = needs.iter().map(|(need, by)| NeedShown { need, by }).collect();
        let text = serde_json::to_string_pretty(&Shown { faults, unknown, needs }).unwrap_or_default();
        out.text(&format!("{text}\n"));
    } else {
        let faults = faults.iter().map(|fault| format!("fault: {fault}\n"));
        let unknown = unknown.iter().map(|place| format!("passed over: {place}: nobody knows this member\n"));
        let needs = needs.iter().map(|(need, by)| format!("needs {need}, named by {}\n", by.join(", ")));
        out.text(&faults.chain(unknown).chain(needs).collect::<String>());
    }
    if findings.faults.is_empty() { Exit::Success } else { Exit::Failure }
}
