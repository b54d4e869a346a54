//! The built binary as a person, a script and a service manager meet it: exit codes, closed streams, names.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_quartermaster");

/// A folder with the two files of a site, and a binary to run on them.
struct Site {
    folder: tempfile::TempDir,
}

const YAML: &str =
    "helper: FOLDER/helper --site london\ntoken: s3cret-token\nbroker_provisioning_password: s3cret-pass\n";
const CFG: &str = "identity = prov.example.net\nplugin.choria.middleware_hosts = 127.0.0.1:1\n\
                   plugin.security.provider = file\nplugin.security.file.certificate = FOLDER/cert.pem\n\
                   plugin.security.file.key = FOLDER/key.pem\nplugin.security.file.ca = FOLDER/ca.pem\n";

/// A certificate that is its own authority, and its RSA key: made once, since RSA takes its time.
static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["prov.example.net".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
});

impl Site {
    /// A site whose files are as given; `FOLDER` stands for its folder. Helper, keys and certificates exist.
    fn new(yaml: &str, cfg: &str) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        let inside = |text: &str| text.replace("FOLDER", site.folder.path().to_str().unwrap());
        site.write("p.yaml", &inside(yaml), 0o640);
        site.write("choria.cfg", &inside(cfg), 0o640);
        site.write("helper", "#!/bin/sh\ncat\n", 0o755);
        let (certificate, key) = &*CERTIFICATE;
        for (name, text) in [("cert.pem", certificate), ("ca.pem", certificate), ("key.pem", key)] {
            site.write(name, text, 0o600);
        }
        site
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary in this folder with a bare environment and nothing on its streams.
    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", "/nonexistent").env("USER", "prov");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(Path::new(BINARY), arguments).output().unwrap()
    }

    fn check(&self, more: &[&str]) -> Output {
        self.run(&[&["check", "--config", "p.yaml", "--choria-config", "choria.cfg"], more].concat())
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn code(output: &Output, expected: i32) {
    assert_eq!(
        output.status.code(),
        Some(expected),
        "stdout:\n{}\nstderr:\n{}",
        stdout(output),
        stderr(output)
    );
}

/// Runs `check` on a changed file and expects an exit code and words in what is said.
#[track_caller]
fn checked(yaml: &str, cfg: &str, exit: i32, words: &[&str]) {
    let output = Site::new(yaml, cfg).check(&[]);
    code(&output, exit);
    for word in words {
        assert!(stdout(&output).contains(word), "{word} is missing in:\n{}", stdout(&output));
    }
}

#[test]
fn a_sound_site_has_no_faults() {
    checked(YAML, CFG, 0, &["no faults"]);
}

#[test]
fn a_warning_is_no_error() {
    checked(
        &format!("{YAML}workerz: 1\n"),
        CFG,
        0,
        &["p.yaml:4:1: warning: `workerz`", "`workers`", "0 errors, 1 warning"],
    );
}

#[test]
fn a_wrong_file_is_3() {
    checked(
        &format!("{YAML}interval: 60\nworkers: \"8\"\n"),
        CFG,
        3,
        &["p.yaml:4:11: error: `interval`", "p.yaml:5:10:", "2 errors"],
    );
    checked("helper:\n\tx: 1\n", CFG, 3, &["p.yaml:2:1: error", "tab"]);
    checked("", CFG, 3, &["empty"]);
    checked(YAML, &CFG.replace("= file", "= fiel"), 3, &["choria.cfg:3:", "`file`"]);
}

#[test]
fn a_missing_thing_is_4() {
    checked(&YAML.replace("/helper", "/helpre"), CFG, 4, &["p.yaml:1:9: error: `helper`", "helpre"]);
    checked(YAML, &CFG.replace("key.pem", "yek.pem"), 4, &["`plugin.security.file.key`", "yek.pem"]);
    checked(&YAML.replace("FOLDER/helper", "no-such-program-anywhere"), CFG, 4, &["not in the PATH"]);
    checked(&format!("{YAML}logfile: FOLDER/no/such/log\n"), CFG, 4, &["`logfile`"]);
}

#[test]
fn keys_that_do_not_fit_are_4() {
    let site = Site::new(YAML, CFG);
    site.write("key.pem", "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n", 0o600);
    let output = site.check(&[]);
    code(&output, 4);
    assert!(stdout(&output).contains("choria.cfg:5:"), "{}", stdout(&output));
}

/// The vectors of a real issuer network: our token and seed, and as signing token one without chain data.
#[test]
fn a_signing_token_without_a_chain_is_4() {
    let yaml = format!(
        "{YAML}jwt_signing_key: FOLDER/signer.seed\njwt_signing_token: FOLDER/plain.jwt\njwt_verify_cert: FOLDER/issuer.public\n\
         features: {{ed25519: true}}\n"
    );
    let cfg = "identity = prov.example.net\nplugin.choria.middleware_hosts = 127.0.0.1:1\n\
               plugin.security.provider = choria\nplugin.security.choria.token_file = FOLDER/signer.jwt\n\
               plugin.security.choria.seed_file = FOLDER/signer.seed\n";
    let site = Site::new(&yaml, cfg);
    let signer = include_str!("../../proto/tests/vectors/v2.signer.jwt");
    site.write("signer.jwt", signer, 0o600);
    site.write("signer.seed", include_str!("../../proto/tests/vectors/v2.signer.seed"), 0o600);
    site.write("issuer.public", include_str!("../../proto/tests/vectors/v2.issuer.public"), 0o600);
    site.write("plain.jwt", signer, 0o600);
    code(&site.check(&[]), 0);
    site.write("plain.jwt", &without_chain(signer), 0o600);
    let output = site.check(&[]);
    code(&output, 4);
    assert!(stdout(&output).contains("`jwt_signing_token`"), "{}", stdout(&output));
}

/// The token with its trust chain signature taken out (its own signature, made by somebody else, no longer fits).
fn without_chain(token: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let mut parts: Vec<String> = token.trim().split('.').map(str::to_owned).collect();
    let mut claims: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&parts[1]).unwrap()).unwrap();
    claims.as_object_mut().unwrap().remove("tcs").unwrap();
    parts[1] = URL_SAFE_NO_PAD.encode(claims.to_string());
    parts.join(".")
}

