//! The files of one server, as provisioning leaves them.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server's folder, its `/etc/choria`.
pub struct Server {
    /// Its identity.
    pub name: &'static str,
    folder: PathBuf,
}

impl Server {
    /// The server `name` in `folder`.
    pub fn new(name: &'static str, folder: &Path) -> Self {
        Self { name, folder: folder.to_owned() }
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file of it, as text.
    pub fn path(&self, file: &str) -> String {
        self.folder.join(file).to_str().expect("a path in UTF-8").to_owned()
    }

    /// Whether it has the file.
    pub fn has(&self, file: &str) -> bool {
        self.folder.join(file).exists()
    }

    /// The text of a file of it.
    pub fn text(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file))
            .unwrap_or_else(|e| panic!("{} of {}: {e}", file, self.name))
    }

    /// Its configuration file: the comment that says who wrote it, and the settings.
    pub fn configuration(&self) -> (String, BTreeMap<String, String>) {
        let text = self.text("server.cfg");
        let mut lines = text.lines();
        let comment = lines.next().unwrap_or_default().to_owned();
        let settings = lines
            .map(|line| line.split_once('=').unwrap_or_else(|| panic!("not a setting: {line}")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        (comment, settings)
    }

    /// Asserts who may read and write a file.
    pub fn assert_mode(&self, file: &str, mode: u32) {
        let found =
            fs::metadata(self.folder.join(file)).expect("a file of the server").permissions().mode() & 0o7777;
        assert_eq!(format!("{found:o}"), format!("{mode:o}"), "mode of {file} of {}", self.name);
    }

    /// Asserts that OpenSSL accepts its certificate under its authority, and that its private key is the certificate's.
    pub fn assert_certificate(&self) {
        let certificate = self.path("ssl/certificate.pem");
        openssl(&["verify", "-CAfile", &self.path("ssl/ca.pem"), &certificate]);
        let certified = openssl(&["x509", "-in", &certificate, "-noout", "-pubkey"]);
        let held = openssl(&["pkey", "-in", &self.path("ssl/private.pem"), "-pubout"]);
        assert_eq!(certified, held, "certificate and private key of {} do not belong together", self.name);
    }
}

fn openssl(arguments: &[&str]) -> String {
    let output =
        Command::new("openssl").args(arguments).stdin(Stdio::null()).output().expect("openssl starts");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8 from openssl")
}
