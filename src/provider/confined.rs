//! What a provider's process may not: this program gives up the rights and becomes the provider, which so begins without them.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_no_new_privs;

use super::command::say;
use crate::config::ProviderConfine;
use crate::exit::Exit;

/// This program, whatever has become of its file.
const SELF: &str = "/proc/self/exe";

/// Arguments of `quartermaster provider confined`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Nothing that is started gains rights
    #[arg(long)]
    pub no_new_privileges: bool,
    /// The user
    #[arg(long)]
    pub uid: Option<u32>,
    /// The group
    #[arg(long)]
    pub gid: Option<u32>,
    /// Open files
    #[arg(long)]
    pub open_files: Option<u64>,
    /// Bytes of address space
    #[arg(long)]
    pub memory: Option<u64>,
    /// Processes of the user
    #[arg(long)]
    pub processes: Option<u64>,
    /// What to become
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// What stands in front of a program that is confined so; nothing when it is not.
pub fn launcher(confine: &ProviderConfine) -> Vec<OsString> {
    if confine.is_empty() {
        return Vec::new();
    }
    let mut words: Vec<OsString> = [SELF, "provider", "confined"].map(OsString::from).to_vec();
    if confine.no_new_privileges {
        words.push("--no-new-privileges".into());
    }
    let numbers = [
        ("uid", confine.uid.map(u64::from)),
        ("gid", confine.gid.map(u64::from)),
        ("open-files", confine.open_files),
        ("memory", confine.memory),
        ("processes", confine.processes),
    ];
    let given = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
    words.extend(given.map(|(name, number)| format!("--{name}={number}").into()));
    words.push("--".into());
    words
}

/// Gives up what is to be given up and becomes the other program. Returns only when that cannot be.
pub fn run(args: &Args) -> Exit {
    let failed = |what: &str, error: &io::Error| {
        say(&format!("{what}: {error}\n"));
        Exit::Failure
    };
    let mut words = args.command.iter();
    let Some(program) = words.next() else { return Exit::Usage };
    let mut command = Command::new(program);
    command.args(words);
    // The groups of this process go with its user.
    if let Some(gid) = args.gid {
        command.gid(gid);
    }
    if let Some(uid) = args.uid {
        command.uid(uid);
    }
    // Last, since nothing may be asked of the system any more once this process has more than it may.
    if args.no_new_privileges
        && let Err(error) = set_no_new_privs(true)
    {
        return failed("rights cannot be given up", &error.into());
    }
    let limits = [
        (Resource::Nofile, args.open_files, "open files"),
        (Resource::As, args.memory, "memory"),
        (Resource::Nproc, args.processes, "processes"),
    ];
    for (resource, limit, name) in limits {
        if let Some(limit) = limit
            && let Err(error) = limited(resource, limit)
        {
            return failed(&format!("the limit of {name} cannot be {limit}"), &error);
        }
    }
    let error = command.exec();
    let shown = program.to_string_lossy();
    match (args.uid, args.gid) {
        (None, None) => failed(&format!("{shown} cannot be started"), &error),
        _ => failed(&format!("{shown} cannot be started as the user or group that is set"), &error),
    }
}

/// Never more than there is: a limit is not raised.
fn limited(resource: Resource, limit: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}
