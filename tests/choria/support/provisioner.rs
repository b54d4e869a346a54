//! The provisioner under test, as a child process.
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use super::network::Network;
use super::process::Process;
use super::{PATIENCE, wait_for};

/// A running `quartermaster run`.
pub struct Provisioner {
    process: Process,
    monitor_port: u16,
}

impl Provisioner {
    /// Starts it with the network's two files, as they are.
    pub fn start(network: &Network) -> Self {
        Self::start_with(network, "provisioner.yaml")
    }

    /// Starts it with another YAML file of the network.
    pub fn start_with(network: &Network, yaml: &str) -> Self {
        Self::start_with_both(network, yaml, "choria.cfg")
    }

    /// Starts it with other files of the network.
    pub fn start_with_both(network: &Network, yaml: &str, choria: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command
            .args(["run", "--config"])
            .arg(network.file(yaml))
            .arg("--choria-config")
            .arg(network.file(choria))
            .current_dir(network.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", network.path())
            .env("USER", "root");
        let log = network.file(&format!("{yaml}.log"));
        Self { process: Process::start(&mut command, &log), monitor_port: network.monitor_port() }
    }

    /// Writes `NAME`, the network's `provisioner.yaml` after `change`.
    pub fn configure(network: &Network, name: &str, change: impl FnOnce(String) -> String) {
        let yaml = fs::read_to_string(network.file("provisioner.yaml")).expect("the provisioner's file");
        fs::copy(network.file("provisioner.yaml"), network.file(name)).expect("a file with the same mode");
        fs::write(network.file(name), change(yaml)).expect("a changed file");
    }

    /// Waits for a line of its log that holds all of `words`.
    pub fn says(&mut self, words: &[&str]) -> String {
        wait_for(&format!("a line of the provisioner with {words:?}"), PATIENCE, || {
            self.assert_alive();
            self.process
                .output()
                .lines()
                .find(|line| words.iter().all(|word| line.contains(word)))
                .map(str::to_owned)
        })
    }

    /// Waits until a metric has reached `value`.
    pub fn shows(&mut self, metric: &str, value: f64) {
        wait_for(&format!("{metric} to reach {value}"), PATIENCE, || {
            self.assert_alive();
            self.metric(metric).filter(|shown| *shown >= value)
        });
    }

    /// A metric as it is now.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.scrape()?
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    fn scrape(&self) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor_port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    }

    /// Asserts that it still runs.
    ///
    /// # Panics
    /// When it has ended.
    pub fn assert_alive(&mut self) {
        if let Some(status) = self.process.ended() {
            panic!("the provisioner ended with {status}");
        }
    }

    /// Stops it with SIGTERM.
    ///
    /// # Panics
    /// When it does not end, or not with success.
    pub fn stop(mut self) {
        self.assert_alive();
        self.process.terminate();
        let status = self.process.wait("the provisioner to end after SIGTERM", PATIENCE);
        assert!(status.success(), "the provisioner ended with {status} after SIGTERM");
    }

    /// Waits for an end that was asked for elsewhere.
    ///
    /// # Panics
    /// When it does not end, or not with success.
    pub fn ends(&mut self) {
        let status = self.process.wait("the provisioner to end", PATIENCE);
        assert!(status.success(), "the provisioner ended with {status}");
    }

    /// All it has printed.
    pub fn output(&self) -> String {
        self.process.output()
    }
}
