//! The machine we run on, as the configuration sees it: names by name service and facter, processors, user.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::config::Surroundings;
use crate::config::surroundings::{Names, ProcessEnvironment};

/// The surroundings of this process.
pub fn surroundings() -> Surroundings<'static> {
    Surroundings {
        env: &ProcessEnvironment,
        names: &MachineNames,
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        is_root: rustix::process::getuid().is_root(),
        cpus: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
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
