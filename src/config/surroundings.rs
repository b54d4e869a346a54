//! What the configuration depends on beside its files: the environment, the working folder and the machine's names.
//!
//! All of it is handed in, so tests say what the machine looks like.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where environment variables come from.
pub trait Environment {
    /// The value of `name`, when it is set (an empty value counts).
    fn get(&self, name: &str) -> Option<String>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }
}

impl Environment for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }
}

/// The machine's names, asked for only when no file gives them: each may take a second.
pub trait Names {
    /// What the operating system calls this machine.
    fn hostname(&self) -> String;
    /// The full name by name service, else by facter.
    fn full_name(&self) -> Option<String>;
    /// The domain by facter, else that of the full name.
    fn domain(&self) -> Option<String>;
}

/// What the configuration depends on beside its files.
pub struct Surroundings<'a> {
    /// Environment variables.
    pub env: &'a dyn Environment,
    /// The machine's names.
    pub names: &'a dyn Names,
    /// The working folder: start of relative paths and of the search for project files.
    pub cwd: PathBuf,
    /// We run as root.
    pub is_root: bool,
    /// Processors, the default number of workers.
    pub cpus: NonZeroUsize,
}

impl Surroundings<'static> {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        Self {
            env: &ProcessEnvironment,
            names: &MachineNames,
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            is_root: rustix::process::getuid().is_root(),
            cpus: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }
}

impl Surroundings<'_> {
    /// `path` as an absolute one.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }

    /// The home folder.
    pub fn home(&self) -> Option<String> {
        self.env.get("HOME").filter(|home| !home.is_empty())
    }
}

/// The names of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineNames;

const FACTER_DEADLINE: Duration = Duration::from_secs(5);
const DNS_DEADLINE: Duration = Duration::from_secs(2);

impl Names for MachineNames {
    fn hostname(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn full_name(&self) -> Option<String> {
        let hostname = self.hostname();
        reverse_name(&hostname).filter(|name| name != "localhost").or_else(|| facter("networking.fqdn"))
    }

    fn domain(&self) -> Option<String> {
        facter("networking.domain").or_else(|| {
            let hostname = self.hostname();
            let full = if hostname.contains('.') { Some(hostname) } else { self.full_name() };
            full.and_then(|name| name.split_once('.').map(|(_, domain)| domain.to_owned()))
        })
    }
}

/// The name behind the first IPv4 address of `hostname`: /etc/hosts first, then the name service.
fn reverse_name(hostname: &str) -> Option<String> {
    let address = (hostname, 0).to_socket_addrs().ok()?.map(|found| found.ip()).find(IpAddr::is_ipv4)?;
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    hosts_name(&hosts, address).or_else(|| ptr_name(address))
}

fn hosts_name(hosts: &str, address: IpAddr) -> Option<String> {
    hosts.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        (words.next()?.parse::<IpAddr>().ok()? == address).then(|| words.next().map(str::to_owned)).flatten()
    })
}

fn ptr_name(address: IpAddr) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let resolver = hickory_resolver::TokioResolver::builder_tokio().ok()?.build().ok()?;
        let lookup = tokio::time::timeout(DNS_DEADLINE, resolver.reverse_lookup(address)).await.ok()?.ok()?;
        lookup.answers().iter().find_map(|record| match &record.data {
            hickory_resolver::proto::rr::RData::PTR(name) => {
                Some(name.0.to_utf8().trim_end_matches('.').to_owned())
            }
            _ => None,
        })
    })
}

/// One fact, when there is a facter that answers in time.
fn facter(fact: &str) -> Option<String> {
    let mut child = Command::new("facter")
        .arg(fact)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + FACTER_DEADLINE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty() && !text.contains(char::is_whitespace)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_an_address_is_the_full_one() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.1 no\n10.0.0.1\tprov.example.net prov # x\n";
        assert_eq!(hosts_name(hosts, "10.0.0.1".parse().unwrap()).as_deref(), Some("prov.example.net"));
        assert_eq!(hosts_name(hosts, "10.0.0.2".parse().unwrap()), None);
    }

    #[test]
    fn this_machine_has_a_name() {
        assert!(!MachineNames.hostname().is_empty());
    }
}
