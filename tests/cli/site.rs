//! A site's folder and the built binary to run in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

pub const BINARY: &str = env!("CARGO_BIN_EXE_quartermaster");

/// A folder with the two files of a site, and a binary to run on them.
pub struct Site {
    pub folder: tempfile::TempDir,
}

pub const YAML: &str =
    "helper: FOLDER/helper --site london\ntoken: s3cret-token\nbroker_provisioning_password: s3cret-pass\n";
pub const CFG: &str = "identity = prov.example.net\nplugin.choria.middleware_hosts = 127.0.0.1:1\n\
                   plugin.security.provider = file\nplugin.security.file.certificate = FOLDER/cert.pem\n\
                   plugin.security.file.key = FOLDER/key.pem\nplugin.security.file.ca = FOLDER/ca.pem\n";

/// A certificate that is its own authority, and its RSA key: made once, since RSA takes its time.
pub static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["prov.example.net".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
});

impl Site {
    /// A site whose files are as given; `FOLDER` stands for its folder. Helper, keys and certificates exist.
    pub fn new(yaml: &str, cfg: &str) -> Self {
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

    pub fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary in this folder with a bare environment and nothing on its streams.
    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", "/nonexistent").env("USER", "prov");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(Path::new(BINARY), arguments).output().unwrap()
    }

    pub fn check(&self, more: &[&str]) -> Output {
        self.run(&[&["check", "--config", "p.yaml", "--choria-config", "choria.cfg"], more].concat())
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
pub fn code(output: &Output, expected: i32) {
    assert_eq!(
        output.status.code(),
        Some(expected),
        "stdout:\n{}\nstderr:\n{}",
        stdout(output),
        stderr(output)
    );
}

/// A child that does not outlive its test.
pub struct Held(pub Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
