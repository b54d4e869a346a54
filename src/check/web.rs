//! The files of the web listener: tokens and certificate.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use quartermaster_actors::text;

use crate::app::{web::read_token, web_tls};
use crate::config::{FaultKind, Faults, Severity, WebConfig};

/// Reads each as the listener will.
pub(super) fn examine(web: &WebConfig, faults: &mut Faults) {
    token("web.admin_token_file", web.admin_token_file.as_deref(), faults);
    token("web.read_token_file", web.read_token_file.as_deref(), faults);
    if let Some(files) = &web.tls {
        if let Err(error) = web_tls::read(files) {
            faults.missing("listen_tls.certificate", text::chain(&error), "correct the path or the file");
        }
        private(&files.key, "listen_tls.key", faults);
    }
}

fn token(key: &str, path: Option<&Path>, faults: &mut Faults) {
    let Some(path) = path else { return };
    match read_token(path) {
        Ok(_) => private(path, key, faults),
        Err(error) => {
            let what = format!("`{}` cannot be used: {}", path.display(), text::chain(&error));
            let help = format!(
                "umask 077; openssl rand -hex 32 > {0}; chown it to the user that runs this program",
                path.display()
            );
            faults.missing(key, what, &help);
        }
    }
}

/// Warns of a secret that others than its owner may read.
fn private(path: &Path, key: &str, faults: &mut Faults) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let who = if mode & 0o007 != 0 { "everybody on this machine" } else { "its group" };
        let what = format!("`{}` is a secret, and {who} may use it (mode {mode:04o})", path.display());
        let help = format!("chmod 0600 {}", path.display());
        faults.about(Severity::Warning, FaultKind::Files, key, what, &help);
    }
}
