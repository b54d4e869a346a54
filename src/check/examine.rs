//! What the configuration names: the helper, keys, tokens, folders, and who else may read them.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::config::{
    Config, FaultKind, Faults, LogTarget, Security, Severity, Surroundings, VerifyKeySource,
};

/// Looks at everything the configuration names. Nothing is changed, started or connected to.
pub fn examine(config: &Config, around: &Surroundings<'_>, faults: &mut Faults) {
    helper(&config.helper.command.program, around, faults);
    for (key, path, secret) in files(config) {
        readable(key, &path, secret, around, faults);
    }
    log_file(config, around, faults);
    config_file(&config.yaml_file, &["token", "broker_provisioning_password"], faults);
    config_file(&config.choria_file, &["plugin.nats.pass"], faults);
}

/// Every file that is read later: its key, its path, and whether it is a secret.
fn files(config: &Config) -> Vec<(&'static str, PathBuf, bool)> {
    let mut files = Vec::new();
    let mut add = |key, path: Option<&PathBuf>, secret| {
        files
            .extend(path.filter(|path| !path.as_os_str().is_empty()).map(|path| (key, path.clone(), secret)));
    };
    if let Some(VerifyKeySource::File(path)) = &config.enroll.jwt_verify {
        add("jwt_verify_cert", Some(path), false);
    }
    add("jwt_signing_key", config.enroll.jwt_signing_key.as_ref(), true);
    add("jwt_signing_token", config.enroll.jwt_signing_token.as_ref(), true);
    add("plugin.nats.credentials", config.broker.credentials_file.as_ref(), true);
    match &config.security {
        Security::Insecure { .. } => {}
        Security::X509 { tls, .. } => {
            add("plugin.security.file.certificate", tls.certificate.as_ref(), false);
            add("plugin.security.file.key", tls.key.as_ref(), true);
            add("plugin.security.file.ca", tls.ca.as_ref(), false);
        }
        Security::Choria { token_file, seed_file, tls } => {
            add("plugin.security.choria.token_file", Some(token_file), true);
            add("plugin.security.choria.seed_file", Some(seed_file), true);
            add("plugin.security.choria.certificate", tls.certificate.as_ref(), false);
            add("plugin.security.choria.key", tls.key.as_ref(), true);
            add("plugin.security.choria.ca", tls.ca.as_ref(), false);
        }
    }
    files
}

fn readable(key: &str, path: &Path, secret: bool, around: &Surroundings<'_>, faults: &mut Faults) {
    let shown = path.display();
    let opened = File::open(around.absolute(path)).and_then(|file| {
        let metadata = file.metadata()?;
        if metadata.is_dir() { Err(io::Error::other("it is a folder")) } else { Ok(metadata) }
    });
    match opened {
        Err(error) => {
            let help =
                "create it, or correct the path; the user that runs this program must be able to read it";
            faults.missing(key, format!("`{shown}` cannot be read: {error}"), help);
        }
        Ok(metadata) if metadata.len() == 0 => {
            faults.missing(key, format!("`{shown}` is empty"), "write the key or token into it");
        }
        Ok(metadata) if secret && metadata.permissions().mode() & 0o007 != 0 => {
            let what = format!(
                "everybody on this machine may read `{shown}` (mode {:04o})",
                metadata.permissions().mode() & 0o7777
            );
            faults.about(Severity::Warning, FaultKind::Files, key, what, &format!("chmod o= {shown}"));
        }
        Ok(_) => {}
    }
}

fn helper(program: &str, around: &Surroundings<'_>, faults: &mut Faults) {
    const KEY: &str = "helper";
    if program.is_empty() {
        return;
    }
    let Some(path) = find_program(program, around) else {
        let what = format!("`{program}` is not in the PATH");
        faults.missing(KEY, what, "write the whole path of the helper");
        return;
    };
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) => {
            faults.missing(
                KEY,
                format!("`{}` cannot be found: {error}", path.display()),
                "install it, or correct the path",
            );
            return;
        }
    };
    if !metadata.is_file() {
        faults.missing(KEY, format!("`{}` is no file", path.display()), "write the path of a program");
    } else if rustix::fs::access(&path, Access::EXEC_OK).is_err() {
        let what = format!("`{}` is not executable for the user that runs this program", path.display());
        faults.missing(KEY, what, &format!("chmod +x {}", path.display()));
    } else if metadata.permissions().mode() & 0o002 != 0 {
        let what = format!(
            "everybody on this machine may change `{}`, which decides what servers get",
            path.display()
        );
        faults.about(
            Severity::Warning,
            FaultKind::Files,
            KEY,
            what,
            &format!("chmod o-w {}", path.display()),
        );
    }
}

/// A name without a slash is looked up in the PATH; `None` when it is nowhere there.
fn find_program(program: &str, around: &Surroundings<'_>) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(around.absolute(Path::new(program)));
    }
    let path = around.env.get("PATH").unwrap_or_default();
    let runnable = |file: &PathBuf| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    path.split(':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| Path::new(folder).join(program))
        .find(runnable)
}

fn log_file(config: &Config, around: &Surroundings<'_>, faults: &mut Faults) {
    let LogTarget::File(path) = &config.log.target else { return };
    let path = around.absolute(path);
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let problem = if !folder.is_dir() {
        Some(format!("the folder `{}` does not exist", folder.display()))
    } else if path.exists() {
        if path.is_dir() {
            Some(format!("`{}` is a folder", path.display()))
        } else {
            rustix::fs::access(&path, Access::WRITE_OK)
                .err()
                .map(|error| format!("`{}` cannot be written: {error}", path.display()))
        }
    } else {
        let denied = rustix::fs::access(folder, Access::WRITE_OK).err();
        denied.map(|error| format!("no file can be made in `{}`: {error}", folder.display()))
    };
    if let Some(what) = problem {
        faults.missing("logfile", what, "make the folder, or write stdout");
        return;
    }
    if let Ok(metadata) = std::fs::metadata(&path)
        && metadata.is_file()
        && metadata.permissions().mode() & 0o027 != 0
    {
        let mode = metadata.permissions().mode() & 0o7777;
        let what = format!("others may read or change the log file `{}` (mode {mode:04o})", path.display());
        faults.about(
            Severity::Warning,
            FaultKind::Files,
            "logfile",
            what,
            &format!("chmod 0640 {}", path.display()),
        );
    }
}

/// A configuration file that holds a secret is for its owner and group.
fn config_file(file: &Path, secrets: &[&str], faults: &mut Faults) {
    let Some(key) = secrets
        .iter()
        .find(|key| faults.place(key).is_some_and(|(at, _)| at.file_name() == file.file_name()))
    else {
        return;
    };
    if let Ok(metadata) = std::fs::metadata(file)
        && metadata.permissions().mode() & 0o007 != 0
    {
        let mode = metadata.permissions().mode() & 0o7777;
        let what =
            format!("it is a secret, and everybody on this machine may read this file (mode {mode:04o})");
        faults.about(
            Severity::Warning,
            FaultKind::Files,
            key,
            what,
            &format!("chmod 0640 {}", file.display()),
        );
    }
}
