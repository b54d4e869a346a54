//! `quartermaster vault`: keeps the mesh's secrets and hands them out; its verbs ask a running one. None of them prints a value.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quartermaster_node::client::bus::BusSettings;
use quartermaster_node::vault::service::{
    self, AdminClient, AdminReply, AdminRequest, AdminValue, Running, ServiceError, Settings, VaultMetrics,
};
use quartermaster_node::vault::{StoreKey, Value};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::signature::PublicNkey;
use quartermaster_proto::mesh::vault::MAX_VALUE;
use zeroize::Zeroizing;

use super::numbers::page;
use super::serve::{Chain, serve, watched};
use super::vault_kv::{KvArgs, handed};
use crate::cli::LogArgs;
use crate::cli::out::{Out, say};
use crate::exit::Exit;

const STORE: &str = "/var/lib/quartermaster-vault/store";
const SOCKET: &str = "/run/quartermaster-vault/admin.sock";

/// Arguments of `quartermaster vault`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct VaultArgs {
    /// What to do instead of running.
    #[command(subcommand)]
    pub command: Option<VaultCommand>,
    /// Where the store lies
    #[command(flatten)]
    pub store: StoreArgs,
    /// Brokers
    #[arg(long, value_name = "HOST:PORT,...", required = true)]
    pub servers: Option<String>,
    /// Credentials file of the account mesh-vault, read anew at every connect
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// Public key of the controller; with one, nothing that is not signed with it is taken. May be given more than once
    #[arg(long = "pin", value_name = "NKEY")]
    pub pins: Vec<PublicNkey>,
    /// File of the audit: one JSON line for every request
    #[arg(long, value_name = "FILE", default_value = "/var/lib/quartermaster-vault/audit.jsonl")]
    pub audit: PathBuf,
    /// File of the site's own rules: lines of `deny` or `allow`, an account, a name
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Socket on which operators ask
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Address on which numbers are told for Prometheus; none: nobody is told
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// Where values are kept instead
    #[command(flatten)]
    pub kv: KvArgs,
}

/// Where the store lies, and its key.
#[derive(Debug, Clone, clap::Args)]
pub struct StoreArgs {
    /// File of the store
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub store: PathBuf,
    /// File of the store's key: 32 bytes or 64 hexadecimal digits, mode 0400 or 0600 [default: vault-key of the systemd credentials]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// How a running vault is reached.
#[derive(Debug, Clone, clap::Args)]
pub struct SocketArgs {
    /// Socket of the running vault
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
}

/// `quartermaster vault …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum VaultCommand {
    /// Make the store, and print the public key that deposits are sealed to
    Init(StoreArgs),
    /// Seal the whole store with another key; the vault must not be running
    Rekey {
        /// Where the store lies
        #[command(flatten)]
        store: StoreArgs,
        /// File of the new key
        #[arg(long, value_name = "FILE")]
        new_key_file: PathBuf,
    },
    /// Store a value, which is read from standard input
    Set {
        /// Its name: own/MODULE/NAME[/MACHINE], provision/... or pair/...
        name: String,
        /// Where the vault is
        #[command(flatten)]
        socket: SocketArgs,
    },
    /// Replace a value by random bytes in base64url
    Rotate {
        /// Its name
        name: String,
        /// How many random bytes
        #[arg(long, value_name = "BYTES", default_value_t = 32)]
        random: usize,
        /// Where the vault is
        #[command(flatten)]
        socket: SocketArgs,
    },
    /// Forget a value
    Delete {
        /// Its name
        name: String,
        /// Where the vault is
        #[command(flatten)]
        socket: SocketArgs,
    },
    /// List names and versions
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Where the vault is
        #[command(flatten)]
        socket: SocketArgs,
    },
}

