//! `quartermaster mesh report` and `needs`: what the machines' clients say.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use futures::StreamExt as _;
use quartermaster_node::client::bus::Bus;
use quartermaster_node::mesh::{MeshError, Selection, needs as read_needs, reports};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::report::{Outcome, ProgramResult, Report};
use serde_json::json;

use super::place::{Chosen, SiteArgs, clean, json as print, work};
use crate::cli::out::Out;
use crate::exit::Exit;

/// What a report's subject begins with.
const SUBJECTS: &str = "prov.applied.>";

/// Arguments of `quartermaster mesh report`.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportArgs {
    /// Which modules.
    #[command(flatten)]
    chosen: Chosen,
    /// Go on showing what is said, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Exit with 1 when a module shown is in one of these states; with --watch at the first one
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', value_parser = ["applied", "waiting", "failed", "removed"])]
    fail_on: Vec<String>,
    /// As JSON: one list, or with --watch a line for each report
    #[arg(long)]
    json: bool,
}

/// Arguments of `quartermaster mesh needs`.
#[derive(Debug, Clone, clap::Args)]
pub struct NeedsArgs {
    /// Which modules.
    #[command(flatten)]
    chosen: Chosen,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn report(place: &SiteArgs, args: &ReportArgs, out: &mut Out) -> Exit {
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Controller).await?;
        let selection = args.chosen.selection();
        if args.watch {
            return watch(&bus, &selection, args, out).await;
        }
        let found = reports(&bus, &selection).await?;
        if args.json {
            print(out, &json!(found));
        } else {
            out.text(&table(&found));
        }
        let is_bad = found.iter().any(|report| is_one_of(report, &args.fail_on));
        Ok(if is_bad { Exit::Failure } else { Exit::Success })
    })
}

fn is_one_of(report: &Report, states: &[String]) -> bool {
    states.iter().any(|state| state == report.outcome.as_str())
}

fn table(reports: &[Report]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["machine", "module", "state", "at", "what"]);
    for report in reports {
        let at = crate::operate::moment(report.at.seconds());
        let state = report.outcome.as_str().to_owned();
        table.add_row([clean(&report.node), clean(&report.module), state, at, said(report)]);
    }
    format!("{table}\n")
}

/// What a report says, in a line.
pub(in crate::node) fn said(report: &Report) -> String {
    match &report.outcome {
        Outcome::Applied { files, programs } => {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for file in files {
                *counts.entry(file.action.as_str()).or_default() += 1;
            }
            let mut parts: Vec<String> =
                counts.iter().map(|(action, count)| format!("{count} {action}")).collect();
            for (result, word) in [
                (ProgramResult::Done, "told"),
                (ProgramResult::Skipped, "not to be told here"),
                (ProgramResult::Failed, "not told"),
            ] {
                let count = programs.iter().filter(|program| program.result == result).count();
                if count > 0 {
                    parts.push(format!("{} {word}", programs_of(count)));
                }
            }
            if parts.is_empty() { "no files".to_owned() } else { parts.join(", ") }
        }
        Outcome::Waiting { waiting } => {
            let parts: Vec<String> = waiting
                .iter()
                .map(|one| {
                    let name =
                        if one.name.is_empty() { String::new() } else { format!(" {}", clean(&one.name)) };
                    format!("{}{name} ({})", clean(&one.kind), one.why.as_str())
                })
                .collect();
            parts.join(", ")
        }
        Outcome::Failed { reason, retry_at } => {
            let again = retry_at
                .map(|at| format!(", again at {}", crate::operate::moment(at.seconds())))
                .unwrap_or_default();
            format!("{}{again}", clean(reason))
        }
        Outcome::Removed => String::new(),
    }
}

fn programs_of(count: usize) -> String {
    if count == 1 { "1 program".to_owned() } else { format!("{count} programs") }
}

