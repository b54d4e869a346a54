//! What the package holds, and what its own tools say about it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use quartermaster::emulate::{PrepareSettings, prepare};

use super::super::support::{BrokerOptions, Daemon, append, eventually, skip};
use super::shipped::{REPOSITORY, debian_tool, has, needs, package, run, text_of, unpacked};

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn shipped(path: &str) -> String {
    read(Path::new(REPOSITORY).join("packaging").join(path))
}

/// All units.
const UNITS: [&str; 4] = [
    "quartermaster.service",
    "quartermaster-engine.service",
    "quartermaster-node.service",
    "quartermaster-vault.service",
];

/// Values of a key of a unit, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let assigned = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    assigned.collect()
}

#[test]
fn the_package_holds_program_units_pages_and_completions() {
    let Some(tree) = unpacked() else { return };
    let modes = [
        ("usr/bin/quartermaster", 0o755),
        ("usr/lib/systemd/system/quartermaster.service", 0o644),
        ("usr/lib/systemd/system/quartermaster-engine.service", 0o644),
        ("usr/lib/systemd/system/quartermaster-node.service", 0o644),
        ("usr/lib/systemd/system/quartermaster-vault.service", 0o644),
        ("usr/lib/sysusers.d/quartermaster.conf", 0o644),
        ("usr/lib/tmpfiles.d/quartermaster.conf", 0o644),
        ("etc/quartermaster/provisioner.yaml", 0o640),
        ("etc/quartermaster/choria.cfg", 0o640),
        ("etc/default/quartermaster", 0o644),
        ("etc/default/quartermaster-node", 0o644),
        ("etc/default/quartermaster-vault", 0o644),
        ("etc/logrotate.d/quartermaster", 0o644),
        ("usr/share/man/man1/quartermaster.1.gz", 0o644),
        ("usr/share/man/man1/quartermaster-run.1.gz", 0o644),
        ("usr/share/bash-completion/completions/quartermaster", 0o644),
        ("usr/share/zsh/vendor-completions/_quartermaster", 0o644),
        ("usr/share/fish/vendor_completions.d/quartermaster.fish", 0o644),
        ("usr/share/doc/quartermaster/operations.md", 0o644),
        ("usr/share/doc/quartermaster/copyright", 0o644),
        ("DEBIAN/postinst", 0o755),
        ("DEBIAN/prerm", 0o755),
        ("DEBIAN/postrm", 0o755),
    ];
    for (path, mode) in modes {
        let found = fs::metadata(tree.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(format!("{:o}", found.permissions().mode() & 0o7777), format!("{mode:o}"), "{path}");
    }
    let conffiles = read(tree.join("DEBIAN/conffiles"));
    let conffiles: BTreeSet<&str> = conffiles.lines().collect();
    let edited = [
        "/etc/default/quartermaster",
        "/etc/default/quartermaster-node",
        "/etc/default/quartermaster-vault",
        "/etc/logrotate.d/quartermaster",
        "/etc/quartermaster/choria.cfg",
        "/etc/quartermaster/provisioner.yaml",
    ];
    assert_eq!(
        conffiles,
        BTreeSet::from(edited),
        "an upgrade asks before it replaces what a site has edited"
    );
    let listed = text_of(&run("dpkg-deb", &["-c", package().unwrap().to_str().unwrap()]));
    assert!(listed.lines().all(|line| line.split_whitespace().nth(1) == Some("0/0")), "{listed}");
}

#[test]
fn the_units_are_ones_that_systemd_understands() {
    let Some(tree) = unpacked() else { return };
    if !needs("the unit's check", &["systemd-analyze"]) {
        return;
    }
    // The programs it starts have to be where it says, so the package stands in for the root.
    fs::create_dir_all(tree.join("bin")).unwrap();
    fs::copy("/bin/true", tree.join("bin/kill")).unwrap();
    let root = format!("--root={}", tree.display());
    let verified = run(
        "systemd-analyze",
        &[&["verify", "--man=no", "--recursive-errors=no", &root], &UNITS[..]].concat(),
    );
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<_> = said.lines().filter(|line| line.contains("quartermaster")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
}

#[test]
fn the_units_are_hardened_as_far_as_their_work_allows() {
    let Some(tree) = unpacked() else { return };
    if !needs("the unit's check", &["systemd-analyze"]) {
        return;
    }
    // 0 is nothing exposed, 100 everything. What remains is the network, an account of the machine's, and memory that
    // helpers in compiling languages need; of the engine that it is root and writes other accounts' files.
    for (unit, most) in UNITS.into_iter().zip(["20", "26", "17", "17"]) {
        let path = tree.join("usr/lib/systemd/system").join(unit);
        let threshold = format!("--threshold={most}");
        let judged = run(
            "systemd-analyze",
            &["security", "--offline=yes", &threshold, "--no-pager", path.to_str().unwrap()],
        );
        assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
    }
}

#[test]
fn the_unit_says_what_the_service_manager_has_to_know() {
    let unit = shipped("systemd/quartermaster.service");
    for (key, expected) in [
        ("Type", "notify"),
        ("KillMode", "mixed"),
        ("Restart", "on-failure"),
        ("RestartPreventExitStatus", "2 3 4"),
        ("User", "quartermaster"),
        ("ProtectSystem", "strict"),
        ("NoNewPrivileges", "yes"),
        ("StateDirectory", "quartermaster"),
        ("LogsDirectory", "quartermaster"),
        ("RuntimeDirectory", "quartermaster"),
        ("OOMPolicy", "continue"),
    ] {
        assert_eq!(values(&unit, key), [expected], "{key}");
    }
    assert_eq!(values(&unit, "WatchdogSec"), ["90s"], "longer than the process's own patience of a minute");
    // What a helper may need is told where an operator looks first.
    for opened in [
        "ReadWritePaths=",
        "ProtectHome=",
        "NoNewPrivileges=no",
        "RestrictAddressFamilies=",
        "DeviceAllow=",
        "PrivateTmp=no",
    ] {
        assert!(unit.lines().any(|line| line.starts_with('#') && line.contains(opened)), "{opened}");
    }
}

#[test]
fn accounts_and_folders_are_made_as_the_unit_expects_them() {
    let Some(tree) = unpacked() else { return };
    if !needs("accounts and folders", &["systemd-sysusers", "systemd-tmpfiles"]) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("etc")).unwrap();
    let at = format!("--root={}", root.path().display());
    let file = |name: &str| tree.join("usr/lib").join(name).to_str().unwrap().to_owned();
    text_of(&run("systemd-sysusers", &[&at, &file("sysusers.d/quartermaster.conf")]));
    let accounts = read(root.path().join("etc/passwd"));
    for home in ["mesh-provisioner-client", "quartermaster-vault"] {
        assert!(accounts.contains(&format!(":/var/lib/{home}:/usr/sbin/nologin")), "{accounts}");
    }
    let account = accounts.lines().find(|line| line.starts_with("quartermaster:")).unwrap();
    assert!(account.ends_with(":/var/lib/quartermaster:/usr/sbin/nologin"), "{accounts}");
    if !rustix::process::geteuid().is_root() {
        return skip("the folders' owners", "only root can give files away");
    }
    text_of(&run("systemd-tmpfiles", &[&at, "--create", &file("tmpfiles.d/quartermaster.conf")]));
    let look = format!(
        "cd {} && stat -c '%a %u %g %n' etc/quartermaster var/lib/quartermaster var/log/quartermaster",
        root.path().display()
    );
    let found = text_of(&run("sh", &["-c", &look]));
    let id = account.split(':').nth(2).unwrap();
    let expected = format!(
        "750 0 {id} etc/quartermaster\n700 {id} {id} var/lib/quartermaster\n750 {id} {id} var/log/quartermaster\n"
    );
    assert_eq!(found, expected);
}

#[test]
fn logrotate_understands_its_rules() {
    let Some(logrotate) = debian_tool("logrotate", "logrotate", &["libpopt0"]) else { return };
    // The account of the rules is not on this machine before the package is.
    let rules = shipped("logrotate")
        .replace("quartermaster-vault quartermaster-vault", "root root")
        .replace("quartermaster quartermaster", "root root");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules");
    fs::write(&path, rules).unwrap();
    let tried = run(logrotate, &["--debug", "--state", "/dev/null", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&tried.stderr);
    assert!(tried.status.success() && !said.contains("error:"), "{said}");
}

#[test]
fn the_shipped_files_have_only_the_gaps_that_a_site_has_to_fill() {
    let Some(tree) = unpacked() else { return };
    let file = |name: &str| tree.join("etc/quartermaster").join(name).to_str().unwrap().to_owned();
    let checked = std::process::Command::new(super::shipped::BINARY)
        .args([
            "check",
            "--json",
            "--config",
            &file("provisioner.yaml"),
            "--choria-config",
            &file("choria.cfg"),
        ])
        .env("USER", "quartermaster")
        .output()
        .unwrap();
    assert_eq!(
        checked.status.code(),
        Some(3),
        "a service that was not configured is not started again and again"
    );
    let answer: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    let faults = answer["faults"].as_array().unwrap();
    let of_yaml = faults
        .iter()
        .filter(|fault| fault["file"].as_str().is_some_and(|file| file.contains("provisioner.yaml")));
    let of_yaml: Vec<_> = of_yaml.filter(|fault| fault["key"] != "logfile").collect();
    assert!(of_yaml.is_empty(), "{of_yaml:?}");
    let errors = faults.iter().filter(|fault| fault["severity"] == "error" && fault["kind"] == "config");
    assert!(errors.clone().any(|fault| fault["key"] == "helper"), "{faults:?}");
}

#[test]
fn shells_accept_the_completions_and_man_the_pages() {
    let Some(tree) = unpacked() else { return };
    let bash = tree.join("usr/share/bash-completion/completions/quartermaster");
    let asks = format!(
        "source {} && COMP_WORDS=(quartermaster ru) COMP_CWORD=1 && _quartermaster quartermaster ru quartermaster && echo ${{COMPREPLY[*]}}",
        bash.display()
    );
    assert_eq!(text_of(&run("bash", &["-c", &asks])).trim(), "run");
    for (shell, script) in [
        ("zsh", "zsh/vendor-completions/_quartermaster"),
        ("fish", "fish/vendor_completions.d/quartermaster.fish"),
    ] {
        let path = tree.join("usr/share").join(script);
        assert!(read(&path).contains("quartermaster"), "{script}");
        if has(shell) {
            text_of(&run(shell, &["-n", path.to_str().unwrap()]));
        }
    }
    let pages = tree.join("usr/share/man/man1");
    let verbs = text_of(&run(super::shipped::BINARY, &["--help"]));
    let verbs = verbs.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    for verb in verbs
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
    {
        assert!(pages.join(format!("quartermaster-{verb}.1.gz")).exists(), "no page for {verb}");
    }
    if has("groff") {
        for page in fs::read_dir(&pages).unwrap() {
            let page = page.unwrap().path();
            let formatted =
                run("sh", &["-c", &format!("gzip -dc {} | groff -man -Tutf8 -ww -z 2>&1", page.display())]);
            assert_eq!(text_of(&formatted), "", "{}", page.display());
        }
    }
}

#[actix::test]
async fn the_images_health_check_asks_a_running_instance() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings =
        PrepareSettings { broker: format!("127.0.0.1:{}", broker.port()), ..PrepareSettings::default() };
    let files = prepare(dir.path(), &settings).unwrap().plain;
    append(&files.config, "listen: 127.0.0.1:0\n");
    let mut daemon = Daemon::start(&files);
    daemon.listens().await;
    let asks = |port: u16| {
        let check = Path::new(REPOSITORY).join("packaging/docker/healthcheck");
        let mut command = std::process::Command::new(check);
        command.env("QM_HEALTH_PORT", port.to_string()).output().unwrap().status.success()
    };
    eventually("it is healthy", || asks(daemon.web_port().unwrap())).await;
    let port = daemon.web_port().unwrap();
    daemon.signal(rustix::process::Signal::TERM);
    assert!(daemon.ended().await.success());
    assert!(!asks(port), "nobody answers there any more");
}

#[test]
fn the_image_is_without_root_and_begins_with_the_program() {
    let lines = shipped("docker/Dockerfile").replace("\\\n", " ");
    let said = |word: &str| -> Vec<String> {
        let found = lines.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        found.map(str::to_owned).collect()
    };
    assert_eq!(said("FROM").len(), 2, "what builds is not shipped");
    assert_eq!(said("USER"), ["8322:8322"]);
    assert_eq!(
        said("ENTRYPOINT"),
        [r#"["/usr/bin/quartermaster"]"#],
        "without a shell in between that keeps signals"
    );
    assert_eq!(said("STOPSIGNAL"), ["SIGTERM"]);
    let toolchain = read(Path::new(REPOSITORY).join("rust-toolchain.toml"));
    let version = said("FROM").remove(0).split([':', '-']).nth(1).unwrap().to_owned();
    assert!(toolchain.contains(&version), "{version} is not the toolchain of {toolchain}");
    // Everything that is copied is in what the build sees.
    let ignored = read(Path::new(REPOSITORY).join(".dockerignore"));
    assert!(ignored.lines().all(|line| ["target", ".cache", ".git"].contains(&line)), "{ignored}");
}
