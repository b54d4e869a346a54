//! Several instances of the provisioner at one site, each with its own identity, files and listener.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::prove_site::{Process, Site};
use super::support::eventually_within;

/// How long an instance may take to do what it does in seconds on an idle machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// One instance: its files, and its process while it runs.
pub struct Member {
    pub identity: String,
    config: PathBuf,
    choria: PathBuf,
    log: PathBuf,
    monitor: u16,
    pub process: Option<Process>,
}

/// Files of `count` instances named `p1.example.net` and so on, with these lines of YAML beside the site's own; `OWN` in them
/// is the beginning of paths that each has for itself.
pub fn members(site: &Site, dir: &TempDir, count: usize, yaml: &str) -> Vec<Member> {
    (1..=count).map(|number| Member::prepare(site, dir, number, yaml)).collect()
}

impl Member {
    fn prepare(site: &Site, dir: &TempDir, number: usize, lines: &str) -> Self {
        let identity = format!("p{number}.example.net");
        let file = |name: &str| dir.path().join(format!("p{number}.{name}"));
        let monitor = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let listen = format!("listen: 127.0.0.1:{monitor}");
        let lines = lines.replace("OWN", file("own").to_str().unwrap());
        let new: Vec<&str> = lines.lines().chain([listen.as_str()]).collect();
        let key = |line: &str| line.split_once(':').map(|(key, _)| key.to_owned());
        let keys: Vec<_> = new.iter().filter_map(|line| key(line)).collect();
        let text = fs::read_to_string(&site.files.config).unwrap();
        let mut kept: Vec<&str> =
            text.lines().filter(|line| key(line).is_none_or(|old| !keys.contains(&old))).collect();
        kept.extend(new);
        fs::write(file("yaml"), kept.join("\n") + "\n").unwrap();
        let choria = fs::read_to_string(&site.files.choria_config).unwrap();
        let own = choria.replace("identity = provisioner.example.net", &format!("identity = {identity}"));
        assert_ne!(own, choria);
        fs::write(file("cfg"), own).unwrap();
        Self { identity, config: file("yaml"), choria: file("cfg"), log: file("log"), monitor, process: None }
    }

    /// Lets it know these brokers, as URLs.
    pub fn connect_to(&self, urls: &[String]) {
        let text = fs::read_to_string(&self.choria).unwrap();
        let other = |line: &&str| !line.starts_with("plugin.choria.middleware_hosts");
        let mut lines: Vec<_> = text.lines().filter(other).map(str::to_owned).collect();
        lines.push(format!("plugin.choria.middleware_hosts = {}", urls.join(",")));
        fs::write(&self.choria, lines.join("\n") + "\n").unwrap();
    }

    /// Starts it, or starts it anew.
    pub fn start(&mut self) {
        let process =
            Process::start(&self.config, &self.choria, self.log.clone(), self.monitor, &["--debug"]);
        self.process = Some(process);
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("it was started")
    }

    /// What it wrote in all its lives.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// `/readyz`: whether it is ready, and the whole answer; nothing while it does not listen.
    pub fn readiness(&self) -> Option<(bool, Value)> {
        let (code, body) = self.process.as_ref()?.get("/readyz")?;
        Some((code == 200, serde_json::from_str(&body).unwrap()))
    }

    /// The word for what it does.
    pub fn role(&self) -> String {
        self.readiness().and_then(|(_, ready)| ready["role"].as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Waits until it says that it does this.
    pub async fn becomes(&self, role: &str) {
        eventually_within(PATIENCE, &format!("{} is {role}", self.identity), || self.role() == role).await;
    }
}
