//! `quartermaster node status`: where each module stands.

use std::path::PathBuf;

use quartermaster_node::client::service::{ModuleStatus, Status, ask_status};
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
}

/// Runs the verb.
pub(super) fn status(args: &NodeStatusArgs, out: &mut Out) -> Exit {
    let mut status = match ask_status(&args.state) {
        Ok(status) => status,
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            return Exit::NoInstance;
        }
    };
    if let Some(module) = &args.module {
        status.modules.retain(|name, _| name == module);
    }
    if args.json {
        out.text(&format!("{}\n", serde_json::to_string_pretty(&status).unwrap_or_default()));
    } else {
        out.text(&for_people(&status));
    }
    Exit::Success
}

fn for_people(status: &Status) -> String {
    let bus = if status.connected { "connected" } else { "no broker" };
    let mut lines = vec![format!("{}: {bus}, {} modules", status.node, status.modules.len())];
    for (name, module) in &status.modules {
        lines.push(format!("  {name}: {}", in_words(module)));
        for missing in &module.waiting {
            let (kind, name) = (shown(&missing.kind), shown(&missing.name));
            let (why, since) = (missing.why.as_str(), stamp::text(missing.since));
            let space = if name.is_empty() { "" } else { " " };
            lines.push(format!("    waits for {kind}{space}{name}: {why}, since {since}"));
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
        let waiting = vec![
            Waiting { kind: "secret".to_owned(), name: "pw".to_owned(), why: Why::Absent, since },
            Waiting { kind: "engine".to_owned(), name: String::new(), why: Why::NoAnswer, since },
        ];
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
        let status = Status { node: "web1".to_owned(), run: "r".to_owned(), connected: false, modules };
        assert_eq!(
            for_people(&status),
            "web1: no broker, 3 modules\n\
             \x20 db: applied, 2 files, last write 2026-11-29T18:00:00Z, last look 2026-11-29T18:00:00Z\n\
             \x20 forge: gathering\n\
             \x20   waits for secret pw: absent, since 2026-11-29T18:00:00Z\n\
             \x20   waits for engine: no-answer, since 2026-11-29T18:00:00Z\n\
             \x20 hub: failed\n\
             \x20   no\\nroom; tried again at 2026-11-29T18:00:00Z\n"
        );
    }
}
