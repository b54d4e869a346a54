//! The log of a running provisioner: everything that is said about one cycle carries its host and attempt, whoever says it; and
//! a log file is never lost sight of, however it is rotated.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, PrepareSettings, prepare,
};
use rustix::process::Signal;
use serde_json::Value;

use super::support::{Broker, BrokerOptions, Daemon, append, eventually, replace, skip};

/// A plain network; the helper says a word on standard error.
struct Site {
    broker: Broker,
    files: NetworkFiles,
    dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Option<Self> {
        let broker = BrokerOptions::new().start()?;
        let dir = tempfile::tempdir().unwrap();
        let settings =
            PrepareSettings { broker: format!("127.0.0.1:{}", broker.port()), ..PrepareSettings::default() };
        let files = prepare(dir.path(), &settings).unwrap().plain;
        append(&files.config, "listen: 127.0.0.1:0\nretry:\n  first: 1s\n  cap: 1s\n");
        Some(Self { broker, files, dir })
    }

    async fn fleet(&self, servers: usize, faults: &str) -> FleetHandle {
        let network = Network::load(&self.files.dir).unwrap();
        let mut settings = FleetSettings::new(network, self.broker.url(), servers);
        settings.tls = false;
        settings.restart_delay = Some(Duration::from_millis(50));
        settings.faults = FaultPlan::parse(faults).unwrap();
        Fleet::start(settings).await.unwrap()
    }

    /// Lets the log go to this file.
    fn log_to(&self, file: &Path) {
        let text = std::fs::read_to_string(&self.files.config).unwrap();
        let others: Vec<&str> = text.lines().filter(|line| !line.starts_with("logfile:")).collect();
        let text = format!("{}\nlogfile: {}\n", others.join("\n"), file.display());
        std::fs::write(&self.files.config, text).unwrap();
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("q.log")
    }
}

/// Lines about a host that come before or after its cycle: nothing is being attempted then.
const BETWEEN_CYCLES: [&str; 4] = ["Adding ", "Forgetting ", "Confirmed ", "Not seen as a server "];

#[actix::test]
async fn every_line_of_a_cycle_carries_its_host_and_attempt() {
    let Some(site) = Site::new() else { return };
    replace(&site.files.helper, "printf", "echo a word >&2\nprintf");
    let mut daemon = Daemon::start(&site.files);
    daemon.listens().await;
    // One server answers wrongly, so that it needs a second attempt.
    let fleet = site.fleet(6, "jwt_alg_none=@node3.example.net").await;
    let line_of = |daemon: &Daemon, words: &str| {
        daemon.lines().into_iter().find(|line| line["msg"].as_str().unwrap().contains(words))
    };
    for words in ["Provisioned node1.example.net", "Could not provision node3.example.net"] {
        eventually(words, || line_of(&daemon, words).is_some()).await;
    }
    eventually("the second attempt", || {
        let again = daemon.lines().into_iter().filter(|line| line["msg"] == "Provisioning node3.example.net");
        again.filter_map(|line| line["attempt"].as_u64()).max() >= Some(2)
    })
    .await;
    fleet.stop().await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
    let lines = daemon.lines();
    let of_hosts: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("host").is_some())
        .filter(|line| !BETWEEN_CYCLES.iter().any(|words| line["msg"].as_str().unwrap().starts_with(words)))
        .collect();
    for line in &of_hosts {
        assert!(line["attempt"].as_u64() >= Some(1), "without an attempt: {line}");
        assert!(line["host"].as_str().unwrap().ends_with(".example.net"), "{line}");
    }
    let said = |words: &str, step: Option<&str>| {
        let found = of_hosts.iter().find(|line| line["msg"].as_str().unwrap().contains(words));
        let found = found.unwrap_or_else(|| panic!("nobody said {words:?}"));
        assert_eq!(found.get("step").and_then(Value::as_str), step, "{found}");
    };
    said("Called choria_provision#jwt on", Some("jwt"));
    said("Called choria_provision#configure on", Some("configure"));
    said("The helper says: a word", Some("helper"));
    said("The helper answered", Some("helper"));
    said("Provisioned node1.example.net", None);
    said("Could not provision node3.example.net", None);
}

