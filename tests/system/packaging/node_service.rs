//! The node side's three units, run by the real service manager on one machine with a real broker: from the installed package to
//! a filled file.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::super::support::{Broker, BrokerOptions};
use super::machine::Machine;
use super::shipped::{BINARY, package, text_of};

const UNITS: [&str; 3] = ["quartermaster-vault", "quartermaster-engine", "quartermaster-node"];

/// An operator's folder and broker, and the machine that the package is installed on.
struct Installed {
    machine: Machine,
    broker: Broker,
    dir: TempDir,
}

impl Installed {
    /// Everything that docs/node.md has an operator do before the first start.
    fn new() -> Option<Self> {
        let package = package()?.to_str()?.to_owned();
        let machine = Machine::boot()?;
        let dir = tempfile::tempdir().unwrap();
        let mesh = |arguments: &[&str]| {
            let site = dir.path().join("mesh");
            let mut command = Command::new(BINARY);
            command.arg("mesh").args(arguments).arg("--site").arg(site).env_remove("QM_MESH_SERVERS");
            text_of(&command.stdin(Stdio::null()).output().unwrap())
        };
        let pin: Value = serde_json::from_str(&mesh(&["init", "--json"])).unwrap();
        mesh(&["node", "add", "web1"]);
        let accounts = std::fs::read_to_string(dir.path().join("mesh/broker.conf")).unwrap();
        let broker = BrokerOptions::new().jetstream().extra(&accounts).start()?;
        // What the package depends on is on this machine, but perhaps not by name.
        machine.must(&format!("dpkg --install --force-depends {package}"));
        for (account, file) in [
            ("engine.web1", "engine.creds"),
            ("provisioner.web1", "provisioner-broker"),
            ("mesh-vault", "mesh-vault"),
        ] {
            let seed = std::fs::read_to_string(dir.path().join("mesh/accounts").join(account)).unwrap();
            machine.put(&format!("/etc/quartermaster/{file}"), &seed);
        }
        let site = format!("SERVERS={}\nPIN={}\n", broker.url(), pin["pin"].as_str().unwrap());
        machine.put("/etc/default/quartermaster-node", &format!("{site}NODE=web1\n"));
        machine.put("/etc/default/quartermaster-vault", &site);
        let box_key = machine.must(
            "umask 077 && head -c 32 /dev/urandom > /etc/quartermaster/vault.key && systemd-tmpfiles --create quartermaster.conf && \
             quartermaster vault init --key-file /etc/quartermaster/vault.key && \
             chown -R quartermaster-vault: /var/lib/quartermaster-vault",
        );
        mesh(&["init", "--servers", &broker.url(), "--box-key", box_key.trim()]);
        Some(Self { machine, broker, dir })
    }

    fn mesh(&self, line: &str) -> Output {
        let mut command = Command::new(BINARY);
        command.arg("mesh").args(line.split(' ')).arg("--site").arg(self.dir.path().join("mesh"));
        command.args(["--servers", &self.broker.url()]).current_dir(self.dir.path());
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Assigns a module of one file.
    fn assign(&self, name: &str, path: &str) {
        let folder: PathBuf = self.dir.path().join(name);
        std::fs::create_dir_all(folder.join("templates")).unwrap();
        std::fs::write(folder.join("templates/a"), "pw = ${secret:pw}\n").unwrap();
        let module = format!(
            r#"{{"files":[{{"path":"{path}","template":"a","owner-at-runtime":"owned","owner":"nobody","mode":"0600"}}],
              "secrets":[{{"name":"pw"}}]}}"#
        );
        std::fs::write(folder.join("module.json"), module).unwrap();
        text_of(
            &self.mesh(&format!(
                "assign web1 {name} --module {name}/module.json --templates {name}/templates"
            )),
        );
    }

    /// Gives a secret through the running vault, as root.
    fn set(&self, name: &str, value: &str) {
        self.machine.must(&format!("printf {value} | quartermaster vault set {name}"));
    }

    fn of(&self, unit: &str, property: &str) -> String {
        self.machine.must(&format!("systemctl show --value --property={property} {unit}")).trim().to_owned()
    }

    fn journal(&self, unit: &str, more: &str) -> String {
        self.machine.must(&format!("journalctl --no-pager --output=cat --unit={unit} {more}"))
    }

    /// Looks until the script succeeds; panics with what the units said when that takes too long.
    fn until(&self, what: &str, script: &str) {
        let script = format!("for i in $(seq 300); do if {script}; then exit 0; fi; sleep 0.1; done; exit 1");
        let done = self.machine.run(&script).status.success();
        let said = || UNITS.map(|unit| self.journal(unit, "| tail -n 15")).join("---\n");
        assert!(done, "not within half a minute: {what}\n{}", said());
    }
}

