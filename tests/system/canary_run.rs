//! No secret leaves by a side door: a provisioner at its most talkative goes through success and every kind of trouble, and
//! none of its secrets is in its output, its pages, or what a helper inherits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, Phase, PrepareSettings, prepare,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::canary_forms::Canaries;
use super::hostile_field::node;
use super::support::{Authority, Broker, BrokerOptions, Daemon, append, eventually, replace};

/// A token that YAML takes for a number.
const NUMBER: &str = "918273645546372819";
pub const TOKEN: &str = "canary-token-5f0c9e77ab";
const PASSWORD: &str = "canary-password-8d21be04";
const INHERITED: &str = "canary-inherited-31f7aa90";
pub const SETTING: &str = "canary-setting-77e1c3d5";
pub const POLICY: &str = "canary-policy-0b94d2f8";

/// What the helper answers about some servers, and what becomes of them.
const ROWS: usize = 15;
const FAULTS: [(usize, &str); 5] = [
    (9, "wrong_types"),
    (10, "abort_configure:9"),
    (11, "wrong_token"),
    (12, "jwt_expired"),
    (13, "two_replies"),
];

struct Scene {
    authority: Authority,
    broker: Broker,
    daemon: Daemon,
    fleet: FleetHandle,
    files: NetworkFiles,
    canaries: Canaries,
    outputs: BTreeMap<String, Vec<u8>>,
    _dir: tempfile::TempDir,
}

/// What a helper answers when all is well, secrets and all.
pub fn decision(key: &str) -> Value {
    json!({
        "configuration": {
            "plugin.choria.server.provision": "false", "plugin.security.provider": "file",
            "plugin.database.password": SETTING,
        },
        "key": key, "certificate": "-", "ca": "-", "ssldir": "/etc/choria/ssl",
        "action_policies": {"rpcutil.policy": POLICY}, "opa_policies": {"main.rego": POLICY},
    })
}

