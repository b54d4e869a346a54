//! The web app where a service manager runs: a unit that does nothing but be restarted.

use std::process::{Command, Output, Stdio};

use super::surroundings::Manager;

/// A running unit. Dropped, it is stopped and gone.
#[derive(Debug)]
pub(super) struct Unit {
    name: String,
    manager: Manager,
}

impl Unit {
    /// Starts it; none where the manager does not let us.
    pub(super) fn start(manager: Manager) -> Option<Self> {
        let unit = Self { name: format!("quartermaster-demo-{}.service", std::process::id()), manager };
        let mut command = unit.command("systemd-run");
        command.args(["--quiet", "--collect", "--unit", &unit.name, "sleep", "3600"]);
        let is_started = command.output().is_ok_and(|output| output.status.success());
        is_started.then_some(unit)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What is another after each restart; none where it is not known.
    pub(super) fn life(&self) -> Option<String> {
        let mut command = self.command("systemctl");
        command.args(["show", "--property", "InvocationID", "--value", &self.name]);
        let Output { status, stdout, .. } = command.output().ok()?;
        let life = String::from_utf8_lossy(&stdout).trim().to_owned();
        (status.success() && !life.is_empty()).then_some(life)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if self.manager == Manager::User {
            command.arg("--user");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // Nothing is left to do where it is gone already.
        let _ = self.command("systemctl").args(["stop", &self.name]).output();
    }
}
