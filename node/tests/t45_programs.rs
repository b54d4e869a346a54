//! T45: programs are told once of what changed, by a real service manager where one can be run, and what is owed to them outlives
//! an engine.

#![cfg(test)]

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use quartermaster_node::engine::program::{Commands, Machine, Program, Runner as _, Told};
use quartermaster_proto::mesh::report::{Action, ProgramResult};
use rustix::process::Signal;
use support::engine::{Engine, run_if_asked, until};

mod support;

const ENGINE: &str = "is_an_engine_where_it_is_started_as_one";
/// The folder of units, where this process runs beside a service manager of its own.
const UNITS: &str = "QM_TEST_UNITS";

#[test]
fn is_an_engine_where_it_is_started_as_one() {
    run_if_asked();
}

fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn t45_what_is_owed_to_a_program_is_made_up_for_by_the_next_life_of_a_killed_engine() {
    let mut engine = Engine::new();
    let (command, log, go) = (engine.at("commands/tell"), engine.at("log"), engine.at("go"));
    // It is told, and does not end before it may.
    script(
        &command,
        &format!("echo told >> {}; while [ ! -e {} ]; do sleep 0.02; done", log.display(), go.display()),
    );
    let members =
        format!(r#""owner-at-runtime":"owned","on-change":{{"command":["{}"]}}"#, command.display());
    let plan = engine.declare("forge", &engine.file("a", &members));
    engine.start(ENGINE);
    let stream = engine.send("forge", plan, vec![engine.filled("a", b"new")]);
    let told = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    until("the program is told", || told() == 1);
    // The file is in its place, and its program has not taken it.
    assert_eq!(fs::read(engine.path("a")).unwrap(), b"new");
    engine.end(Signal::KILL);
    drop(stream);
    fs::write(&go, "").unwrap();
    engine.start(ENGINE);
    until("the program is told by the next life", || told() == 2);
    // And not once more: nothing changed since.
    let written = engine.write("forge", plan, vec![engine.filled("a", b"new")]);
    assert_eq!(written.files[0].action, Some(Action::Unchanged));
    assert_eq!(told(), 2);
}

#[test]
fn t45_two_files_of_one_program_tell_it_once_and_a_failure_is_tried_again() {
    let mut engine = Engine::new();
    let (command, log, ok) = (engine.at("commands/tell"), engine.at("log"), engine.at("ok"));
    script(&command, &format!("echo told >> {}; test -e {}", log.display(), ok.display()));
    let members =
        format!(r#""owner-at-runtime":"owned","on-change":{{"command":["{}"]}}"#, command.display());
    let files = [engine.file("a", &members), engine.file("b", &members)];
    let plan = engine.declare("forge", &files.join(","));
    engine.start(ENGINE);
    let both = || vec![engine.filled("a", b"1"), engine.filled("b", b"2")];
    let told = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let written = engine.write("forge", plan, both());
    assert_eq!(written.programs.len(), 1, "{written:?}");
    assert!(matches!(written.programs[0].result, ProgramResult::Failed), "{written:?}");
    assert_eq!(told(), 1);
    fs::write(&ok, "").unwrap();
    let written = engine.write("forge", plan, both());
    assert!(written.files.iter().all(|file| file.action == Some(Action::Unchanged)), "{written:?}");
    assert!(matches!(written.programs[0].result, ProgramResult::Done), "{written:?}");
    let written = engine.write("forge", plan, both());
    assert!(written.programs.is_empty() && told() == 2, "{written:?}");
}

/// Starts a service manager of its own with its own bus, in namespaces and a control group of its own, and this program beside
/// it. Exit code 99: that cannot be done here.
const BESIDE: &str = r#"
set -u
dir=$1 program=$2 test=$3
mount -t tmpfs tmpfs /run 2>"$dir/why" && mkdir -p /run/systemd/system || exit 99
export XDG_RUNTIME_DIR=$dir/run DBUS_SESSION_BUS_ADDRESS=unix:path=$dir/run/bus SYSTEMD_LOG_TARGET=console
export XDG_CONFIG_HOME=$dir/config HOME=$dir
dbus-daemon --session --address="$DBUS_SESSION_BUS_ADDRESS" --nofork --nopidfile --nosyslog 2>/dev/null &
at=0; while [ ! -S "$dir/run/bus" ]; do at=$((at + 1)); [ $at -lt 200 ] || exit 99; sleep 0.05; done
/usr/lib/systemd/systemd --user --unit=basic.target >"$dir/why" 2>&1 &
at=0
while [ "$(systemctl --user is-active basic.target 2>/dev/null)" != active ]; do
    at=$((at + 1)); [ $at -lt 200 ] || exit 99; sleep 0.05
done
systemctl --user start qm-runs.service || exit 99
"$program" --exact "$test" --nocapture || exit 1
# And where the bus is away: systemctl finds the manager's own socket.
DBUS_SESSION_BUS_ADDRESS=unix:path=$dir/nobody "$program" --exact "$test" --nocapture || exit 1
"#;

/// The control groups of this process, in each hierarchy that systemd uses to follow its units.
fn groups() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of = |head: &str, root: &str| {
        let path = own.lines().find_map(|line| line.split_once(head))?.1.trim_start_matches('/').to_owned();
        let folder = Path::new(root).join(path);
        folder.join("cgroup.procs").exists().then_some(folder)
    };
    let all = [
        of(":name=systemd:", "/sys/fs/cgroup/systemd"),
        of("0::", "/sys/fs/cgroup/unified"),
        of("0::", "/sys/fs/cgroup"),
    ];
    all.into_iter().flatten().collect()
}

/// Control groups of a test's own, removed when dropped.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn new() -> Option<Self> {
        let name = format!("qm-test-{}", std::process::id());
        let made: Vec<_> = groups().into_iter().map(|folder| folder.join(&name)).collect();
        let groups = Self(made);
        (!groups.0.is_empty() && groups.0.iter().all(|folder| fs::create_dir(folder).is_ok()))
            .then_some(groups)
    }
}

fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

impl Drop for Groups {
    fn drop(&mut self) {
        // What ran in them was killed with its namespace, which takes a moment.
        for _ in 0..100 {
            self.0.iter().for_each(|folder| remove(folder));
            if self.0.iter().all(|folder| !folder.exists()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn t45_units_of_a_real_service_manager_are_told() {
    let skip = |why: &str| eprintln!("SKIPPED: no service manager can be run here: {why}");
    let Some(groups) = Groups::new() else { return skip("control groups cannot be made") };
    let dir = tempfile::tempdir().unwrap();
    let units = dir.path().join("config/systemd/user");
    fs::create_dir_all(&units).unwrap();
    fs::create_dir(dir.path().join("run")).unwrap();
    fs::set_permissions(dir.path().join("run"), fs::Permissions::from_mode(0o700)).unwrap();
    let at = dir.path().display();
    let runs = format!(
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStartPre=/bin/sh -c 'echo started >> {at}/log; test ! -e {at}/fails'\nExecStart=/bin/sleep 1000\nExecReload=/bin/sh -c 'echo reloaded >> {at}/log'\n"
    );
    fs::write(units.join("qm-runs.service"), &runs).unwrap();
    fs::write(units.join("qm-stopped.service"), runs).unwrap();
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let join: Vec<_> = groups
        .0
        .iter()
        .map(|folder| format!("echo $$ > {}/cgroup.procs || exit 99", folder.display()))
        .collect();
    let script = format!("{}\n{BESIDE}", join.join("\n"));
    let ran = command
        .args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "sh", "-c", &script, "sh"])
        .arg(dir.path())
        .arg(env::current_exe().unwrap())
        .arg("units_are_told_beside_a_service_manager")
        .env(UNITS, dir.path())
        .stdin(Stdio::null())
        .output();
    let Ok(ran) = ran else { return skip("there is no unshare") };
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    let why = fs::read_to_string(dir.path().join("why")).unwrap_or_default();
    match ran.status.code() {
        Some(0) => assert_eq!(said.matches("1 passed").count(), 2, "{said}"),
        Some(99) => skip(why.lines().chain(said.lines()).last().unwrap_or("it does not come up")),
        // Neither the namespaces nor the mount may be allowed.
        _ if !said.contains("running 1 test") => skip(said.lines().last().unwrap_or("no namespaces")),
        code => panic!("{code:?}: {said}\n{why}"),
    }
}

/// Runs beside the service manager that the test above starts.
#[tokio::test]
async fn units_are_told_beside_a_service_manager() {
    let Some(dir) = env::var_os(UNITS).map(PathBuf::from) else { return };
    let machine = Machine { commands: Commands::default(), is_user: true };
    let restart = |unit: &str, start| Program::Restart { unit: format!("{unit}.service"), start };
    let reload = |unit: &str, start| Program::Reload { unit: format!("{unit}.service"), start };
    let log = || {
        fs::read_to_string(dir.join("log")).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let is_active = |unit: &str| {
        let asked = Command::new("systemctl").args(["--user", "is-active", unit]).output().unwrap();
        String::from_utf8_lossy(&asked.stdout).trim() == "active"
    };
    let _ = fs::remove_file(dir.join("log"));
    assert_eq!(machine.tell(restart("qm-runs", false)).await, Told::Done);
    assert_eq!(log(), ["started"]);
    assert_eq!(machine.tell(reload("qm-runs", false)).await, Told::Done);
    assert_eq!(log(), ["started", "reloaded"]);
    // A unit that does not run is not started, unless that is asked for.
    assert_eq!(machine.tell(restart("qm-stopped", false)).await, Told::Done);
    assert_eq!(machine.tell(reload("qm-stopped", false)).await, Told::Done);
    assert!(!is_active("qm-stopped"));
    assert_eq!(machine.tell(reload("qm-stopped", true)).await, Told::Done);
    assert!(is_active("qm-stopped"));
    Command::new("systemctl").args(["--user", "stop", "qm-stopped"]).status().unwrap();
    // One that fails is told so, and is told again.
    fs::write(dir.join("fails"), "").unwrap();
    let failed = machine.tell(restart("qm-runs", false)).await;
    assert!(matches!(failed, Told::Failed(_)), "{failed:?}");
    fs::remove_file(dir.join("fails")).unwrap();
    assert_eq!(machine.tell(restart("qm-runs", true)).await, Told::Done);
    assert!(is_active("qm-runs"));
    let unknown = machine.tell(restart("qm-nobody", true)).await;
    assert!(matches!(unknown, Told::Failed(_)), "{unknown:?}");
}