/// Runs the verb.
pub fn vault(args: &VaultArgs, log: &LogArgs, out: &mut Out) -> Exit {
    match &args.command {
        None => run(args, log),
        Some(VaultCommand::Init(store)) => offline(store, out, |store, key, out| {
            out.text(&format!("{}\n", service::init(store, key)?));
            Ok(())
        }),
        Some(VaultCommand::Rekey { store, new_key_file }) => offline(store, out, |store, key, out| {
            let new = StoreKey::from_file(new_key_file)?;
            service::open_store(store, key)?.rekey(new)?;
            out.text("sealed with the new key\n");
            Ok(())
        }),
        Some(VaultCommand::Set { name, socket }) => match value() {
            Ok(value) => ask(socket, &AdminRequest::Set { name: name.clone(), value }, out, false),
            Err(why) => {
                say(&format!("error: {why}\n"));
                Exit::Usage
            }
        },
        Some(VaultCommand::Rotate { name, random, socket }) => {
            ask(socket, &AdminRequest::Rotate { name: name.clone(), random: *random }, out, false)
        }
        Some(VaultCommand::Delete { name, socket }) => {
            ask(socket, &AdminRequest::Delete { name: name.clone() }, out, false)
        }
        Some(VaultCommand::List { json, socket }) => ask(socket, &AdminRequest::List, out, *json),
    }
}

fn run(args: &VaultArgs, log: &LogArgs) -> Exit {
    let Some(servers) = args.servers.clone() else { return Exit::Usage };
    let (numbers, metrics) = match page(args.metrics.as_deref(), VaultMetrics::new, VaultMetrics::register) {
        Ok(page) => page,
        Err(exit) => return exit,
    };
    let settings = Settings {
        store: args.store.store.clone(),
        key_file: key_file(&args.store),
        audit: args.audit.clone(),
        rules: args.rules.clone(),
        socket: args.socket.clone(),
        bus: BusSettings { servers, account: Account::Vault, credentials: args.credentials.clone() },
        pins: args.pins.clone(),
        kv: args.kv.settings(),
        metrics,
    };
    let exit = |error: &ServiceError| if error.is_configuration() { Exit::Unusable } else { Exit::Failure };
    let mut pulse = None;
    let begun = |running: Running| {
        if let Some(numbers) = numbers {
            numbers.tell(|| {});
        }
        pulse = watched(running.vital(), move || running.in_words().to_owned());
    };
    let work = |stop| service::run(settings, Arc::new(crate::clock::now), begun, stop);
    let exit = serve(log, None, work, exit);
    drop(pulse);
    exit
}

fn key_file(args: &StoreArgs) -> PathBuf {
    args.key_file.clone().or_else(|| handed("vault-key")).unwrap_or_else(|| "vault-key".into())
}

fn offline(
    args: &StoreArgs,
    out: &mut Out,
    act: impl FnOnce(&Path, &Path, &mut Out) -> Result<(), ServiceError>,
) -> Exit {
    match act(&args.store, &key_file(args), out) {
        Ok(()) => Exit::Success,
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            Exit::Unusable
        }
    }
}

/// The value on standard input; one more byte than allowed shows that it is too long.
fn value() -> Result<AdminValue, String> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_VALUE + 1));
    let mut input = std::io::stdin().lock().take(MAX_VALUE as u64 + 1);
    input.read_to_end(&mut bytes).map_err(|error| format!("the value cannot be read: {error}"))?;
    if bytes.len() > MAX_VALUE {
        return Err(format!("a value holds at most {MAX_VALUE} bytes"));
    }
    Ok(AdminValue(Value::new(bytes)))
}

fn ask(socket: &SocketArgs, request: &AdminRequest, out: &mut Out, json: bool) -> Exit {
    let reply = AdminClient::connect(&socket.socket).and_then(|client| client.ask(request));
    let (text, exit) = match reply {
        Ok(AdminReply::Version(version)) => (format!("version {version}\n"), Exit::Success),
        Ok(AdminReply::Deleted(name)) => (format!("{name} is forgotten\n"), Exit::Success),
        Ok(AdminReply::BoxKey(key)) => (format!("{key}\n"), Exit::Success),
        Ok(AdminReply::Values(values)) if json => {
            let rows: Vec<_> = values
                .into_iter()
                .map(|(name, version)| serde_json::json!({ "name": name, "version": version }))
                .collect();
            (format!("{}\n", serde_json::Value::from(rows)), Exit::Success)
        }
        Ok(AdminReply::Values(values)) => (
            values.into_iter().fold(String::new(), |mut rows, (name, version)| {
                let _ = writeln!(rows, "{version:>8}  {name}");
                rows
            }),
            Exit::Success,
        ),
        Ok(AdminReply::Error(why)) => {
            say(&format!("error: {why}\n"));
            (String::new(), Exit::Refused)
        }
        Err(error) => {
            say(&format!("error: the vault on {} cannot be asked: {error}\n", socket.socket.display()));
            (String::new(), Exit::NoInstance)
        }
    };
    out.text(&text);
    exit
}
