//! The configuration in force, without its secrets.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::config::{
    Config, ControlLogin, HelperProtocol, ListenAddress, LogLevel, LogTarget, ProviderConfig, Security,
    ServerSource, StepConfig, TlsFiles, VerifyKeySource, show_duration,
};

/// In the place of a secret that is set.
const REDACTED: &str = "[redacted]";

/// Every key with the value in force; of a secret, whether it is set.
pub fn redacted(config: &Config) -> Value {
    json!({
        "files": {"config": config.yaml_file, "choria_config": config.choria_file},
        "identity": config.identity.as_str(),
        "workers": config.workers,
        "interval": show_duration(config.interval),
        "logfile": log_target(&config.log.target),
        "loglevel": log_level(config.log.level),
        "helper": {
            "program": config.helper.command.program,
            // Their values are the site's own, secrets perhaps among them.
            "arguments": config.helper.command.arguments.len(),
        },
        "helper_timeout": show_duration(config.helper.timeout),
        "helper_protocol": match config.helper.protocol {
            HelperProtocol::Exec => "exec",
            HelperProtocol::Provider => "provider",
        },
        "helper_env": config.helper.env,
        "token": secret(Some(&config.token)),
        "lifecycle_component": config.lifecycle_component,
        "site": config.site,
        "features": {
            "pki": config.features.pki,
            "jwt": config.features.jwt,
            "ed25519": config.features.ed25519,
            "upgrades": config.features.upgrades,
        },
        "jwt_verify_cert": config.enroll.jwt_verify.as_ref().map(|source| match source {
            VerifyKeySource::File(path) => path.display().to_string(),
            VerifyKeySource::Key(key) => hex::encode(key),
        }),
        "jwt_signing_key": config.enroll.jwt_signing_key,
        "jwt_signing_token": config.enroll.jwt_signing_token,
        "server_jwt_validity": show_duration(config.enroll.server_jwt_validity),
        "cert_deny_list": config.enroll.deny_list.iter().map(regex::Regex::as_str).collect::<Vec<_>>(),
        "upgrades_repository": without_login(&config.upgrades.repository),
        "upgrades_optional": config.upgrades.optional,
        "broker": broker(config),
        "security": security(&config.security),
        "listen": config.listen.map(|listen| match listen {
            ListenAddress::Everywhere { port } => format!("every address, port {port}"),
            ListenAddress::At(address) => address.to_string(),
        }),
        "listen_tls": config.web.tls.as_ref().map(|tls| json!({"certificate": tls.certificate, "key": tls.key})),
        "web": {
            "admin_token_file": config.web.admin_token_file,
            "read_token_file": config.web.read_token_file,
            "names": config.web.names,
        },
        "in_flight": config.in_flight,
        "queue": config.queue,
        "retry": {
            "first": show_duration(config.retry.first),
            "cap": show_duration(config.retry.cap),
            "give_up_after": config.retry.give_up_after.map_or_else(|| "never".to_owned(), show_duration),
        },
        "state_dir": config.state_dir,
        "control": {
            "enabled": config.control.enabled,
            "subject_prefix": config.control.subject_prefix,
            "login": config.control.login.as_ref().map(login),
        },
        "providers": config.providers.iter().map(provider).collect::<serde_json::Map<_, _>>(),
        "providers_dir": config.providers_dir,
        "providers_allow": config.providers_allow.as_ref().map(|list| list.iter().map(hex::encode).collect::<Vec<_>>()),
        "steps": {
            "before": config.steps.before.iter().map(step).collect::<Vec<_>>(),
            "after": config.steps.after.iter().map(step).collect::<Vec<_>>(),
        },
        "cluster": {
            "mode": config.cluster.as_str(),
            "connection": if config.claims.over_control { "control" } else { "provisioning" },
            "bucket": config.claims.bucket,
            "ttl_seconds": config.claims.ttl.as_secs(),
            "replicas": config.claims.replicas,
        },
        "strict": config.strict,
    })
}

fn secret(secret: Option<&SecretString>) -> &'static str {
    if secret.is_some_and(|secret| !secret.expose_secret().is_empty()) { REDACTED } else { "" }
}

fn log_target(target: &LogTarget) -> String {
    match target {
        LogTarget::Stdout => "stdout".to_owned(),
        LogTarget::Stderr => "stderr".to_owned(),
        LogTarget::Discard => "discard".to_owned(),
        LogTarget::File(path) => path.display().to_string(),
    }
}

const fn log_level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

/// An address may hold a user and a password.
fn without_login(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else { return address.to_owned() };
    if url.username().is_empty() && url.password().is_none() {
        return address.to_owned();
    }
    // Refused only by addresses that have no host, which have no user either.
    if url.set_username("").and_then(|()| url.set_password(None)).is_err() {
        return REDACTED.to_owned();
    }
    url.to_string()
}

fn login(login: &ControlLogin) -> Value {
    let servers = login.servers.as_ref();
    json!({
        "servers": servers.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "credentials": login.credentials,
        "user": login.user,
        "password": secret(login.password.as_ref()),
        "ca": login.tls.ca,
        "certificate": login.tls.certificate,
        "key": login.tls.key,
    })
}

fn broker(config: &Config) -> Value {
    let broker = &config.broker;
    json!({
        "servers": match &broker.servers {
            ServerSource::List(list) => json!(list.iter().map(ToString::to_string).collect::<Vec<_>>()),
            ServerSource::Srv { domain, services, fallback } => {
                json!({"domain": domain, "services": services, "fallback": fallback.to_string()})
            }
        },
        "user": broker.user,
        "password": secret(broker.password.as_ref()),
        "credentials_file": broker.credentials_file,
        "connect_timeout": show_duration(broker.connect_timeout),
        "discovery_timeout": show_duration(broker.discovery_timeout),
        "ttl_seconds": broker.ttl,
    })
}

fn security(security: &Security) -> Value {
    let files = |tls: &TlsFiles| json!({"certificate": tls.certificate, "key": tls.key, "ca": tls.ca});
    match security {
        Security::Insecure { certname } => json!({"provider": "insecure", "certname": certname}),
        Security::X509 { certname, tls } => {
            json!({"provider": "file", "certname": certname, "tls": files(tls)})
        }
        Security::Choria { token_file, seed_file, tls } => json!({
            "provider": "choria", "token_file": token_file, "seed_file": seed_file, "tls": files(tls),
        }),
    }
}

/// One provider; what it is configured with is its own, secrets perhaps among it.
fn provider(provider: &ProviderConfig) -> (String, Value) {
    let shown = json!({
        "program": provider.program,
        "builtin": provider.builtin,
        "sha256": provider.sha256.map(hex::encode),
        "config": provider.config.keys().map(|key| (key.clone(), REDACTED.into())).collect::<serde_json::Map<_, _>>(),
        "instances": provider.instances,
    });
    (provider.name.clone(), shown)
}

/// One step; texts in its attributes may be secret.
fn step(step: &StepConfig) -> Value {
    json!({
        "name": step.name,
        "provider": step.provider,
        "action": step.action,
        "attrs": step.attrs.keys().collect::<Vec<_>>(),
        "timeout": step.timeout.map(show_duration),
        "tries": step.tries,
        "on_failure": if step.ignore_failure { "ignore" } else { "fail" },
    })
}