/// Shows what is there, then what is said; after the broker was away, what is there once more.
async fn watch(
    bus: &Bus,
    selection: &Selection,
    args: &ReportArgs,
    out: &mut Out,
) -> Result<Exit, MeshError> {
    let subscribed = bus.client().subscribe(SUBJECTS).await;
    let mut heard = subscribed.map_err(|_| MeshError::NoAnswer(SUBJECTS.to_owned()))?;
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let mut connects = bus.connects();
    connects.mark_unchanged();
    let mut shown: BTreeMap<(String, String), Report> = BTreeMap::new();
    let mut told = reports(bus, selection).await?;
    loop {
        for report in told.drain(..) {
            let key = (report.node.clone(), report.module.clone());
            if shown.get(&key) == Some(&report) {
                continue;
            }
            if args.json {
                print(out, &json!(report));
            } else {
                out.text(&line(&report));
            }
            if is_one_of(&report, &args.fail_on) {
                return Ok(Exit::Failure);
            }
            shown.insert(key, report);
        }
        if out.is_closed() {
            return Ok(Exit::Success);
        }
        tokio::select! {
            _ = &mut interrupt => return Ok(Exit::Success),
            message = heard.next() => {
                let Some(message) = message else { return Err(MeshError::NoAnswer(SUBJECTS.to_owned())) };
                told.extend(Report::read(&message.payload).ok());
                told.retain(|report| selection.takes(&report.node, &report.module));
            }
            _ = connects.changed() => told = reports(bus, selection).await?,
        }
    }
}

fn line(report: &Report) -> String {
    format!(
        "{} {} {}: {} {}\n",
        crate::operate::moment(report.at.seconds()),
        clean(&report.node),
        clean(&report.module),
        report.outcome.as_str(),
        said(report)
    )
}

pub(super) fn needs(place: &SiteArgs, args: &NeedsArgs, out: &mut Out) -> Exit {
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Config).await?;
        let found = read_needs(&bus, &args.chosen.selection()).await?;
        if args.json {
            print(out, &json!(found));
            return Ok(Exit::Success);
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["machine", "module", "kind", "name", "owner", "named by"]);
        for need in found {
            let owner = need.owner.as_deref().map_or_else(|| "nobody".to_owned(), clean);
            let by: Vec<String> = need.by.iter().map(|by| clean(by)).collect();
            table.add_row([
                clean(&need.node),
                clean(&need.module),
                clean(&need.kind),
                clean(&need.name),
                owner,
                by.join(", "),
            ]);
        }
        out.text(&format!("{table}\n"));
        Ok(Exit::Success)
    })
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::mesh::report::{Action, FileReport, Program, ProgramReport, Waiting, Why};
    use quartermaster_proto::time::WallClock;

    use super::*;

    const AT: WallClock = WallClock::from_seconds(1_795_975_200);

    fn check(outcome: Outcome, expected: &str) {
        let report = Report {
            node: "web1".to_owned(),
            module: "forge".to_owned(),
            run: "r".to_owned(),
            revision: 1,
            at: AT,
            outcome,
        };
        assert_eq!(said(&report), expected);
    }

    #[test]
    fn a_report_is_said_in_a_line() {
        let file = |action| FileReport { path: "/a".to_owned(), action, digest: String::new() };
        let program =
            |result| ProgramReport { program: Program::Restart("u".to_owned()), result, reason: None };
        check(
            Outcome::Applied {
                files: vec![file(Action::Written), file(Action::Kept), file(Action::Written)],
                programs: vec![program(ProgramResult::Done), program(ProgramResult::Failed)],
            },
            "1 kept, 2 written, 1 program told, 1 program not told",
        );
        check(Outcome::Applied { files: vec![], programs: vec![] }, "no files");
        let waiting = |kind: &str, name: &str, why| Waiting {
            kind: kind.to_owned(),
            name: name.to_owned(),
            why,
            since: AT,
        };
        check(
            Outcome::Waiting {
                waiting: vec![waiting("secret", "pw", Why::Absent), waiting("engine", "", Why::NoAnswer)],
            },
            "secret pw (absent), engine (no-answer)",
        );
        check(Outcome::Failed { reason: "a\u{1b}[2J".to_owned(), retry_at: None }, r"a\u{1b}[2J");
        check(Outcome::Removed, "");
    }
}
