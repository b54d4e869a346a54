//! `quartermaster mesh show`: what is assigned and how it stands; everything about one module.

use comfy_table::{Table, presets};
use quartermaster_node::client::bus::Bus;
use quartermaster_node::mesh::{MeshError, Placed, Selection, modules, needs, registry_faults};
use quartermaster_node::near::near;
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::need::Need;
use quartermaster_proto::mesh::report::Outcome;
use serde_json::{Value, json};

use super::look::said;
use super::place::{Chosen, SiteArgs, clean, json as print, work};
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// Arguments of `quartermaster mesh show`.
#[derive(Debug, Clone, clap::Args)]
pub struct ShowArgs {
    /// Which modules; a machine and a module show everything about it.
    #[command(flatten)]
    chosen: Chosen,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn show(place: &SiteArgs, args: &ShowArgs, out: &mut Out) -> Exit {
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Controller).await?;
        let pin = site.signer()?.public();
        let selection = args.chosen.selection();
        let found = modules(&bus, &pin, &selection).await?;
        let registry = registry_faults(&bus, &pin).await?;
        let is_one = selection.node.is_some() && selection.module.is_some();
        if found.is_empty() && selection.node.is_some() {
            // Asked for what is not there.
            let all = modules(&bus, &pin, &Selection::default()).await?;
            let what = if is_one { "error" } else { "warning" };
            say(&format!("{what}: {}\n", clean(&unknown(&selection, &all))));
        }
        if args.json {
            print(out, &for_scripts(&bus, &selection, &found, &registry).await?);
        } else if let (true, [placed]) = (is_one, found.as_slice()) {
            let needs = needs(&bus, &selection).await?;
            out.text(&everything(placed, &needs));
        } else if !is_one {
            out.text(&overview(&found));
            for (kind, what) in &registry {
                out.text(&format!("registry: {kind}: {}\n", clean(what)));
            }
        }
        Ok(if is_one && found.is_empty() { Exit::Failure } else { Exit::Success })
    })
}

/// What is not there, and what may be meant.
fn unknown(selection: &Selection, all: &[Placed]) -> String {
    let node = selection.node.as_deref().unwrap_or_default();
    let of_node = all.iter().filter(|placed| placed.assignment.node == node);
    let modules: Vec<&str> = of_node.map(|placed| placed.assignment.module.as_str()).collect();
    let (what, like) = match selection.module.as_deref() {
        Some(module) if !modules.is_empty() => {
            (format!("{module} is not assigned to {node}"), near(module, modules))
        }
        _ => {
            let nodes = all.iter().map(|placed| placed.assignment.node.as_str());
            (format!("nothing is assigned to {node}"), near(node, nodes))
        }
    };
    let like = like.map_or_else(String::new, |like| format!("; is `{like}` meant?"));
    format!("{what}{like}")
}

