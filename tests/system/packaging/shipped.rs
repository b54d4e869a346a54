//! The package, and the tools that look at it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::super::support::skip;

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_quartermaster");
/// This repository.
pub const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// What a command printed; panics with all of it when it failed.
pub fn text_of(output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{error}", output.status);
    out.into_owned()
}

/// Runs a program to its end.
pub fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// True when the program is there at all.
pub fn has(program: &str) -> bool {
    run("sh", &["-c", &format!("command -v {program}")]).status.success()
}

/// True when all of these programs are there; else the test is skipped.
pub fn needs(what: &str, programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|program| !has(program)).collect();
    if !missing.is_empty() {
        skip(what, &format!("there is no {missing:?} here"));
    }
    missing.is_empty()
}

/// The path of a tool of a Debian package, found or fetched.
pub fn debian_tool(package: &str, program: &str, libraries: &[&str]) -> Option<String> {
    let tool = Path::new(REPOSITORY).join("tools/get-debian-tool");
    let found = run(tool, &[&[package, program], libraries].concat());
    if !found.status.success() {
        skip(program, &String::from_utf8_lossy(&found.stderr));
        return None;
    }
    Some(text_of(&found).trim().to_owned())
}

/// The package with the program under test in it, built once.
pub fn package() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(PathBuf, TempDir)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if !needs("the Debian package", &["dpkg-deb", "gzip"]) {
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let tool = Path::new(REPOSITORY).join("tools/make-deb");
        let built = run(tool, &["--binary", BINARY, "--output", folder.path().to_str().unwrap()]);
        if !built.status.success() {
            skip("the Debian package", &String::from_utf8_lossy(&built.stderr));
            return None;
        }
        Some((PathBuf::from(text_of(&built).trim()), folder))
    });
    built.as_ref().map(|(path, _)| path.as_path())
}

/// The package unpacked, maintainer scripts under `DEBIAN`.
pub fn unpacked() -> Option<&'static Path> {
    static UNPACKED: OnceLock<Option<TempDir>> = OnceLock::new();
    let unpacked = UNPACKED.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        text_of(&run("dpkg-deb", &["-R", package()?.to_str().unwrap(), folder.path().to_str().unwrap()]));
        Some(folder)
    });
    unpacked.as_ref().map(TempDir::path)
}