#[test]
fn the_node_sides_units_fill_a_file_and_go_on_after_a_stop_and_a_hang() {
    let Some(installed) = Installed::new() else { return };
    let machine = &installed.machine;
    machine.must("systemd-analyze verify --man=no quartermaster-engine.service quartermaster-node.service quartermaster-vault.service");
    assert!(
        !machine.run("systemctl is-enabled quartermaster-node").status.success(),
        "nothing starts by itself"
    );
    // The node's unit wants the engine's.
    machine.must("systemctl start quartermaster-vault quartermaster-node");
    for unit in UNITS {
        assert_eq!(installed.of(unit, "ActiveState"), "active", "{}", installed.journal(unit, ""));
    }
    installed.set("own/forge/pw", "first");
    installed.assign("forge", "/etc/forge/app.ini");
    installed.until("the file is filled", "grep -qx 'pw = first' /etc/forge/app.ini");
    assert_eq!(machine.must("stat -c '%U %a' /etc/forge/app.ini"), "nobody 600\n");
    installed.until(
        "the service manager is told",
        "systemctl show --value -p StatusText quartermaster-node | grep -qx '1 of 1 modules applied'",
    );

    // Each is who it should be, may do no more than it must, and leaves no core file.
    let limits = |unit: &str| {
        let pid = installed.of(unit, "MainPID");
        machine.must(&format!("ps -o user:32= -p {pid}; grep CapEff /proc/{pid}/status; grep -c 'core file size *1 ' /proc/{pid}/limits"))
    };
    assert_eq!(limits("quartermaster-node"), "mesh-provisioner-client\nCapEff:\t0000000000000000\n1\n");
    assert_eq!(limits("quartermaster-vault"), "quartermaster-vault\nCapEff:\t0000000000000000\n1\n");
    assert_eq!(limits("quartermaster-engine"), "root\nCapEff:\t000000000000002b\n1\n");
    for file in ["/etc/quartermaster/engine.creds", "/etc/quartermaster/vault.key", "/etc/forge/app.ini"] {
        let read = format!(
            "setpriv --reuid mesh-provisioner-client --regid mesh-provisioner-client --init-groups cat {file}"
        );
        assert!(!machine.run(&read).status.success(), "{file}");
    }
    assert_eq!(
        machine.must("stat -c '%U %G %a' /run/nox-mesh-host /run/nox-mesh-host/fill.sock /var/lib/mesh-provisioner-client /var/lib/quartermaster-engine /var/lib/quartermaster-vault"),
        "root root 755\nroot mesh-provisioner-client 660\nmesh-provisioner-client mesh-provisioner-client 700\nroot root 700\n\
         quartermaster-vault quartermaster-vault 700\n"
    );

    // C74: a target that the unit has not opened is named, and a line in the unit opens it.
    machine.must("mkdir -p /srv/www && echo 'ROOTS=--root /etc --root /srv/www' >> /etc/default/quartermaster-node && systemctl restart quartermaster-engine");
    installed.until(
        "the engine says which root",
        "journalctl --priority=warning --unit=quartermaster-engine | \
         grep 'nothing can be written below this root' | grep -q 'root=/srv/www'",
    );
    installed.set("own/site/pw", "site");
    installed.assign("site", "/srv/www/site.conf");
    installed.until(
        "the warning names the path",
        "journalctl --priority=warning --unit=quartermaster-node | grep 'host=web1 module=site' | grep '/srv/www/site.conf' | grep -q 'Read-only file system'",
    );
    let report = text_of(&installed.mesh("report web1 site"));
    assert!(report.contains("/srv/www/site.conf") && report.contains("Read-only file system"), "{report}");
    machine.must(
        "mkdir -p /run/systemd/system/quartermaster-engine.service.d && printf '[Service]\\nReadWritePaths=/srv/www\\n' \
         > /run/systemd/system/quartermaster-engine.service.d/open.conf && systemctl daemon-reload && systemctl restart quartermaster-engine",
    );

    // Stopped and started, in order, with a change meanwhile.
    machine.must("systemctl stop quartermaster-node quartermaster-engine quartermaster-vault");
    for unit in UNITS {
        let ended = (installed.of(unit, "Result"), installed.of(unit, "ExecMainStatus"));
        assert_eq!(ended, ("success".to_owned(), "0".to_owned()), "{}", installed.journal(unit, ""));
    }
    machine.must("echo edited > /etc/forge/app.ini");
    machine.must("systemctl start quartermaster-vault quartermaster-engine quartermaster-node");
    installed.until("the edit is put back", "grep -qx 'pw = first' /etc/forge/app.ini");
    installed.until("what was opened is written", "grep -qx 'pw = site' /srv/www/site.conf");

    // One that hangs as a whole is ended and started again, and goes on.
    machine.must(
        "mkdir -p /run/systemd/system/quartermaster-node.service.d && printf '[Service]\\nWatchdogSec=6s\\nRestartSec=100ms\\n' \
         > /run/systemd/system/quartermaster-node.service.d/soon.conf && systemctl daemon-reload && systemctl restart quartermaster-node && \
         kill -STOP $(systemctl show --value -p MainPID quartermaster-node)",
    );
    installed.until(
        "it is started again",
        "test $(systemctl show --value -p NRestarts quartermaster-node) -ge 1 && systemctl is-active quartermaster-node >/dev/null",
    );
    installed.set("own/forge/pw", "second");
    installed.until("the new value is written", "grep -qx 'pw = second' /etc/forge/app.ini");
    let said = installed.journal("quartermaster-node", "");
    assert!(said.contains("atchdog timeout") && !said.contains("dumped core"), "{said}");
    for unit in UNITS {
        assert!(!installed.journal(unit, "").contains("core files cannot be"), "{unit}");
    }
}

/// Started before it was configured, each says what is missing and is not tried again.
#[test]
fn units_that_nobody_has_configured_say_so_once() {
    let Some(package) = package() else { return };
    let Some(machine) = Machine::boot() else { return };
    machine.must(&format!("dpkg --install --force-depends {}", package.display()));
    // The engine's first, whose lines start the journal of the box.
    for (unit, says, state) in [
        ("engine", "'--pin <NKEY>': a public key", "0 failed"),
        ("vault", "(ConditionPathExists=/etc/quartermaster/mesh-vault)", "0 inactive"),
        ("node", "(ConditionPathExists=/etc/quartermaster/provisioner-broker)", "0 inactive"),
    ] {
        machine.run(&format!("systemctl start quartermaster-{unit}"));
        machine.until(says, &format!("journalctl --unit=quartermaster-{unit} | grep -qF \"{says}\""));
        let state_of = format!("systemctl show --value -p ActiveState -p NRestarts quartermaster-{unit}");
        assert_eq!(machine.must(&format!("{state_of} | sort | xargs")).trim(), state, "{unit}");
    }
}