async fn for_scripts(
    bus: &Bus,
    selection: &Selection,
    found: &[Placed],
    registry: &[(&'static str, String)],
) -> Result<Value, MeshError> {
    let needs = needs(bus, selection).await?;
    let registry: Vec<Value> =
        registry.iter().map(|(kind, what)| json!({"kind": kind, "fault": what})).collect();
    let found: Vec<Value> = found.iter().map(|placed| module(placed, &needs)).collect();
    Ok(json!({"modules": found, "registry": registry}))
}

fn module(placed: &Placed, needs: &[Need]) -> Value {
    let assignment = &placed.assignment;
    let own: Vec<&Need> = needs
        .iter()
        .filter(|need| need.node == assignment.node && need.module == assignment.module)
        .collect();
    // What is assigned, as it lies in the mirror.
    let assigned: Value = serde_json::from_slice(&assignment.encode()).unwrap_or_default();
    let (state, what) = standing(placed);
    json!({
        "node": assignment.node,
        "module": assignment.module,
        "state": state,
        "what": what,
        "serial": assignment.serial,
        "revision": placed.revision,
        "disbelieved": placed.disbelieved,
        "fault": placed.fault(),
        "provisioning": assigned.get("provisioning"),
        "report": placed.report,
        "needs": own,
    })
}

fn overview(found: &[Placed]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["machine", "module", "files", "state", "what"]);
    for placed in found {
        let files = placed.plan().map_or(0, |plan| quartermaster_node::mesh::paths(plan).len());
        let (state, what) = standing(placed);
        table.add_row([
            clean(&placed.assignment.node),
            clean(&placed.assignment.module),
            files.to_string(),
            state,
            what,
        ]);
    }
    format!("{table}\n")
}

/// How a module stands: a word and what there is to say.
fn standing(placed: &Placed) -> (String, String) {
    if let Some(why) = &placed.disbelieved {
        return ("not believed".to_owned(), clean(why));
    }
    if let Some(fault) = placed.fault() {
        return ("failed".to_owned(), clean(&fault));
    }
    if placed.plan().is_none() {
        return ("not filled".to_owned(), "it has no plan".to_owned());
    }
    match &placed.report {
        None => ("not heard of".to_owned(), "its client has said nothing yet".to_owned()),
        Some(report) if report.revision != placed.revision => {
            let state = report.outcome.as_str();
            (state.to_owned(), format!("of revision {}, not yet of {}", report.revision, placed.revision))
        }
        Some(report) => (report.outcome.as_str().to_owned(), said(report)),
    }
}

fn everything(placed: &Placed, needs: &[Need]) -> String {
    let assignment = &placed.assignment;
    let (state, what) = standing(placed);
    let mut lines = vec![
        format!("{} on {}", clean(&assignment.module), clean(&assignment.node)),
        format!("  state      {state}{}", if what.is_empty() { what } else { format!(": {what}") }),
        format!("  serial     {}, revision {}", assignment.serial, placed.revision),
    ];
    if let Some(plan) = placed.plan() {
        lines.push(format!("  templates  {}", clean(&plan.templates.reference.to_string())));
        lines.push(format!("             {}", plan.templates.digest));
        for path in quartermaster_node::mesh::paths(plan) {
            lines.push(format!("  file       {}", clean(path)));
        }
        for (kind, values) in &plan.placement {
            for (name, value) in values {
                lines.push(format!(
                    "  placement  {} {} = {}",
                    kind.as_str(),
                    clean(name),
                    clean(value.get())
                ));
            }
        }
        for entry in &plan.contents.provisions {
            let local = entry.local.as_ref().map_or_else(String::new, |local| format!(".{local}"));
            let from = format!("{}{local} of {}", entry.provision, entry.provider);
            lines.push(format!("  provision  {}, credential {}", clean(&from), entry.credential.as_str()));
        }
        for provision in &plan.contents.provides {
            lines.push(format!("  provides   {}", clean(provision)));
        }
    }
    for need in needs {
        let owner = need.owner.as_deref().map_or_else(|| "nobody".to_owned(), clean);
        lines.push(format!("  needs      {} {} of {owner}", clean(&need.kind), clean(&need.name)));
    }
    if let Some(report) = &placed.report {
        let at = crate::operate::moment(report.at.seconds());
        lines.push(format!("  last said  {at}, run {}", clean(&report.run)));
        if let Outcome::Applied { files, .. } = &report.outcome {
            for file in files {
                lines.push(format!(
                    "    {} {} {}",
                    file.action.as_str(),
                    clean(&file.path),
                    clean(&file.digest)
                ));
            }
        }
        if let Outcome::Waiting { waiting } = &report.outcome {
            for one in waiting {
                let since = crate::operate::moment(one.since.seconds());
                let (kind, name) = (clean(&one.kind), clean(&one.name));
                lines.push(format!("    waits for {kind} {name} ({}) since {since}", one.why.as_str()));
            }
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use quartermaster_proto::mesh::plan::read_assignment;
    use quartermaster_proto::mesh::report::Report;
    use quartermaster_proto::time::WallClock;

    use super::*;

    fn placed(provisioning: &str) -> Placed {
        let text = format!(r#"{{"node":"web1","module":"forge","serial":3{provisioning}}}"#);
        let (assignment, _) = read_assignment("web1.forge", text.as_bytes()).unwrap();
        Placed { assignment, revision: 7, disbelieved: None, report: None }
    }

    fn with_plan() -> Placed {
        placed(
            r#","provisioning":{"templates":{"reference":"file:/t","digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},"files":[{"path":"/etc/a","template":"a","owner-at-runtime":"owned"}],"placement":{"port":{"http":80}},"provisions":[{"provision":"sql","provider":"db","credential":"pair","local":"main"}]}"#,
        )
    }

    #[test]
    fn a_module_stands_as_its_entry_its_plan_and_its_client_say() {
        let check = |placed: &Placed, state: &str| assert_eq!(standing(placed).0, state);
        check(&placed(""), "not filled");
        check(&placed(r#","provisioning":{}"#), "failed");
        check(&with_plan(), "not heard of");
        let report = |revision| Report {
            node: "web1".to_owned(),
            module: "forge".to_owned(),
            run: "r".to_owned(),
            revision,
            at: WallClock::from_seconds(0),
            outcome: Outcome::failed("why", None),
        };
        let said = Placed { report: Some(report(7)), ..with_plan() };
        assert_eq!(standing(&said), ("failed".to_owned(), "why".to_owned()));
        let older = Placed { report: Some(report(6)), ..with_plan() };
        assert_eq!(standing(&older).1, "of revision 6, not yet of 7");
        check(&Placed { disbelieved: Some("it is not signed".to_owned()), ..said }, "not believed");
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is_like_it() {
        let all = [with_plan()];
        let said = |node: &str, module: Option<&str>| {
            let selection = Selection { node: Some(node.to_owned()), module: module.map(str::to_owned) };
            unknown(&selection, &all)
        };
        assert_eq!(said("web1", Some("Forge")), "Forge is not assigned to web1; is `forge` meant?");
        assert_eq!(said("web1", Some("x")), "x is not assigned to web1");
        assert_eq!(said("wbe1", None), "nothing is assigned to wbe1; is `web1` meant?");
        assert_eq!(said("wbe1", Some("forge")), "nothing is assigned to wbe1; is `web1` meant?");
    }

    #[test]
    fn everything_of_a_module_is_shown() {
        let need = Need {
            node: "web1".to_owned(),
            module: "forge".to_owned(),
            kind: "config".to_owned(),
            name: "a".to_owned(),
            owner: None,
            by: vec![],
        };
        let text = everything(&with_plan(), std::slice::from_ref(&need));
        for line in
            ["file       /etc/a", "port http = 80", "sql.main of db, credential pair", "config a of nobody"]
        {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
        let shown = module(&with_plan(), &[need]);
        assert_eq!(shown["needs"].as_array().unwrap().len(), 1);
        assert_eq!(shown["provisioning"]["files"][0]["path"], "/etc/a");
        assert_eq!(
            (&shown["state"], &shown["what"]),
            (&json!("not heard of"), &json!("its client has said nothing yet"))
        );
    }
}
