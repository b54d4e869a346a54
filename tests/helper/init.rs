//! As process 1 of a container: signals reach the child, orphans are reaped, the child's status is ours.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::support::skip;

const LIMIT: Duration = Duration::from_mins(1);

/// False, with a line, where processes may not be given a world of their own.
fn may_be_first() -> bool {
    let output = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => skip(&format!("unshare: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => skip(&format!("unshare: {error}")),
    }
}

/// `quartermaster helper test` as process 1 of its own world, with this helper.
fn as_first(folder: &Path, helper: &str) -> World {
    let script = folder.join("helper");
    fs::write(&script, format!("#!/bin/sh\n{helper}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("c.yaml"), format!("helper: {}\nhelper_timeout: 60s\n", script.display())).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["helper", "test", "--identity", "a", "--config"])
        .arg(folder.join("c.yaml"))
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("out")).unwrap());
    World(command.spawn().unwrap())
}

/// A whole world of processes, which ends with this value.
struct World(Child);

impl World {
    /// Waits for its end; the limit is only there so that a failing test ends.
    fn wait(&mut self) -> ExitStatus {
        let limit = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < limit, "process 1 has not ended");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a file that the helper makes; the limit is only there so that a failing test ends.
fn await_file(file: &Path) -> String {
    let limit = Instant::now() + LIMIT;
    loop {
        match fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => assert!(Instant::now() < limit, "no {}", file.display()),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn orphans_are_reaped_and_the_status_is_the_childs() {
    if !may_be_first() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let seen = folder.path().join("seen");
    // It leaves a hundred orphans that exit at once, waits for a sign that they have, and lists what is defunct. $PPID is the
    // provisioner, its parent the init.
    let helper = format!(
        "for n in $(seq 50); do (true &); (setsid true &); done\n\
         for n in $(seq 100); do dead=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '); test $dead = 0 && break; sleep 0.1; done\n\
         echo $dead $(cut -d' ' -f4 /proc/$PPID/stat) $(cat /proc/1/comm) > {}\n\
         exit 3",
        seen.display()
    );
    let mut world = as_first(folder.path(), &helper);
    assert_eq!(world.wait().code(), Some(6), "the exit code of the verb");
    assert_eq!(await_file(&seen), "0 1 quartermaster\n");
    let text = fs::read_to_string(folder.path().join("out")).unwrap();
    assert!(text.contains("exited with status 3"), "{text}");
}

#[test]
fn a_signal_reaches_the_child_once_and_its_end_is_ours() {
    if !may_be_first() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let started = folder.path().join("started");
    let mut world = as_first(folder.path(), &format!("echo yes > {}; sleep 600", started.display()));
    await_file(&started);
    // unshare's child is process 1 of the new world; here it has another number.
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", world.0.id())).unwrap();
    let first = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(first, Signal::TERM).unwrap();
    let status = world.wait();
    assert_eq!(status.code().or(status.signal()), Some(128 + 15), "{status:?}");
    // The world ends with its first process, the sleeping helper too.
    let helper = folder.path().join("helper");
    let limit = Instant::now() + LIMIT;
    let alive = || {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(helper.to_str().unwrap()))
        })
    };
    while alive() {
        assert!(Instant::now() < limit);
        std::thread::sleep(Duration::from_millis(10));
    }
}
