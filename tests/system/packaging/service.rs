//! The package installed and its service run by the real service manager, with a broker and servers.

use std::time::Duration;

use quartermaster::emulate::FleetHandle;

use super::super::prove_site::{PATIENCE, Site};
use super::machine::Machine;
use super::shipped::{debian_tool, package};

/// Helpers at once.
const HELPERS: usize = 10;
/// Servers: twice as many.
const SERVERS: usize = 20;

/// A site around the service of a box.
struct Installed {
    machine: Machine,
    site: Site,
}

impl Installed {
    /// Installs the package and gives it the site's files; the service is not started.
    fn new() -> Option<Self> {
        let package = package()?.to_str()?.to_owned();
        let site = Site::new()?;
        let machine = Machine::boot()?;
        // As a person would; what it depends on is on this machine, but perhaps not by name.
        machine.must(&format!("dpkg --install --force-depends {package}"));
        let installed = Self { machine, site };
        installed.configure("");
        Some(installed)
    }

    /// The site's files where the unit looks for them, with these lines of shell in the helper.
    fn configure(&self, helper_also: &str) {
        let Self { machine, site } = self;
        let old = site.files.dir.to_str().unwrap();
        for file in std::fs::read_dir(&site.files.dir).unwrap().flatten() {
            let (name, text) = (file.file_name(), std::fs::read_to_string(file.path()));
            if let Ok(text) = text {
                let path = format!("/etc/quartermaster/{}", name.to_str().unwrap());
                machine.put(&path, &text.replace(old, "/etc/quartermaster"));
                machine.must(&format!("chgrp quartermaster {path} && chmod 640 {path}"));
            }
        }
        let helper = std::fs::read_to_string(&site.files.helper).unwrap();
        let (before, after) = helper.split_once("printf").unwrap();
        machine.put("/etc/quartermaster/helper", &format!("{before}{helper_also}\nprintf{after}"));
        machine.must("chmod 755 /etc/quartermaster/helper");
        // Into the shipped files, so that their owner and mode are the package's.
        let config = std::fs::read_to_string(&site.files.config).unwrap().replace(old, "/etc/quartermaster");
        let ours = ["helper:", "helper_timeout:", "logfile:", "workers:", "in_flight:"];
        let kept = config.lines().filter(|line| !ours.iter().any(|key| line.starts_with(key)));
        let ours = format!(
            "helper: /etc/quartermaster/helper\nlogfile: /var/log/quartermaster/quartermaster.log\nworkers: {HELPERS}\n\
             helper_timeout: 5m\nin_flight: {HELPERS}\n"
        );
        let config = format!("{}\n{ours}", kept.collect::<Vec<_>>().join("\n"));
        machine.put("/etc/quartermaster/provisioner.yaml", &config);
        let choria = std::fs::read_to_string(&site.files.choria_config).unwrap();
        machine.put("/etc/quartermaster/choria.cfg", &choria.replace(old, "/etc/quartermaster"));
    }

    fn log(&self) -> String {
        self.machine.must("cat /var/log/quartermaster/quartermaster.log")
    }