#[test]
fn a_helper_that_is_not_executable_is_4() {
    let site = Site::new(YAML, CFG);
    fs::set_permissions(site.path("helper"), fs::Permissions::from_mode(0o644)).unwrap();
    let output = site.check(&[]);
    code(&output, 4);
    assert!(stdout(&output).contains("not executable"), "{}", stdout(&output));
}

#[test]
fn a_wrong_command_line_is_2() {
    let site = Site::new(YAML, CFG);
    for line in [&["run"][..], &["check"], &["nosuchverb"], &["run", "--config", "p.yaml", "--nosuch"], &[]] {
        code(&site.run(line), 2);
    }
}

#[test]
fn loose_modes_are_warned_about() {
    let site = Site::new(&format!("{YAML}logfile: FOLDER/q.log\n"), CFG);
    site.write("q.log", "", 0o644);
    for name in ["p.yaml", "key.pem"] {
        fs::set_permissions(site.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let output = site.check(&[]);
    code(&output, 0);
    let text = stdout(&output);
    for word in ["`token`", "`plugin.security.file.key`", "`logfile`", "0 errors, 3 warnings"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
}

#[test]
fn json_is_for_machines() {
    let output = Site::new(&format!("{YAML}interval: 60\n"), CFG).check(&["--json"]);
    code(&output, 3);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fault = &report["faults"][0];
    assert_eq!((report["ok"].as_bool(), report["exit"].as_u64()), (Some(false), Some(3)));
    assert_eq!((fault["severity"].as_str(), fault["key"].as_str()), (Some("error"), Some("interval")));
    assert_eq!((fault["line"].as_u64(), fault["column"].as_u64()), (Some(4), Some(11)));
}

#[test]
fn no_secret_is_shown() {
    for yaml in [
        format!("{YAML}interval: 60\n"),
        YAML.replace("\ntoken: ", "\ntoken: ["),
        YAML.replace("token: s3cret", "token: 12s3cret: ["),
    ] {
        for more in [&[][..], &["--json"]] {
            let output = Site::new(&yaml, CFG).check(more);
            let all = stdout(&output) + &stderr(&output);
            assert!(!all.contains("s3cret"), "{all}");
        }
    }
}

#[test]
fn the_default_file_is_printed_and_loads() {
    let site = Site::new(YAML, CFG);
    let output = site.run(&["check", "--print-default"]);
    code(&output, 0);
    site.write("p.yaml", &format!("{}\nhelper: /bin/true\n", stdout(&output)), 0o640);
    let output = site.check(&[]);
    code(&output, 0);
    assert!(stdout(&output).contains("0 errors"), "{}", stdout(&output));
}

#[test]
fn help_version_completions_and_manual_are_answers() {
    let site = Site::new(YAML, CFG);
    for line in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["completions", "bash"],
        &["completions", "fish"],
        &["man"],
    ] {
        let output = site.run(line);
        code(&output, 0);
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{line:?}");
    }
    code(&site.run(&["man", "--dir", "pages"]), 0);
    assert!(site.path("pages/quartermaster-run.1").exists());
}

#[test]
fn run_refuses_what_check_refuses() {
    let site = Site::new(&format!("{YAML}cert_deny_list: ['(']\n"), CFG);
    let output = site.run(&["run", "--config", "p.yaml", "--choria-config", "choria.cfg"]);
    code(&output, 3);
    assert!(stderr(&output).contains("does not compile"), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_log_file_that_cannot_be_opened_is_4() {
    let site = Site::new(&format!("{YAML}logfile: FOLDER\n"), CFG);
    code(&site.run(&["run", "--config", "p.yaml", "--choria-config", "choria.cfg"]), 4);
}

#[test]
fn a_broker_that_is_not_there_is_5() {
    let output = Site::new(YAML, CFG).check(&["--connect", "--json"]);
    code(&output, 5);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["faults"][0]["kind"], "broker");
}

/// A running instance whose log goes to `q.log`; it looks for a broker that is not there.
struct Running {
    child: Held,
    log: PathBuf,
}

impl Running {
    fn start(site: &Site) -> Self {
        // The umask that hides nothing.
        let line =
            format!("umask 000; exec {BINARY} run --config p.yaml --choria-config choria.cfg --pid p.pid");
        let child = Held(site.command(Path::new("/bin/sh"), &["-c", &line]).spawn().unwrap());
        let running = Self { child, log: site.path("q.log") };
        until("the log has lines", || running.lines(&running.log) > 0);
        running
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the instance")]
    fn lines(&self, log: &Path) -> usize {
        fs::read_to_string(log).unwrap_or_default().lines().count()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// Waits for what another process does; fails after a minute.
#[track_caller]
fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn with_log() -> Site {
    Site::new(&format!("{YAML}logfile: FOLDER/q.log\n"), CFG)
}

#[test]
fn a_log_file_is_private_json_without_secrets_whatever_the_umask() {
    let site = with_log();
    let mut running = Running::start(&site);
    until("the instance is up", || site.path("p.pid").exists());
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(
        running.child.0.wait().unwrap().code(),
        Some(0),
        "{}",
        fs::read_to_string(&running.log).unwrap()
    );
    assert!(!site.path("p.pid").exists());
    let mode = fs::metadata(&running.log).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640, "{mode:o}");
    let text = fs::read_to_string(&running.log).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        for key in ["time", "level", "msg", "component"] {
            assert!(line[key].is_string(), "{key}: {line}");
        }
    }
}

#[test]
fn a_hangup_opens_the_log_anew() {
    let site = with_log();
    let running = Running::start(&site);
    until("the instance is up", || site.path("p.pid").exists());
    fs::rename(&running.log, site.path("q.log.1")).unwrap();
    running.signal(rustix::process::Signal::HUP);
    until("a new log has lines", || running.lines(&running.log) > 0);
    assert!(
        fs::read_to_string(&running.log)
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .contains("Opened the log file anew")
    );
}

/// Under the peer's name, the peer's line is understood as far as its configuration.
#[test]
fn a_link_named_as_the_peer_takes_the_peers_line() {
    let site = Site::new(&format!("{YAML}interval: 60\n"), CFG);
    let link = site.path("choria-provisioner");
    symlink(BINARY, &link).unwrap();
    for line in [
        &["--config", "p.yaml", "--choria-config", "choria.cfg", "--pid", "p.pid", "--debug"][..],
        &["--no-debug", "run", "--config=p.yaml", "--choria-config=choria.cfg"],
    ] {
        let output = site.command(&link, line).output().unwrap();
        code(&output, 3);
        assert!(stderr(&output).contains("`interval`"), "{}", stderr(&output));
        assert!(!site.path("p.pid").exists(), "nothing is written before the configuration is right");
    }
    let version = site.command(&link, &["--version"]).output().unwrap();
    code(&version, 0);
    assert!(stdout(&version).starts_with("choria-provisioner "), "{}", stdout(&version));
}

/// Every verb that ends by itself, with the exit code it has at a terminal.
const VERBS: &[(&[&str], i32)] = &[
    (&["check", "--config", "p.yaml", "--choria-config", "choria.cfg"], 0),
    (&["check", "--config", "p.yaml", "--choria-config", "choria.cfg", "--json"], 0),
    (&["check", "--print-default"], 0),
    (&["run", "--config", "nosuch.yaml", "--choria-config", "choria.cfg"], 3),
    (&["completions", "zsh"], 0),
    (&["man"], 0),
    (&["--help"], 0),
    (&["--version"], 0),
    (&["nosuchverb"], 2),
];

#[test]
fn a_closed_or_held_open_stdin_changes_nothing() {
    let site = Site::new(YAML, CFG);
    for (line, exit) in VERBS {
        // `<&-` closes the stream itself, which Command cannot.
        let closed = format!("exec {BINARY} {} <&-", line.join(" "));
        code(&site.command(Path::new("/bin/sh"), &["-c", &closed]).output().unwrap(), *exit);
        let mut held = Held(site.command(Path::new(BINARY), line).stdin(Stdio::piped()).spawn().unwrap());
        // Both outputs fit into their pipes or are read here; the input stays open until the end is known.
        let mut said = Vec::new();
        held.0.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        assert_eq!(held.0.wait_keeping_stdin().code(), Some(*exit), "{line:?}");
    }
}

#[test]
fn a_closed_stdout_ends_with_the_same_code_and_without_a_panic() {
    let site = Site::new(YAML, CFG);
    for (line, exit) in VERBS {
        let mut child = Held(site.command(Path::new(BINARY), line).spawn().unwrap());
        // The reader is gone before anything is written, or in the midst of it.
        drop(child.0.stdout.take());
        let mut said = String::new();
        child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.0.wait_keeping_stdin().code(), Some(*exit), "{line:?}: {said}");
        assert!(!said.contains("panic"), "{line:?}: {said}");
        let closed = format!("exec {BINARY} {} >&- 2>&-", line.join(" "));
        code(&site.command(Path::new("/bin/sh"), &["-c", &closed]).output().unwrap(), *exit);
    }
}

/// A child that does not outlive its test.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

trait WaitKeepingStdin {
    /// `Child::wait` closes the child's stdin first; this does not.
    fn wait_keeping_stdin(&mut self) -> std::process::ExitStatus;
}

impl WaitKeepingStdin for Child {
    fn wait_keeping_stdin(&mut self) -> std::process::ExitStatus {
        let mut stdin = self.stdin.take();
        let status = self.wait().unwrap();
        // Still open now: an error here is the child's end, not ours.
        if let Some(stdin) = &mut stdin {
            let _ = stdin.write_all(b"\n");
        }
        status
    }
}
