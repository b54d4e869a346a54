//! The box that the package is installed in.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::support::skip;
use super::shipped::{REPOSITORY, needs, run, text_of};

/// A machine within the machine, see `box.sh`; gone when dropped.
pub struct Machine {
    outside: Child,
    inside: u32,
    name: String,
    dir: TempDir,
}

impl Machine {
    /// Boots one; none where that cannot be done.
    pub fn boot() -> Option<Self> {
        if !needs("the service under systemd", &["unshare", "nsenter", "systemctl", "dpkg"]) {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            skip("the service under systemd", "only root can make name spaces and mounts");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let name = format!(
            "quartermaster-box-{}-{}",
            std::process::id(),
            dir.path().file_name()?.to_str()?.trim_start_matches('.')
        );
        let script = Path::new(REPOSITORY).join("tests/system/packaging/box.sh");
        let said = std::fs::File::create(dir.path().with_extension("said")).unwrap();
        let outside = Command::new("sh")
            .arg(script)
            .args(["enter", &name, dir.path().to_str()?, REPOSITORY])
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        let mut machine = Self { outside, inside: 0, name, dir };
        let end = Instant::now() + Duration::from_mins(1);
        while !machine.is_up() {
            if machine.outside.try_wait().unwrap().is_some() || Instant::now() > end {
                let said = std::fs::read_to_string(machine.dir.path().with_extension("said"));
                skip("the service under systemd", &format!("no box could be booted: {said:?}"));
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(machine)
    }

    fn is_up(&mut self) -> bool {
        let pid = self.outside.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let Ok(child) = children.trim().parse() else { return false };
        self.inside = child;
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "systemd")
            && self.run("systemctl is-system-running --wait").stdout.starts_with(b"running")
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "120", "nsenter", "-m", "-p", "-u", "-i", "-C", "-r", "-w", "-t"]);
        command.arg(self.inside.to_string()).args(["sh", "-c", script]);
        command
    }

    /// Runs a shell script inside, as root.
    pub fn run(&self, script: &str) -> Output {
        self.command(script).stdin(Stdio::null()).output().unwrap()
    }

    /// The same; panics when it fails.
    pub fn must(&self, script: &str) -> String {
        text_of(&self.run(script))
    }

    /// Puts a file inside, for root alone.
    pub fn put(&self, path: &str, text: &str) {
        use std::io::Write as _;
        let mut child = self.command(&format!("cat > {path}")).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{path}");
    }

    /// What the service manager and the service said.
    pub fn journal(&self) -> String {
        self.must("journalctl --no-pager --output=cat --unit=quartermaster")
    }

    /// One property of the service.
    pub fn property(&self, name: &str) -> String {
        self.must(&format!("systemctl show --value --property={name} quartermaster")).trim().to_owned()
    }

    /// Looks until the script succeeds; panics with the journal when that takes too long.
    pub fn until(&self, what: &str, script: &str) {
        let end = Instant::now() + Duration::from_mins(1);
        while !self.run(script).status.success() {
            assert!(Instant::now() < end, "not within a minute: {what}\n{}", self.journal());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.outside.kill();
        let _ = self.outside.wait();
        let script = Path::new(REPOSITORY).join("tests/system/packaging/box.sh");
        let end = Instant::now() + Duration::from_secs(10);
        while Path::new(&format!("/proc/{}", self.inside)).exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = std::fs::remove_file(self.dir.path().with_extension("said"));
        drop(run("sh", &[script.to_str().unwrap(), "clean", &self.name]));
    }
}
