//! `quartermaster mesh node …`: the accounts of a machine.

use std::path::{Path, PathBuf};

use quartermaster_node::mesh::{MeshError, Site};
use quartermaster_node::vault::Value as Secret;
use quartermaster_node::vault::service::{AdminClient, AdminReply, AdminRequest, AdminValue};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::{is_bucket_name, is_name};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::place::{SiteArgs, clean, complain, json as print};
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// The module under whose name a client's own credential lies in the vault.
const CLIENT_MODULE: &str = "mesh-provisioner-client";
/// The secret that is a client's own credential.
const CREDENTIAL: &str = "provisioner-broker";

/// `quartermaster mesh node …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum MachineCommand {
    /// Make the keys of a machine's client, engine and tool runner, where there are none
    Add {
        /// The machine
        #[arg(value_name = "NODE")]
        node: String,
        /// Also those of the helper of this provider on it; may be given more than once
        #[arg(long = "provider", value_name = "MODULE")]
        providers: Vec<String>,
        /// What every verb of a machine takes.
        #[command(flatten)]
        common: Common,
    },
    /// Replace every key of a machine
    Rotate {
        /// The machine
        #[arg(value_name = "NODE")]
        node: String,
        /// What every verb of a machine takes.
        #[command(flatten)]
        common: Common,
    },
    /// Forget every key of a machine, so that the broker lets nothing of it in any more
    Remove {
        /// The machine
        #[arg(value_name = "NODE")]
        node: String,
        /// What every verb of a machine takes.
        #[command(flatten)]
        common: Common,
    },
}

/// What every verb of a machine takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Socket of a running vault, which keeps the client's credential for the machine
    #[arg(long, value_name = "PATH")]
    vault: Option<PathBuf>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What was done to an account.
struct Touched {
    account: Account,
    what: &'static str,
}

pub(super) fn machine(place: &SiteArgs, command: &MachineCommand, out: &mut Out) -> Exit {
    let (node, common) = match command {
        MachineCommand::Add { node, common, .. }
        | MachineCommand::Rotate { node, common }
        | MachineCommand::Remove { node, common } => (node, common),
    };
    if let Err(why) = named(command, node) {
        say(&format!("error: {why}\n"));
        return Exit::Usage;
    }
    let done = place.open().and_then(|site| {
        let touched = touch(&site, node, command)?;
        let broker = site.write_broker()?;
        Ok((site, touched, broker))
    });
    let (site, touched, broker) = match done {
        Ok(done) => done,
        Err(error) => return complain(&error),
    };
    if touched.is_empty() {
        say(&format!("error: {} has no account here\n", clean(node)));
        return Exit::Failure;
    }
    let kept = common.vault.as_deref().map(|socket| keep(&site, node, command, socket)).transpose();
    show(&site, node, &touched, &broker, common, out);
    match kept {
        Ok(_) => Exit::Success,
        Err((exit, why)) => {
            say(&format!("error: {why}\n"));
            exit
        }
    }
}

fn named(command: &MachineCommand, node: &str) -> Result<(), String> {
    if !is_name(node) {
        return Err("the machine's name is not 1 to 255 bytes without `/` and control characters".to_owned());
    }
    let MachineCommand::Add { providers, .. } = command else { return Ok(()) };
    match providers.iter().find(|provider| !is_bucket_name(provider)) {
        Some(bad) => {
            Err(format!("{} is no name of a provider, which is of A-Z a-z 0-9 _ - alone", clean(bad)))
        }
        None => Ok(()),
    }
}

fn touch(site: &Site, node: &str, command: &MachineCommand) -> Result<Vec<Touched>, MeshError> {
    let mut touched = Vec::new();
    match command {
        MachineCommand::Add { providers, .. } => {
            let owned = || node.to_owned();
            let mut accounts = vec![
                Account::Provisioner { node: owned() },
                Account::Engine { node: owned() },
                Account::ToolRunner { node: owned() },
            ];
            accounts.extend(
                providers.iter().map(|module| Account::Provider { node: owned(), module: module.clone() }),
            );
            for account in accounts {
                let what = if site.add(&account)? { "new" } else { "kept" };
                touched.push(Touched { account, what });
            }
        }
        MachineCommand::Rotate { .. } => {
            for account in site.of_machine(node)? {
                site.rotate(&account)?;
                touched.push(Touched { account, what: "replaced" });
            }
        }
        MachineCommand::Remove { .. } => {
            for account in site.of_machine(node)? {
                site.remove(&account)?;
                touched.push(Touched { account, what: "removed" });
            }
        }
    }
    Ok(touched)
}

/// Has the vault keep, or forget, the client's credential.
fn keep(site: &Site, node: &str, command: &MachineCommand, socket: &Path) -> Result<(), (Exit, String)> {
    let name = format!("own/{CLIENT_MODULE}/{CREDENTIAL}/{node}");
    let request = if matches!(command, MachineCommand::Remove { .. }) {
        AdminRequest::Delete { name }
    } else {
        let path = site.path_of(&Account::Provisioner { node: node.to_owned() });
        let seed = std::fs::read(&path).map(Zeroizing::new);
        let seed =
            seed.map_err(|error| (Exit::Files, format!("failed to read {}: {error}", path.display())))?;
        AdminRequest::Set { name, value: AdminValue(Secret::new(seed)) }
    };
    let away = |error: std::io::Error| {
        (
            Exit::NoInstance,
            format!("the keys are made, but no vault answers on {}: {error}", socket.display()),
        )
    };
    match AdminClient::connect(socket).and_then(|client| client.ask(&request)).map_err(away)? {
        AdminReply::Error(why) => Err((Exit::Refused, format!("the vault refuses: {}", clean(&why)))),
        _ => Ok(()),
    }
}

fn show(site: &Site, node: &str, touched: &[Touched], broker: &Path, common: &Common, out: &mut Out) {
    let pin = site.signer().map(|signer| signer.public().to_string()).unwrap_or_default();
    if common.json {
        let accounts: Vec<Value> = touched
            .iter()
            .map(|touched| {
                let path = site.path_of(&touched.account);
                json!({"account": touched.account.name(), "credentials": path, "what": touched.what})
            })
            .collect();
        print(out, &json!({"node": node, "accounts": accounts, "pin": pin, "broker": broker}));
        return;
    }
    for touched in touched {
        let path = site.path_of(&touched.account);
        out.text(&format!("{}: {} ({})\n", touched.account.name(), touched.what, path.display()));
    }
    out.text(&format!("pin of the controller: {pin}\n"));
    out.text(&format!("next: the broker reloads {} (nats-server --signal reload)\n", broker.display()));
}
