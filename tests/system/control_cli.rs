//! The NATS project's own command line finds the service, its endpoints and its numbers, and asks it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use super::control_site::{Instance, client};
use super::prove_site::Site;
use super::support::skip;

/// The command line, found or built once per test run.
fn nats() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/get-nats-cli");
        let run = std::process::Command::new(&tool).stdin(Stdio::null()).output();
        let run = run.map_err(|error| format!("{} does not run: {error}", tool.display()))?;
        if run.status.success() {
            return Ok(PathBuf::from(String::from_utf8_lossy(&run.stdout).trim()));
        }
        let said = String::from_utf8_lossy(&run.stderr);
        Err(said.lines().last().unwrap_or("tools/get-nats-cli failed").to_owned())
    });
    match found {
        Ok(path) => Some(path),
        Err(why) => {
            skip("the control service and the nats command line", why);
            None
        }
    }
}

#[tokio::test]
async fn nats_micro_and_nats_req_work() {
    let Some(nats) = nats() else { return };
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let mut instance = Instance::start(&site, "prov1.example.net", "");
    instance.answers(&client).await;
    let url = site.broker.url();
    let home = site.path("home");
    std::fs::create_dir_all(&home).unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(nats);
        command.args(["--server", &url]).args(arguments).env("HOME", &home).stdin(Stdio::null());
        let run = command.kill_on_drop(true).output().await.unwrap();
        let text =
            [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(run.status.success(), "{arguments:?}: {text}");
        text
    };
    let listed = run(&["micro", "ls"]).await;
    assert!(listed.contains("quartermaster") && listed.contains(env!("CARGO_PKG_VERSION")), "{listed}");
    let info = run(&["micro", "info", "quartermaster"]).await;
    for words in ["site: emulated", "instance: prov1.example.net", "quartermaster.pause", "response_schema"] {
        assert!(info.contains(words), "{words}: {info}");
    }
    let asked = run(&["req", "quartermaster.pause", r#"{"who": "ann", "why": "a test"}"#]).await;
    assert!(asked.contains("paused by ann since "), "{asked}");
    let refused = run(&["req", "quartermaster.pause", "{}"]).await;
    assert!(refused.contains("Nats-Service-Error-Code: 400"), "{refused}");
    let stats = run(&["micro", "stats", "quartermaster"]).await;
    assert!(stats.contains("forget") && stats.contains("Errors"), "{stats}");
}