    async fn servers(&self) -> FleetHandle {
        self.site.servers("web", SERVERS, |_| ()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_package_as_shipped_runs_as_its_own_account_and_its_log_can_be_rotated() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    machine.must("systemd-analyze verify quartermaster.service && systemctl start quartermaster");
    assert_eq!(machine.property("ActiveState"), "active");
    machine.until(
        "it is connected",
        "systemctl show --value -p StatusText quartermaster | grep -q 'working; connected'",
    );
    // C72: nobody but root writes the configuration, nobody but the group reads it, and the service owns its log.
    let modes = machine.must(
        "stat -c '%a %U %G %n' /etc/quartermaster /etc/quartermaster/provisioner.yaml /etc/quartermaster/choria.cfg \
         /var/lib/quartermaster /var/log/quartermaster /var/log/quartermaster/quartermaster.log",
    );
    let expected = "750 root quartermaster /etc/quartermaster\n\
        640 root quartermaster /etc/quartermaster/provisioner.yaml\n\
        640 root quartermaster /etc/quartermaster/choria.cfg\n\
        700 quartermaster quartermaster /var/lib/quartermaster\n\
        750 quartermaster quartermaster /var/log/quartermaster\n\
        640 quartermaster quartermaster /var/log/quartermaster/quartermaster.log\n";
    assert_eq!(modes, expected);
    let owner = machine.must("ps -o user= -p $(systemctl show --value -p MainPID quartermaster)");
    assert!("quartermaster".starts_with(owner.trim().trim_end_matches('+')), "{owner}");
    let fleet = installed.servers().await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == SERVERS as u64).await.unwrap();

    // By the shipped rules: moved, made anew, signalled.
    let Some(logrotate) = debian_tool("logrotate", "logrotate", &["libpopt0"]) else { return };
    machine.must(&format!("{logrotate} --force --state /run/rotate.state /etc/logrotate.d/quartermaster"));
    machine.until(
        "it goes on in the new file",
        "grep -q 'Opened the log file anew' /var/log/quartermaster/quartermaster.log",
    );
    let rotated = machine
        .must("cd /var/log/quartermaster && stat -c '%a %U %n' * && grep -c 'is up' quartermaster.log.1");
    assert_eq!(rotated, "640 quartermaster quartermaster.log\n640 quartermaster quartermaster.log.1\n1\n");
    machine.must("systemctl reload quartermaster");
    assert_eq!(machine.property("ActiveState"), "active");
    machine.must("systemctl stop quartermaster");
    assert_eq!(
        (machine.property("Result").as_str(), machine.property("ExecMainStatus").as_str()),
        ("success", "0")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_with_ten_helpers_at_work_leaves_no_server_half_done() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    // C73: a helper that hears of the stop says so.
    installed.configure(
        "trap 'echo TERM >> /var/lib/quartermaster/heard' TERM\necho $identity >> /var/lib/quartermaster/started\n\
         if [ -e /var/lib/quartermaster/endless ]; then sleep 300; fi\n\
         if [ -e /var/lib/quartermaster/slow ]; then for n in 1 2 3 4; do sleep 1; done; fi",
    );
    machine.must("touch /var/lib/quartermaster/slow && systemctl start quartermaster");
    let fleet = installed.servers().await;
    machine.until("ten helpers are at work", "test $(wc -l < /var/lib/quartermaster/started) -ge 10");
    machine.must("systemctl restart quartermaster && rm /var/lib/quartermaster/slow");
    let journal = machine.journal();
    assert!(!journal.contains("timed out") && !journal.contains("Killing process"), "{journal}");
    assert!(
        !machine.run("test -e /var/lib/quartermaster/heard").status.success(),
        "helpers heard of the stop"
    );
    machine.must("systemctl kill --kill-who=main --signal=HUP quartermaster");
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == SERVERS as u64).await.unwrap();
    for (name, server) in fleet.report().servers {
        assert_eq!(
            (server.record.configures, server.record.restarts),
            (1, 1),
            "{name}: {server:?}\n{}",
            installed.log()
        );
    }
    assert_eq!(machine.property("NRestarts"), "0");

    // The same with helpers that take longer than anybody waits: they are ended by the main process, well before its own time is up.
    machine.must("touch /var/lib/quartermaster/endless && rm /var/lib/quartermaster/started");
    let others = installed.site.servers("db", SERVERS, |_| ()).await;
    machine.until("ten helpers are at work", "test $(wc -l < /var/lib/quartermaster/started) -ge 10");
    machine.must("rm /var/lib/quartermaster/endless && systemctl restart quartermaster");
    let journal = machine.journal();
    assert!(!journal.contains("timed out") && !journal.contains("Killing process"), "{journal}");
    others.wait_until(PATIENCE, |stats| stats.provisioned == SERVERS as u64).await.unwrap();
    for (name, server) in others.report().servers {
        let (configures, restarts) = (server.record.configures, server.record.restarts);
        assert_eq!((configures, restarts), (1, 1), "{name}: {server:?}\n{}", installed.log());
    }
}

#[test]
fn what_may_not_be_written_is_named_and_not_tried_again() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    // C74: works by hand, fails as a service.
    let yaml = "/etc/quartermaster/provisioner.yaml";
    machine.must(&format!(
        "sed -i 's|^logfile:.*|logfile: /srv/q.log|' {yaml} && install -d -o quartermaster /srv"
    ));
    assert!(!machine.run("systemctl start quartermaster").status.success());
    // What a service said is in the journal a moment after its end.
    machine.until(
        "it says which folder",
        "journalctl --unit=quartermaster | grep 'Read-only file system' | grep -q '`/srv`'",
    );
    assert_eq!(
        (machine.property("ActiveState").as_str(), machine.property("NRestarts").as_str()),
        ("failed", "0")
    );
    assert_eq!(machine.property("ExecMainStatus"), "4");

