//! The provisioner as process 1 of a container, with helpers that detach processes, say nothing, or never end: no process and no
//! defunct entry is left, and a stop still is a stop.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use quartermaster::emulate::{Fleet, FleetSettings, Network, NetworkFiles, PrepareSettings, prepare};
use rustix::process::{Pid, Signal, kill_process};

use super::support::{BrokerOptions, append, eventually, replace, skip};

const SERVERS: usize = 500;

/// By the last digit of the server's number; all but the last kind end quickly.
const KINDS: &str = r#"
printf '%s\n' "$identity" >> RUNS
case $identity in
  *1.example.net) (setsid sleep 600 >/dev/null 2>&1 </dev/null &) ;;
  *2.example.net) setsid sh -c 'sleep 600 & sleep 600 & exit' >/dev/null 2>&1 & ;;
  *3.example.net) exit 0 ;;
  *4.example.net) env -i setsid sleep 600 >/dev/null 2>&1 & exit 4 ;;
  *5.example.net) (setsid true &) ; (true &) ;;
  *00.example.net) (setsid sleep 600 &) ; sleep 600 ;;
esac
"#;

/// A world of processes, which ends with this value.
struct World {
    unshare: Child,
}

impl World {
    fn start(files: &NetworkFiles) -> Self {
        let output = |name: &str| std::fs::File::create(files.dir.join(name)).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
        command.arg(env!("CARGO_BIN_EXE_quartermaster")).arg("run").arg("--config").arg(&files.config);
        command.arg("--choria-config").arg(&files.choria_config).current_dir(&files.dir).stdin(Stdio::null());
        let unshare = command.stdout(output("stdout")).stderr(output("stderr")).spawn().unwrap();
        Self { unshare }
    }

    /// What descends from it, with each process's number, state and name: first its process 1.
    fn processes(&self) -> Vec<(i32, char, String)> {
        let mut found = Vec::new();
        let mut parents = vec![self.unshare.id().to_string()];
        while let Some(parent) = parents.pop() {
            let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { continue };
            for thread in threads.flatten() {
                let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                for child in children.split_whitespace() {
                    parents.push(child.to_owned());
                    found.extend(seen(child));
                }
            }
        }
        found
    }

    fn first(&self) -> Pid {
        Pid::from_raw(self.processes().first().expect("process 1 is there").0).unwrap()
    }

    async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("process 1 has ended", || {
            status = self.unshare.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

fn seen(pid: &str) -> Option<(i32, char, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1;
    Some((pid.parse().ok()?, rest.chars().next()?, name.to_owned()))
}

fn runs(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn may_be_first() -> Result<(), String> {
    match Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "--kill-child", "true"]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_helper_runs_under_process_one_leave_nothing() {
    if let Err(why) = may_be_first() {
        skip("life as process 1", &why);
        return;
    }
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", broker.port());
    let settings = PrepareSettings { broker: address, workers: Some(8), ..PrepareSettings::default() };
    let files = prepare(dir.path(), &settings).unwrap().plain;
    // One attempt for each server, and only what means to sleep is stopped.
    append(&files.config, "helper_timeout: 3s\nretry:\n  first: 10m\n");
    let ran = dir.path().join("runs");
    let kinds = KINDS.replace("RUNS", ran.to_str().unwrap());
    replace(&files.helper, "printf '%s\\n' \"{", &format!("{kinds}printf '%s\\n' \"{{"));

    let mut world = World::start(&files);
    let mut fleet = FleetSettings::new(Network::load(&files.dir).unwrap(), broker.url(), SERVERS);
    fleet.tls = false;
    fleet.restart_delay = Some(Duration::from_millis(50));
    let fleet = Fleet::start(fleet).await.unwrap();

    for count in (100..=SERVERS).step_by(100) {
        eventually("a hundred more servers had their run", || runs(&ran) >= count).await;
    }
    eventually("only the init and the provisioner are left", || world.processes().len() == 2).await;
    let left = world.processes();
    assert!(left.iter().all(|(_, state, name)| *state != 'Z' && name == "quartermaster"), "{left:?}");

    kill_process(world.first(), Signal::TERM).unwrap();
    let log = || std::fs::read_to_string(files.dir.join("stderr")).unwrap();
    assert_eq!(world.ended().await.code(), Some(0), "{}", log());
    assert_eq!(runs(&ran), SERVERS, "no server was asked about twice");
    drop(fleet);
}
