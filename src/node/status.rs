//! `quartermaster node status`: where each module stands.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quartermaster_node::client::service::{ModuleStatus, Status, ask_status};
use quartermaster_node::near::near;
use quartermaster_proto::mesh::stamp;
use quartermaster_proto::text::escape_bounded;

use super::client::STATE;
use super::serve::Chain;
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// Longest reason or name on a line, in characters.
const MAX_WORDS: usize = 1_024;

/// Arguments of `quartermaster node status`.
#[derive(Debug, Clone, clap::Args)]
pub struct NodeStatusArgs {
    /// Only this module
    #[arg(value_name = "MODULE")]
    module: Option<String>,
    /// Folder of the client's state
    #[arg(long, value_name = "DIR", default_value = STATE)]
    state: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Wait until all of it is applied; exit with 1 when something failed or is still missing after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=MOST_SECONDS))]
    applied_within: Option<u64>,
}

/// A year: nobody waits longer.
const MOST_SECONDS: u64 = 366 * 24 * 60 * 60;
/// How often a client is asked again while its modules are waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the verb.
pub(super) fn status(args: &NodeStatusArgs, out: &mut Out) -> Exit {
    let end = args.applied_within.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let asked = loop {
        let asked = ask_status(&args.state);
        let is_over = end.is_none_or(|end| Instant::now() >= end);
        if is_over || asked.as_ref().is_ok_and(|status| is_settled(status, args.module.as_deref())) {
            break asked;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let mut status = match asked {
        Ok(status) => status,
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            return Exit::NoInstance;
        }
    };
    if let Some(module) = &args.module {
        if !status.modules.contains_key(module) {
            say(&format!("error: {}\n", unknown(module, &status)));
            return Exit::Failure;
        }
        status.modules.retain(|name, _| name == module);
    }
    if args.json {
        out.text(&format!("{}\n", serde_json::to_string_pretty(&status).unwrap_or_default()));
    } else {
        out.text(&for_people(&status));
    }
    // A client that does not hear the broker, or is refused something, knows of no modules.
    let is_idle = status.modules.is_empty() && status.connected && status.refused.is_none();
    if end.is_some() && !is_idle && (status.modules.is_empty() || !status.modules.values().all(is_done)) {
        return Exit::Failure;
    }
    Exit::Success
}

/// True when waiting on changes nothing: everything is applied, or something failed.
fn is_settled(status: &Status, module: Option<&str>) -> bool {
    let meant = status.modules.iter().filter(|(name, _)| module.is_none_or(|module| *name == module));
    let meant: Vec<&ModuleStatus> = meant.map(|(_, module)| module).collect();
    let is_failed = meant.iter().any(|module| module.state == "failed");
    !meant.is_empty() && (is_failed || meant.iter().all(|module| is_done(module)))
}

/// True when nothing of a module is missing, or nothing of it is filled at all.
fn is_done(module: &ModuleStatus) -> bool {
    ["applied", "unplanned"].contains(&module.state.as_str())
}

/// A module that is not of this machine, and what may be meant.
fn unknown(module: &str, status: &Status) -> String {
    let meant = near(module, status.modules.keys().map(String::as_str))
        .map_or_else(String::new, |near| format!("; is `{}` meant?", shown(near)));
    format!("{} has no module `{}`{meant}", shown(&status.node), shown(module))
}

fn for_people(status: &Status) -> String {
    let bus = if status.connected { "connected" } else { "no broker" };
    let mut lines = vec![format!("{}: {bus}, {} modules", status.node, status.modules.len())];
    lines.extend(status.refused.as_ref().map(|refused| format!("  the broker: {}", shown(refused))));
    for (name, module) in &status.modules {
        lines.push(format!("  {name}: {}", in_words(module)));
        for missing in &module.waiting {
            let waiting = &missing.waiting;
            let (kind, name) = (shown(&waiting.kind), shown(&waiting.name));
            let (why, since) = (waiting.why.as_str(), stamp::text(waiting.since));
            let space = if name.is_empty() { "" } else { " " };
            let looked = missing
                .looked
                .as_ref()
                .map_or_else(String::new, |looked| format!("; looked for {}", shown(looked)));
            let near = missing
                .near
                .as_ref()
                .map_or_else(String::new, |near| format!("; there is `{}`", shown(near)));
            lines.push(format!("    waits for {kind}{space}{name}: {why}, since {since}{looked}{near}"));
        }
        if let Some(reason) = &module.reason {
            let retry = module
                .retry_at
                .as_ref()
                .map_or_else(String::new, |at| format!("; tried again at {}", shown(at)));
            lines.push(format!("    {}{retry}", shown(reason)));
        }
    }
    lines.join("\n") + "\n"
}

fn in_words(module: &ModuleStatus) -> String {
    let files = if module.files == 0 { String::new() } else { format!(", {} files", module.files) };
    let wrote =
        module.last_write.as_ref().map_or_else(String::new, |at| format!(", last write {}", shown(at)));
    let looked =
        module.last_look.as_ref().map_or_else(String::new, |at| format!(", last look {}", shown(at)));
    format!("{}{files}{wrote}{looked}", shown(&module.state))
}

fn shown(text: &str) -> String {
    escape_bounded(text, MAX_WORDS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use quartermaster_node::client::service::Missing;
    use quartermaster_proto::mesh::report::{Waiting, Why};
    use quartermaster_proto::time::WallClock;

    use super::*;

    fn module(state: &str) -> ModuleStatus {
        ModuleStatus {
            state: state.to_owned(),
            revision: 1,
            waiting: Vec::new(),
            reason: None,
            retry_at: None,
            files: 0,
            last_write: None,
            last_look: None,
        }
    }

    #[test]
    fn the_status_says_what_is_waited_for_and_what_failed() {
        let since = WallClock::from_seconds(1_795_975_200);
        let missing = |kind: &str, name: &str, why| Missing {
            waiting: Waiting { kind: kind.to_owned(), name: name.to_owned(), why, since },
            looked: None,
            near: None,
        };
        let config = Missing {
            looked: Some("web1.forge.Title in the bucket mesh-config_resolved".to_owned()),
            near: Some("title".to_owned()),
            ..missing("config", "Title", Why::NoEntry)
        };
        let waiting =
            vec![config, missing("secret", "pw", Why::Absent), missing("engine", "", Why::NoAnswer)];
        let at = Some("2026-11-29T18:00:00Z".to_owned());
        let modules = [
            (
                "db",
                ModuleStatus { files: 2, last_write: at.clone(), last_look: at.clone(), ..module("applied") },
            ),
            ("forge", ModuleStatus { waiting, ..module("gathering") }),
            ("hub", ModuleStatus { reason: Some("no\nroom".to_owned()), retry_at: at, ..module("failed") }),
        ];
        let modules: BTreeMap<_, _> = modules.map(|(name, module)| (name.to_owned(), module)).into();
        let status = Status {
            node: "web1".to_owned(),
            run: "r".to_owned(),
            connected: false,
            refused: Some("authorization violation".to_owned()),
            modules,
        };
        assert_eq!(
            for_people(&status),
            "web1: no broker, 3 modules\n\
             \x20 the broker: authorization violation\n\
             \x20 db: applied, 2 files, last write 2026-11-29T18:00:00Z, last look 2026-11-29T18:00:00Z\n\
             \x20 forge: gathering\n\
             \x20   waits for config Title: no-entry, since 2026-11-29T18:00:00Z; looked for web1.forge.Title in the bucket \
             mesh-config_resolved; there is `title`\n\
             \x20   waits for secret pw: absent, since 2026-11-29T18:00:00Z\n\
             \x20   waits for engine: no-answer, since 2026-11-29T18:00:00Z\n\
             \x20 hub: failed\n\
             \x20   no\\nroom; tried again at 2026-11-29T18:00:00Z\n"
        );
    }

    #[test]
    fn waiting_ends_when_all_is_applied_or_something_failed() {
        let status = |states: &[&str]| {
            let modules = states.iter().zip(["a", "b", "c"]);
            let modules = modules.map(|(state, name)| (name.to_owned(), module(state))).collect();
            Status { node: "web1".to_owned(), run: "r".to_owned(), connected: true, refused: None, modules }
        };
        let check = |states: &[&str], module: Option<&str>, is| {
            assert_eq!(is_settled(&status(states), module), is, "{states:?} {module:?}");
        };
        check(&[], None, false);
        check(&["applied", "applied"], None, true);
        check(&["applied", "gathering"], None, false);
        check(&["gathering", "failed"], None, true);
        check(&["applied", "gathering"], Some("a"), true);
        check(&["applied", "gathering"], Some("b"), false);
        check(&["applied"], Some("x"), false);
        check(&["applied", "unplanned"], None, true);
        assert_eq!(unknown("B", &status(&["applied", "applied"])), "web1 has no module `B`; is `b` meant?");
    }
}
