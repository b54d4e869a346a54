//! What the configuration names: the helper, keys, tokens, folders, and who else may read them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quartermaster_actors::builtin::Builtin;
use quartermaster_actors::vault;
use quartermaster_proto::provider::Schema;
use rustix::fs::Access;

use super::{steps, web};
use crate::app::{providers, settings};
use crate::clock;
use crate::config::{Config, FaultKind, Faults, LogTarget, ProviderConfig, Severity, Surroundings};

/// Looks at everything the configuration names. Nothing is changed, started or connected to; what the providers of steps declare
/// is answered.
pub fn examine(
    config: &Config,
    around: &Surroundings<'_>,
    faults: &mut Faults,
) -> BTreeMap<String, Arc<Schema>> {
    helper(&config.helper.command.program, around, faults);
    secrets(config, faults);
    credentials(config, faults);
    for provider in &config.providers {
        program_of(config, provider, faults);
    }
    let schemas = steps::examine(config, faults);
    log_file(config, around, faults);
    web::examine(&config.web, faults);
    config_file(&config.yaml_file, &["token", "broker_provisioning_password", "control.password"], faults);
    config_file(&config.choria_file, &["plugin.nats.pass"], faults);
    schemas
}

/// Keys, tokens and certificates, each read and tried as the vault will.
fn secrets(config: &Config, faults: &mut Faults) {
    let mut found = vault::examine(&settings::vault(config), clock::now());
    if let Some(login) = &config.control.login {
        let own = settings::plain_vault(config.identity.as_str(), login);
        found.extend(vault::examine(&own, clock::now()));
    }
    for fault in found {
        // A path that is not set at all has been said already.
        if fault.path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            continue;
        }
        let severity = match fault.severity {
            vault::Severity::Warn => Severity::Warning,
            vault::Severity::Refuse => Severity::Error,
        };
        let shown = fault.path.map(|path| path.display().to_string()).unwrap_or_default();
        let what = if fault.message.contains(&shown) {
            fault.message
        } else {
            format!("`{shown}`: {}", fault.message)
        };
        let help = match severity {
            Severity::Warning => "",
            Severity::Error => {
                "correct the path or the file; the user that runs this program must be able to read it"
            }
        };
        faults.about(severity, FaultKind::Files, fault.key, what, help);
    }
}

/// A login that this version cannot make must not be left out in silence.
fn credentials(config: &Config, faults: &mut Faults) {
    if let Some(path) = &config.broker.credentials_file {
        faults.error(
            "plugin.nats.credentials",
            format!(
                "`{}` cannot be used: this version does not log in with NATS credentials files",
                path.display()
            ),
            "remove the line; Choria brokers let the provisioner in by password, client certificate or token",
        );
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

/// A provider's program: there, executable, and the one that was pinned. Nothing is started.
fn program_of(config: &Config, provider: &ProviderConfig, faults: &mut Faults) {
    let key = format!("providers.{}.source", provider.name);
    if let Some(builtin) = provider.builtin.as_deref().and_then(Builtin::find) {
        if builtin.starts_programs() && (config.providers_dir.is_some() || config.providers_allow.is_some()) {
            let what = format!("{builtin} starts any program, but only some may be started here");
            faults.error(
                &key,
                what,
                "remove providers_dir and providers_allow, or use a provider of your own",
            );
        }
        return;
    }
    let hint = provider.install_hint.as_deref().unwrap_or("install it, or correct the path");
    let shown = provider.program.display();
    match std::fs::metadata(&provider.program) {
        Err(error) => return faults.missing(&key, format!("`{shown}` cannot be found: {error}"), hint),
        Ok(metadata) if !metadata.is_file() => {
            return faults.missing(&key, format!("`{shown}` is no file"), "write the path of a program");
        }
        Ok(_) if rustix::fs::access(&provider.program, Access::EXEC_OK).is_err() => {
            let what = format!("`{shown}` is not executable for the user that runs this program");
            return faults.missing(&key, what, &format!("chmod +x {shown}"));
        }
        Ok(metadata) if metadata.permissions().mode() & 0o002 != 0 => {
            let what = format!("everybody on this machine may change `{shown}`");
            faults.about(Severity::Warning, FaultKind::Files, &key, what, &format!("chmod o-w {shown}"));
        }
        Ok(_) => {}
    }
    if let Err(error) = providers::settings(config, provider).trust.verify(&provider.program) {
        let help = "look who changed the program, or correct sha256, providers_dir or providers_allow";
        faults.missing(&key, error.to_string(), help);
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
