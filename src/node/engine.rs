//! `quartermaster engine`: writes the machine's files; `engine status` shows what it wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quartermaster_node::client::bus::BusSettings;
use quartermaster_node::engine::service::{
    self, EngineError, EngineMetrics, Running, Settings, Source, Status,
};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::signature::PublicNkey;
use serde_json::json;

use super::numbers::page;
use super::serve::{Chain, serve, watched};
use crate::cli::LogArgs;
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// How often the folder of declarations is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Arguments of `quartermaster engine`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct EngineArgs {
    /// What to do instead of running.
    #[command(subcommand)]
    pub command: Option<EngineCommand>,
    /// This machine's name
    #[arg(long, value_name = "NAME", required = true)]
    pub node: Option<String>,
    /// Folder of the ledger and the status
    #[arg(long, value_name = "DIR", default_value = "/var/lib/quartermaster-engine")]
    pub state: PathBuf,
    /// Socket on which the client asks
    #[arg(long, value_name = "PATH", default_value = "/run/nox-mesh-host/fill.sock")]
    pub socket: PathBuf,
    /// Folder below which files may be written; may be given more than once. Without one nothing is written
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<String>,
    /// Folder of the programs that a declaration may have run; without it none is
    #[arg(long, value_name = "DIR")]
    pub commands: Option<PathBuf>,
    /// Account whose client may ask, by name or number
    #[arg(long, value_name = "ACCOUNT", default_value = "mesh-provisioner-client")]
    pub client: String,
    /// Brokers from whose mirror of assignments the declarations come
    #[arg(long, value_name = "HOST:PORT,...", required_unless_present = "declarations")]
    pub servers: Option<String>,
    /// Credentials file of this machine's engine, read anew at every connect
    #[arg(long, value_name = "FILE", requires = "servers")]
    pub credentials: Option<PathBuf>,
    /// Public key of the controller; with one, nothing that is not signed with it is taken. May be given more than once
    #[arg(long = "pin", value_name = "NKEY", requires = "servers")]
    pub pins: Vec<PublicNkey>,
    /// Folder of declarations instead of a broker, one `<module>.json` each
    #[arg(long, value_name = "DIR", conflicts_with = "servers")]
    pub declarations: Option<PathBuf>,
    /// Tell units of the user's own service manager instead of the machine's
    #[arg(long)]
    pub user_units: bool,
    /// Address on which numbers are told for Prometheus; none: nobody is told
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
}

/// `quartermaster engine …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum EngineCommand {
    /// Show each module's files and what is still owed
    Status {
        /// Folder of the ledger and the status
        #[arg(long, value_name = "DIR", default_value = "/var/lib/quartermaster-engine")]
        state: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the verb.
pub fn engine(args: &EngineArgs, log: &LogArgs, out: &mut Out) -> Exit {
    if let Some(EngineCommand::Status { state, json }) = &args.command {
        return status(state, *json, out);
    }
    let Some(node) = args.node.clone() else { return Exit::Usage };
    let source = match (&args.declarations, &args.servers) {
        (Some(folder), _) => Source::Folder { folder: folder.clone(), every: LOOK_EVERY },
        (None, Some(servers)) => Source::Mirror {
            bus: BusSettings {
                servers: servers.clone(),
                account: Account::Engine { node: node.clone() },
                credentials: args.credentials.clone(),
            },
            pins: args.pins.clone(),
        },
        (None, None) => return Exit::Usage,
    };
    let (numbers, metrics) = match page(args.metrics.as_deref(), EngineMetrics::new, EngineMetrics::register)
    {
        Ok(page) => page,
        Err(exit) => return exit,
    };
    let settings = Settings {
        node,
        state: args.state.clone(),
        socket: args.socket.clone(),
        roots: args.roots.clone(),
        commands: args.commands.clone(),
        client: args.client.clone(),
        source,
        user_units: args.user_units,
        metrics,
    };
    let exit = |error: &EngineError| if error.is_configuration() { Exit::Unusable } else { Exit::Failure };
    let mut pulse = None;
    let begun = |running: Running| {
        if let Some(numbers) = numbers {
            numbers.tell(|| {});
        }
        pulse = watched(running.vital(), move || in_words(running.modules()));
    };
    let host = settings.node.clone();
    let exit = serve(log, Some(&host), |stop| service::run(settings, begun, stop), exit);
    drop(pulse);
    exit
}

/// For the service manager's status line.
fn in_words(modules: Option<usize>) -> String {
    modules.map_or_else(
        || "waits for the declarations".to_owned(),
        |modules| format!("{modules} modules declared"),
    )
}

fn status(state: &Path, json: bool, out: &mut Out) -> Exit {
    let status = match Status::read(state) {
        Ok(status) => status,
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            return Exit::Files;
        }
    };
    if json {
        out.text(&format!("{}\n", for_scripts(&status)));
        return Exit::Success;
    }
    out.text(&for_people(&status));
    Exit::Success
}

/// The same and no less than people are shown.
fn for_scripts(status: &Status) -> serde_json::Value {
    let removed: Vec<_> = status
        .removed
        .iter()
        .map(|(path, module, how)| json!({"path": path, "module": module, "how": how}))
        .collect();
    json!({"node": status.node, "modules": status.modules, "removed": removed})
}

fn for_people(status: &Status) -> String {
    let mut lines = vec![format!("engine of {}", status.node)];
    for (name, module) in &status.modules {
        let declared = match (module.declared, module.readable) {
            (false, _) => "no longer declared",
            (true, false) => "its plan cannot be read",
            (true, true) => "declared",
        };
        let owed =
            if module.owed == 0 { String::new() } else { format!(", {} programs to be told", module.owed) };
        lines.push(format!("  {name}: {declared}, {} files{owed}", module.files.len()));
        lines.extend(module.files.iter().map(|path| format!("    {path}")));
    }
    for (path, module, how) in &status.removed {
        lines.push(format!("  {how}: {path} ({module})"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use quartermaster_node::engine::service::ModuleStatus;

    use super::*;

    #[test]
    fn the_status_says_what_is_there_and_what_is_owed() {
        let module = ModuleStatus {
            revision: 0,
            declared: true,
            readable: true,
            files: vec!["/etc/forge/app.ini".to_owned()],
            owed: 1,
        };
        let status = Status {
            node: "web1".to_owned(),
            modules: BTreeMap::from([("forge".to_owned(), module)]),
            removed: vec![("/etc/old".to_owned(), "hub".to_owned(), "removed".to_owned())],
        };
        assert_eq!(
            for_people(&status),
            "engine of web1\n  forge: declared, 1 files, 1 programs to be told\n    /etc/forge/app.ini\n  removed: \
             /etc/old (hub)\n"
        );
        let module = json!({"revision": 0, "declared": true, "readable": true, "files": ["/etc/forge/app.ini"], "owed": 1});
        let removed = json!([{"path": "/etc/old", "module": "hub", "how": "removed"}]);
        assert_eq!(
            for_scripts(&status),
            json!({"node": "web1", "modules": {"forge": module}, "removed": removed})
        );
    }
}
