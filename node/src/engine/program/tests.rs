use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::*;

fn restart(unit: &str, start: bool) -> Program {
    Program::Restart { unit: unit.to_owned(), start }
}

fn reload(unit: &str, start: bool) -> Program {
    Program::Reload { unit: unit.to_owned(), start }
}

fn command(word: &str) -> Program {
    Program::Command(vec![word.to_owned()])
}

#[test]
fn a_unit_is_told_once_and_a_restart_makes_its_reload_needless() {
    let owed = [
        command("/c"),
        reload("a.service", false),
        reload("b.service", true),
        restart("a.service", false),
        restart("c.service", false),
        reload("b.service", false),
        command("/c"),
    ];
    assert_eq!(
        in_order(&owed),
        [restart("a.service", false), restart("c.service", false), reload("b.service", true), command("/c"),]
    );
}

fn script(folder: &Path, name: &str, body: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_command_runs_without_shell_and_environment() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let path = script(
        folder.path(),
        "tell",
        &format!("env | grep -v '^PWD\\|^_\\|^SHLVL' > {0}; echo \"$1\" >> {0}", out.display()),
    );
    let commands = Commands::below(folder.path().to_owned());
    assert_eq!(commands.run(&[path, "a; $b".to_owned()]).await, Told::Done);
    assert_eq!(fs::read_to_string(&out).unwrap(), "a; $b\n");
}

#[tokio::test]
async fn a_command_that_is_just_being_written_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(folder.path(), "tell", "exit 0");
    let commands = Commands::below(folder.path().to_owned());
    let open = || fs::OpenOptions::new().append(true).open(&path).unwrap();
    let writer = open();
    let soon = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(writer);
    };
    let (told, ()) = tokio::join!(commands.run(std::slice::from_ref(&path)), soon);
    assert_eq!(told, Told::Done);
    // One that stays open is told as what it is.
    let _writer = open();
    let told = commands.run(std::slice::from_ref(&path)).await;
    assert!(matches!(&told, Told::Failed(why) if why.contains("Text file busy")), "{told:?}");
}

#[tokio::test]
async fn only_commands_of_the_folder_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(folder.path(), "fails", "exit 3");
    let commands = Commands::below(folder.path().to_owned());
    let said = |told: Told| match told {
        Told::Failed(why) => why,
        other => panic!("{other:?}"),
    };
    assert!(said(commands.run(std::slice::from_ref(&path)).await).contains("exit status: 3"));
    for bad in [
        "/bin/sh",
        "fails",
        &format!("{}/../x", folder.path().display()),
        &format!("{}/a/b", folder.path().display()),
    ] {
        let why = said(commands.run(&[bad.to_owned()]).await);
        assert!(why.contains("folder of allowed") || why.contains("plain absolute"), "{bad}: {why}");
    }
    assert!(said(Commands::default().run(&[path]).await).contains("allows no commands"));
    assert!(said(commands.run(&[]).await).contains("empty"));
}

#[tokio::test]
async fn a_command_that_does_not_end_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let body = format!("sleep 600 &\necho $! > {}\nwait", pid_file.display());
    let path = script(folder.path(), "hangs", &body);
    let commands = Commands::below(folder.path().to_owned()).limited(Duration::from_secs(2));
    let told = commands.run(&[path]).await;
    assert_eq!(told, Told::Failed("it was still running after 2 s".to_owned()));
    let pid = fs::read_to_string(&pid_file).unwrap().trim().to_owned();
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !is_gone() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