/// Writes the helper: for each server its own answer, and what the helper can see of the provisioner.
pub fn write_helper(files: &NetworkFiles, key: &str) {
    let answers = files.dir.join("answers");
    let seen = files.dir.join("seen");
    std::fs::create_dir_all(&answers).unwrap();
    std::fs::create_dir_all(&seen).unwrap();
    let good = decision(key);
    let with = |name: &str, value: Value| {
        let mut answer = good.clone();
        answer[name] = value;
        answer.to_string()
    };
    let texts = [
        ("default", good.to_string()),
        (&node(1), with("configuration", json!({"plugin.database.password": [SETTING]}))),
        (&node(2), with("configuration", json!({"plugin.database": {"password": SETTING}}))),
        (&node(3), with("configuration", json!(SETTING))),
        (&node(4), with("key", json!([key]))),
        (&node(5), with("action_policies", json!({"rpcutil.policy": {"text": POLICY}}))),
        (&node(6), format!("password {SETTING}\n{good}")),
        (&node(7), format!("{good}\npassword {SETTING}")),
        (&node(8), format!("{{\"configuration\": {{\"password\": \"{SETTING}")),
    ];
    for (name, text) in texts {
        std::fs::write(answers.join(name), text).unwrap();
    }
    let (answers, seen) = (answers.display(), seen.display());
    let script = format!(
        r#"#!/bin/sh
request=$(cat)
identity=${{request#*\"identity\":\"}}
identity=${{identity%%\"*}}
cat /proc/$$/environ > {seen}/environ.$identity
cat /proc/$$/cmdline > {seen}/cmdline.$identity
cat {answers}/$identity 2>/dev/null || cat {answers}/default
[ "$identity" != {failing} ]
"#,
        failing = node(14),
    );
    std::fs::write(&files.helper, script).unwrap();
}

impl Scene {
    /// A network of this kind with all its secrets, its provisioner and its servers, some of them in trouble.
    async fn start(x509: bool, arguments: &[&str]) -> Option<Self> {
        let authority = Authority::new("canary");
        let broker = BrokerOptions::new().tls(&authority).start()?;
        let dir = tempfile::tempdir().unwrap();
        let settings = PrepareSettings {
            broker: format!("127.0.0.1:{}", broker.port()),
            token: TOKEN.to_owned(),
            ..PrepareSettings::default()
        };
        let prepared = prepare(dir.path(), &settings).unwrap();
        let files = if x509 { prepared.plain } else { prepared.issuer };
        let read = |name: &str| std::fs::read_to_string(files.dir.join(name)).unwrap();

        let mut canaries = Canaries::default();
        for (what, text) in [
            ("the provisioning token", TOKEN),
            ("a token that is a number", NUMBER),
            ("the inherited password", INHERITED),
            ("a setting of the helper", SETTING),
            ("a policy of the helper", POLICY),
        ] {
            canaries.text(what, text);
        }
        let seed = read("signer.seed");
        canaries.text("the signing seed", &seed);
        canaries.bytes("the signing seed", &hex::decode(&seed).unwrap());
        canaries
            .text("the signature of a server's token", read("provisioning.jwt").rsplit('.').next().unwrap());
        // Server tokens are made as we go; this is how the header of every token begins.
        canaries.text("the header of a token", "eyJhbGciOi");
        let helper_key = authority.client_rsa("node").key;
        canaries.key("the helper's key", &helper_key);
        write_helper(&files, &helper_key);
        append(&files.config, "listen: 127.0.0.1:0\nretry:\n  first: 10m\n");
        replace(&files.config, "loglevel: info", "loglevel: debug");
        if x509 {
            let own = authority.client_rsa("provisioner.mcollective");
            canaries.key("our own TLS key", &own.key);
            for (name, text) in [
                ("own.pem", &own.certificate),
                ("own.key", &own.key),
                ("ca.pem", &authority.pem().to_owned()),
            ] {
                std::fs::write(files.dir.join(name), text).unwrap();
            }
            let mut lines = String::new();
            for (key, name) in [("certificate", "own.pem"), ("key", "own.key"), ("ca", "ca.pem")] {
                let _ = writeln!(lines, "plugin.security.file.{key} = {}", files.dir.join(name).display());
            }
            append(&files.choria_config, &lines);
            replace(&files.config, "choria_insecure: true\n", "");
            replace(&files.config, "  ed25519: true", "  pki: true");
            replace(
                &files.config,
                "logfile: stderr",
                &format!("logfile: {}", files.dir.join("log").display()),
            );
        } else {
            canaries.text("the broker's password", PASSWORD);
            canaries
                .text("the signature of our token", read("signer.jwt").trim().rsplit('.').next().unwrap());
            replace(&files.config, "provSecret", PASSWORD);
        }

        let mut settings = FleetSettings::new(Network::load(&files.dir).unwrap(), broker.url(), ROWS);
        settings.restart_delay = Some(Duration::from_millis(50));
        let faults = FAULTS.map(|(number, fault)| format!("{fault}=@{}", node(number)));
        settings.faults = FaultPlan::parse(&faults.join(",")).unwrap();
        let environment =
            [("RUST_LOG", "trace"), ("MCOLLECTIVE_NATS_PASSWORD", INHERITED), ("RUST_BACKTRACE", "full")];
        let daemon = Daemon::start_with(&files, arguments, &environment);
        let fleet = Fleet::start(settings).await.unwrap();
        Some(Self { authority, broker, daemon, fleet, files, canaries, outputs: BTreeMap::new(), _dir: dir })
    }

    /// The log so far, wherever it goes.
    fn log(&self) -> String {
        let file = std::fs::read_to_string(self.files.dir.join("log")).unwrap_or_default();
        self.daemon.stderr() + file.as_str()
    }

    /// Reads every page, under the name of the moment.
    fn read_pages(&mut self, moment: &str) {
        for path in ["/metrics", "/api/v1/status", "/readyz", "/healthz", "/"] {
            let (_, body) = self.daemon.get(path);
            assert!(!body.is_empty() || path == "/", "{path} is empty");
            self.outputs.insert(format!("{path} {moment}"), body.into_bytes());
        }
    }

    /// Success, every failure, a broker that is gone, one that refuses us, the end.
    async fn live_through_everything(&mut self) {
        self.daemon.listens().await;
        for number in 1..=14 {
            let name = node(number);
            eventually(&format!("{name} fails"), || {
                self.daemon.assert_alive();
                self.log().contains(&format!("Could not provision {name}: "))
            })
            .await;
        }
        let good = node(ROWS);
        eventually("the good server is provisioned", || {
            self.fleet.server(&good).is_some_and(|server| server.record.phase == Phase::Provisioned)
        })
        .await;
        self.read_pages("after the work");
        self.broker.stop();
        eventually("the broker is missed", || self.log().contains("Not connected: ")).await;
        self.read_pages("without a broker");
        let options = BrokerOptions::new().tls(&self.authority).user("somebody", "something else");
        self.broker.restart_with(options);
        let refused = || {
            let status: Value = serde_json::from_str(&self.daemon.get("/api/v1/status").1).unwrap();
            status["link"]["refused_logins"].as_u64().unwrap()
        };
        eventually("the login is refused", || refused() > 0).await;
        self.read_pages("without a login");
        self.daemon.signal(Signal::TERM);
        assert_eq!(self.daemon.ended().await.code(), Some(0), "{}", self.log());
    }

    /// What the commands for people say about the same files, right and wrong.
    fn ask_commands(&mut self) {
        let broken = self.files.dir.join("broken.yaml");
        let yaml = std::fs::read_to_string(&self.files.config).unwrap();
        let mut lines: Vec<String> = yaml.lines().map(|line| line.replace("site:", "sight:")).collect();
        // A number is no text, and what it is must not be told.
        lines
            .retain(|line| !line.starts_with("token:") && !line.starts_with("broker_provisioning_password:"));
        lines.push(format!("token: {NUMBER}\nbroker_provisioning_password: {{secret: {PASSWORD}}}"));
        std::fs::write(&broken, lines.join("\n")).unwrap();
        let config = self.files.config.clone();
        for (name, file, more) in [
            ("check", &config, &["--json"][..]),
            ("check text", &config, &["--connect", "--debug"]),
            ("check broken", &broken, &["--json"]),
            ("check broken text", &broken, &["--debug"]),
        ] {
            self.ask(name, file, more);
        }
    }

    fn ask(&mut self, name: &str, config: &Path, more: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command
            .arg("check")
            .arg("--config")
            .arg(config)
            .arg("--choria-config")
            .arg(&self.files.choria_config);
        let output = command.args(more).env("RUST_LOG", "trace").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(!text.is_empty(), "{name} says nothing");
        self.outputs.insert(name.to_owned(), text);
    }

    /// Everything that can be read from outside, against every secret.
    fn check(mut self) {
        self.outputs.insert("stdout".to_owned(), self.daemon.stdout().into_bytes());
        self.outputs.insert("log".to_owned(), self.log().into_bytes());
        let seen: Vec<PathBuf> = std::fs::read_dir(self.files.dir.join("seen"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(seen.len() >= 20, "{} helpers were looked at", seen.len());
        for file in seen {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            self.outputs.insert(format!("the helper's {name}"), std::fs::read(&file).unwrap());
        }
        self.canaries.assert_unseen(&self.outputs);
        // The libraries below us speak of logins and handshakes at their lowest levels, and must not be heard.
        let log = String::from_utf8(self.outputs.remove("log").unwrap()).unwrap();
        let foreign = |line: &&str| {
            ["async_nats", "rustls", "tokio"].iter().any(|name| {
                line.contains(&format!("\"component\":\"{name}")) || line.contains(&format!("DEBUG {name}"))
            })
        };
        let talk: Vec<_> =
            log.lines().filter(foreign).filter(|line| line.to_lowercase().contains("debug")).collect();
        assert!(talk.is_empty(), "{talk:?}");
        assert!(log.contains("Called choria_provision#configure"), "the lowest level is on");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_of_an_issuer_network_is_seen_anywhere() {
    let Some(mut scene) = Scene::start(false, &["--debug", "--log-format", "json"]).await else { return };
    scene.live_through_everything().await;
    scene.ask_commands();
    scene.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_of_an_x509_network_is_seen_anywhere() {
    let Some(mut scene) = Scene::start(true, &["--debug", "--log-format", "text"]).await else { return };
    scene.live_through_everything().await;
    scene.ask_commands();
    scene.check();
}
