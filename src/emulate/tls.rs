//! TLS as a Choria server in provisioning mode makes it: encrypted, and nobody verified (choria.md 1.3).

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use quartermaster_actors::vault::Unverified;
use rustls::{ClientConfig, Error};

/// A client that accepts every certificate.
pub(super) fn unverified() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified::new(provider)))
        .with_no_client_auth())
}

/// What tells the NATS client where the system's certificates are.
const FILE: &str = "SSL_CERT_FILE";
/// The same, for a folder of them.
const FOLDER: &str = "SSL_CERT_DIR";
/// A file without any.
const NONE: &str = "/dev/null";

/// Starts this program anew, as the same process with the same arguments, but with no certificates of the system. The NATS
/// client reads all of them for each connection, although nobody is verified here, and that takes several times as long as a
/// handshake. Returns only when there is nothing to do, or it failed.
pub(super) fn without_roots() -> io::Result<()> {
    if std::env::var_os(FILE).is_some_and(|file| file == NONE) && std::env::var_os(FOLDER).is_none() {
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe()?);
    again.args(std::env::args_os().skip(1)).env(FILE, NONE).env_remove(FOLDER);
    Err(again.exec())
}