/// A provisioner that writes a line about a lifecycle event whenever it is told to.
async fn logging(site: &Site) -> (Daemon, FleetHandle) {
    site.log_to(&site.log());
    let daemon = Daemon::start_with(&site.files, &["--debug"], &[]);
    eventually("it logs", || std::fs::read_to_string(site.log()).is_ok_and(|log| log.contains("is up")))
        .await;
    // Fails for ever, once a second: always something to log.
    let fleet = site.fleet(3, "jwt_alg_none=1").await;
    eventually("servers fail", || read(&site.log()).contains("Could not provision")).await;
    (daemon, fleet)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Whole lines only, each a JSON object.
fn assert_whole(path: &Path) {
    for line in read(path).lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{}: {line:?}", path.display());
    }
}

async fn ends_well(mut daemon: Daemon, fleet: FleetHandle) {
    daemon.assert_alive();
    fleet.stop().await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
}

#[actix::test]
async fn a_log_file_that_was_moved_is_opened_anew_on_a_hangup() {
    let Some(site) = Site::new() else { return };
    let (daemon, fleet) = logging(&site).await;
    let moved = site.dir.path().join("q.log.1");
    std::fs::rename(site.log(), &moved).unwrap();
    daemon.signal(Signal::HUP);
    eventually("it says so in the new file", || read(&site.log()).contains("Opened the log file anew")).await;
    let length = read(&moved).len();
    eventually("work goes on in the new file", || read(&site.log()).contains("Could not provision")).await;
    assert_eq!(read(&moved).len(), length, "and no longer in the old one");
    ends_well(daemon, fleet).await;
    assert_whole(&moved);
    assert_whole(&site.log());
}

#[actix::test]
async fn a_log_file_that_was_moved_is_followed_without_a_signal() {
    let Some(site) = Site::new() else { return };
    let (daemon, fleet) = logging(&site).await;
    let moved = site.dir.path().join("q.log.1");
    std::fs::rename(site.log(), &moved).unwrap();
    eventually("work goes on in a new file", || read(&site.log()).contains("Could not provision")).await;
    ends_well(daemon, fleet).await;
    assert!(read(&site.log()).contains("stopped"));
    assert_whole(&moved);
    assert_whole(&site.log());
}

/// Debian's logrotate, run with this way of rotating.
fn logrotate(site: &Site, way: &str) -> Option<()> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/get-debian-tool");
    let found = Command::new(tool)
        .args(["logrotate", "logrotate", "libpopt0"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !found.status.success() {
        skip("logrotate", &String::from_utf8_lossy(&found.stderr));
        return None;
    }
    let rules = site.dir.path().join("rules");
    // A folder that everybody may write to is refused without `su`; the owner of ours is whoever runs this.
    let owner = Command::new("sh").args(["-c", "echo $(id -un) $(id -gn)"]).output().unwrap();
    let owner = String::from_utf8(owner.stdout).unwrap();
    let text = format!("{} {{\n  su {owner}\n  rotate 3\n  {way}\n}}\n", site.log().display());
    std::fs::write(&rules, text).unwrap();
    let rotated = Command::new(String::from_utf8(found.stdout).unwrap().trim())
        .arg("--force")
        .arg("--state")
        .arg(site.dir.path().join("rotate.state"))
        .arg(&rules)
        .output()
        .unwrap();
    assert!(rotated.status.success(), "{}", String::from_utf8_lossy(&rotated.stderr));
    Some(())
}

#[actix::test]
async fn logrotate_may_copy_and_empty_the_log_file() {
    let Some(site) = Site::new() else { return };
    let (daemon, fleet) = logging(&site).await;
    let Some(()) = logrotate(&site, "copytruncate") else { return };
    let copy = site.dir.path().join("q.log.1");
    assert!(read(&copy).contains("is up"));
    eventually("work goes on in the emptied file", || read(&site.log()).contains("Could not provision"))
        .await;
    assert!(!read(&site.log()).contains('\0'), "from its begin, without a hole");
    ends_well(daemon, fleet).await;
    assert_whole(&site.log());
}

#[actix::test]
async fn logrotate_may_move_the_log_file_and_make_another() {
    let Some(site) = Site::new() else { return };
    let (daemon, fleet) = logging(&site).await;
    let Some(()) = logrotate(&site, "create 0640") else { return };
    eventually("work goes on in the new file", || read(&site.log()).contains("Could not provision")).await;
    ends_well(daemon, fleet).await;
    assert!(read(&site.dir.path().join("q.log.1")).contains("is up"));
    assert_whole(&site.log());
}
