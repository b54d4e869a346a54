//! What this machine must have, and what happens when it has not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Says in one line that a test cannot run here and why. With `QM_REQUIRE_ALL=1` that is a failure.
pub fn skip(what: &str, why: &str) {
    assert!(
        std::env::var("QM_REQUIRE_ALL").as_deref() != Ok("1"),
        "{what} cannot run here although QM_REQUIRE_ALL=1 wants it: {why}"
    );
    eprintln!("SKIPPED {what}: {why}");
}

/// The nats-server to use, found or fetched once per test run.
pub fn nats_server() -> Result<&'static Path, &'static str> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/get-nats-server");
        let run = Command::new(&tool).stdin(Stdio::null()).output();
        match run {
            Ok(run) if run.status.success() => Ok(PathBuf::from(String::from_utf8_lossy(&run.stdout).trim())),
            Ok(run) => Err(format!(
                "no nats-server: {}",
                String::from_utf8_lossy(&run.stderr).lines().last().unwrap_or("tools/get-nats-server failed")
            )),
            Err(error) => Err(format!("no nats-server: {} does not run: {error}", tool.display())),
        }
    });
    found.as_deref().map_err(String::as_str)
}
