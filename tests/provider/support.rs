//! The sample providers, built where that is needed, and the program under test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// True when all of `programs` are there. Otherwise says so in one line, or fails when everything is required.
pub fn have(programs: &[&str]) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let missing: Vec<&&str> = programs
        .iter()
        .filter(|program| !std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
        .collect();
    missing.is_empty() || skip(&format!("{missing:?} not found on the PATH"))
}

/// Says why a test does not run here; fails when everything is required. Always false.
pub fn skip(why: &str) -> bool {
    assert!(std::env::var_os("QM_REQUIRE_ALL").is_none_or(|value| value != "1"), "required, but {why}");
    eprintln!("skipped: {why}");
    false
}

pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/providers").join(name)
}

pub fn quartermaster(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quartermaster")).arg("provider").args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn program(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
