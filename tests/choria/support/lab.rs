//! The Go program `lab`, built once a run.
use std::env;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The built program.
pub struct Lab {
    program: PathBuf,
}

/// The lab, or nothing when this machine cannot build it: then the line that says why has been printed.
///
/// # Panics
/// When the lab does not build although everything it needs is there, and when something is missing although
/// `QM_REQUIRE_ALL=1` says that nothing may be.
pub fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Result<Lab, String>> = OnceLock::new();
    let built = LAB.get_or_init(|| {
        let built = build();
        if let Err(missing) = &built {
            // Past the test harness, which shows what a passing test prints to nobody.
            writeln!(stderr(), "tests/choria skipped: {missing}").ok();
        }
        built
    });
    match built {
        Ok(lab) => Some(lab),
        Err(missing) => {
            assert!(!required(), "QM_REQUIRE_ALL=1, but {missing}");
            None
        }
    }
}

fn required() -> bool {
    env::var("QM_REQUIRE_ALL").is_ok_and(|v| v == "1")
}

fn build() -> Result<Lab, String> {
    has("openssl", &["version"])?;
    has("go", &["version"])?;
    let listed = go(&["list", "-deps", "."]);
    if !listed.status.success() {
        return Err(format!(
            "the modules of the Go program tests/choria/lab are not to be had: {}",
            last_line(&listed.stderr)
        ));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("choria-lab");
    std::fs::create_dir_all(&folder).expect("a folder for the lab");
    let program = folder.join("lab");
    let fresh = folder.join(format!("lab.{}", std::process::id()));
    let built = go(&["build", "-buildvcs=false", "-o", fresh.to_str().expect("a path in UTF-8"), "."]);
    assert!(
        built.status.success(),
        "tests/choria/lab does not build:\n{}",
        String::from_utf8_lossy(&built.stderr)
    );
    std::fs::rename(&fresh, &program).expect("the lab in its place");
    Ok(Lab { program })
}

fn has(program: &str, arguments: &[&str]) -> Result<(), String> {
    let ran = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if ran.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err(format!("`{program}` is not installed"))
    }
}

fn go(arguments: &[&str]) -> Output {
    Command::new("go")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/choria/lab"))
        .stdin(Stdio::null())
        .output()
        .expect("go runs")
}

fn last_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().last().unwrap_or_default().to_owned()
}

impl Lab {
    /// A command of the lab, with an environment that holds nothing of this machine's Choria.
    pub fn command(&self, home: &Path) -> Command {
        Self::run_in(home, &self.program)
    }

    /// The same from a copy of the program in `file`.
    pub fn copy(&self, file: &Path, home: &Path) -> Command {
        std::fs::hard_link(&self.program, file).expect("a copy of the lab");
        let mut command = Self::run_in(home, file);
        command.env("LAB_PROGRAM", &self.program);
        command
    }

    fn run_in(home: &Path, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("USER", "lab");
        command.current_dir(home);
        command
    }

    /// Runs a command of the lab to its end and returns what it printed.
    ///
    /// # Panics
    /// When it fails.
    pub fn run(&self, home: &Path, arguments: &[&str]) -> String {
        let output =
            self.command(home).args(arguments).stdin(Stdio::null()).output().expect("the lab starts");
        assert!(output.status.success(), "lab {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8 from the lab")
    }
}