    // As the unit says: opened with one line.
    machine.must(
        "mkdir -p /run/systemd/system/quartermaster.service.d && install -d -o quartermaster /srv/logs && \
         printf '[Service]\\nReadWritePaths=/srv/logs\\n' > /run/systemd/system/quartermaster.service.d/open.conf && \
         systemctl daemon-reload && systemctl reset-failed quartermaster",
    );
    machine.must(&format!(
        "sed -i 's|^logfile:.*|logfile: /srv/logs/q.log|' {yaml} && systemctl start quartermaster"
    ));
    machine.must("test -s /srv/logs/q.log");

    // A wrong configuration is told in the journal and not tried again and again either.
    machine.must(&format!("systemctl stop quartermaster && echo 'workers: many' >> {yaml}"));
    assert!(!machine.run("systemctl start quartermaster").status.success());
    assert_eq!(
        (machine.property("ExecMainStatus").as_str(), machine.property("NRestarts").as_str()),
        ("3", "0")
    );
    machine.until("it says which key", "journalctl --unit=quartermaster | grep -q workers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_helper_that_may_not_write_names_the_path_in_the_log() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    installed.configure("echo $identity >> /srv/inventory || exit 1");
    machine.must("install -d -o quartermaster /srv && systemctl start quartermaster");
    let fleet = installed.servers().await;
    machine.until(
        "the helper's own words are in the log",
        "grep -q '/srv/inventory: Read-only file system' /var/log/quartermaster/quartermaster.log",
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overseer_that_hangs_is_ended_and_started_again() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    machine.must(
        "mkdir -p /run/systemd/system/quartermaster.service.d && \
         printf '[Service]\\nWatchdogSec=6s\\n' > /run/systemd/system/quartermaster.service.d/soon.conf && \
         systemctl daemon-reload && systemctl start quartermaster",
    );
    let pid = machine.property("MainPID");
    // Well fed for longer than it would wait.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!((machine.property("MainPID"), machine.property("NRestarts").as_str()), (pid.clone(), "0"));
    let freeze = "import ctypes, sys, time\nlibc = ctypes.CDLL(None)\n\
        [libc.ptrace(request, int(sys.argv[1]), None, None) for request in (0x4206, 0x4207)]\ntime.sleep(20)\n";
    machine.put("/run/freeze.py", freeze);
    let thread = machine.must(&format!(
        "grep -l '^actix-rt|system' /proc/{pid}/task/*/comm | sed 's|.*/task/||;s|/comm||' | sort -n | head -n 1"
    ));
    machine.must(&format!("systemd-run --collect python3 /run/freeze.py {}", thread.trim()));
    machine.until(
        "it is started again",
        "test $(systemctl show --value -p NRestarts quartermaster) -ge 1 && systemctl is-active quartermaster",
    );
    machine.until("the journal says why", "journalctl --unit=quartermaster | grep -q atchdog");
}

#[test]
fn the_package_goes_and_takes_what_a_purge_may_take() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    machine.must("systemctl enable --now quartermaster && systemctl is-enabled quartermaster");
    // An upgrade restarts what runs.
    let before = machine.property("MainPID");
    machine.must(&format!("dpkg --install --force-depends --force-confold {}", package().unwrap().display()));
    assert_ne!(machine.property("MainPID"), before);
    assert_eq!(machine.property("ActiveState"), "active");
    machine.must("dpkg --remove quartermaster");
    assert!(
        !machine.run("test -e /usr/bin/quartermaster || systemctl is-active quartermaster").status.success()
    );
    machine.must("test -e /etc/quartermaster/provisioner.yaml && test -e /var/lib/quartermaster");
    machine.must("dpkg --purge quartermaster");
    machine.must("! test -e /etc/quartermaster/provisioner.yaml && ! test -e /var/lib/quartermaster && ! test -e /var/log/quartermaster");
}
