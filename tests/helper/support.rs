//! Running helpers, and saying plainly what cannot run here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use actix::Actor as _;
use quartermaster_actors::control::RunState;
use quartermaster_actors::helper::{
    HelperError, HelperHandle, HelperParts, HelperRun, HelperRunner, HelperSettings, Orphans, RunHelper,
};
use quartermaster_actors::supervise::Slot;
use quartermaster_proto::choria::Identity;
use tokio::sync::watch;

pub const IDENTITY: &str = "web1.example.net";

/// True when all of `programs` are there. Otherwise says so in one line, or fails when everything is required.
pub fn have(programs: &[&str]) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let missing: Vec<&&str> = programs
        .iter()
        .filter(|program| !std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
        .collect();
    if missing.is_empty() {
        return true;
    }
    skip(&format!("{missing:?} not found on the PATH"))
}

/// Says why a test does not run here; fails when everything is required. Always false.
pub fn skip(why: &str) -> bool {
    assert!(std::env::var_os("QM_REQUIRE_ALL").is_none_or(|value| value != "1"), "required, but {why}");
    eprintln!("skipped: {why}");
    false
}

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What a real provisioner's helper got, recorded.
pub fn recorded(network: &str) -> Vec<u8> {
    fs::read(repository().join("proto/tests/vectors").join(format!("{network}.helper-input.json"))).unwrap()
}

/// One run of a sample through the runner, with what it said.
pub async fn run_sample(
    program: &Path,
    arguments: &[&str],
    input: Vec<u8>,
) -> Result<HelperRun, HelperError> {
    let arguments = arguments.iter().map(ToString::to_string).collect();
    let mut settings = HelperSettings::new(program.to_str().unwrap(), arguments);
    // Interpreters start slowly on a machine that runs everything else too.
    settings.timeout = std::time::Duration::from_mins(1);
    let (_state, run_state) = watch::channel(RunState::working());
    let parts = Arc::new(HelperParts::new(settings, run_state, Arc::new(|_| {}), Orphans::unadopted()));
    let slot = Slot::new("helper", 16);
    slot.set(HelperRunner::new(Arc::clone(&parts), None).start());
    HelperHandle::new(slot, parts)
        .run(RunHelper { identity: Identity::parse(IDENTITY).unwrap(), input })
        .await
}

/// A command that must succeed; gives its standard output.
#[track_caller]
pub fn must(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
