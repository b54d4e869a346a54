//! Action `configure` (choria.md 4.4): every check in the order of real servers, with their texts.

use std::collections::BTreeMap;

use quartermaster_proto::choria::event::EventKind;
use quartermaster_proto::choria::pem;
use quartermaster_proto::time::WallClock;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::arguments::{Arguments, go_kind};
use super::fault::Fault;
use super::provision::{message, refuse};
use super::server::{Action, Note, Server, Turn};
use super::verify;

/// Takes a configuration.
pub(super) fn configure(server: &mut Server, arguments: &Arguments, now: WallClock) -> Turn {
    let text = arguments.text("config");
    if text.is_empty() {
        return refuse(
            server,
            "Did not receive any configuration to write, cannot write a empty configuration file",
        );
    }
    if !arguments.text("key").is_empty() && arguments.text("ecdh_public").is_empty() {
        return refuse(server, "EDCH Public Key not supplied while providing a private key");
    }
    let config = match decode(text) {
        Ok(config) => config,
        Err(error) => return refuse(server, format!("Could not decode configuration data: {error}")),
    };
    if let Some(Fault::AbortConfigure(times)) =
        server.fault("configure", |fault| matches!(fault, Fault::AbortConfigure(_)))
        && server.spent.aborted < times
    {
        server.spent.aborted += 1;
        let file = server.profile.config_file();
        return refuse(server, format!("Could not write config: write {file}: no space left on device"));
    }
    let mut complaints = Vec::new();
    if let Err(error) = take_tls(server, arguments, &mut complaints) {
        return refuse(server, format!("TLS Setup Failed: {error}"));
    }
    let server_jwt = arguments.text("server_jwt");
    if !server_jwt.is_empty() {
        if let Err(error) = verify::server_token(server, server_jwt, now) {
            complaints.push(format!("the server token does not hold: {error}"));
        }
        server.disk.server_jwt = Some(server_jwt.to_owned());
    }
    let lines = config.len() + 1;
    server.disk.config = Some(config);
    server.record.config_digest = Some(hex::encode(Sha256::digest(text.as_bytes())));
    for (argument, suffix, what) in [
        ("action_policies", ".policy", "Action Policies"),
        ("opa_policies", ".rego", "Open Policy Agent Policies"),
    ] {
        for (name, content) in arguments.texts(argument) {
            if !name.is_empty() && !content.is_empty() && !name.ends_with(suffix) {
                return refuse(server, format!("Could not save {what}: invalid policy file name {name}"));
            }
        }
    }
    // A server that fell back to provisioning mode has to be configured again; anything else is once too often.
    let again = server.record.configures > server.record.relapses;
    server.record.configures += 1;
    let mut turn = Turn::of(message(&format!("Wrote {lines} lines to {}", server.profile.config_file())));
    turn.before.extend(complaints.into_iter().map(|text| server.complain(text)));
    turn.before.push(Action::Note(Note::Configured(again)));
    turn.before.push(server.event(EventKind::Provisioned, now));
    turn
}

/// The configuration is one JSON object of strings.
fn decode(text: &str) -> Result<BTreeMap<String, String>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Value::Object(map) = value else {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]string",
            go_kind(&value)
        ));
    };
    map.into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Null => Ok((name, String::new())),
            other => Err(format!("json: cannot unmarshal {} into Go value of type string", go_kind(&other))),
        })
        .collect()
}

/// TLS files count only when certificate, ca and ssldir are all there; a key without them is ignored.
fn take_tls(server: &Server, arguments: &Arguments, complaints: &mut Vec<String>) -> Result<(), String> {
    let given = ["certificate", "ca", "ssldir"].iter().all(|name| !arguments.text(name).is_empty());
    let key = arguments.text("key");
    if !given || key.is_empty() {
        return Ok(());
    }
    let failed = |why: String| format!("could not decrypt private key: {why}");
    let pair = server.ecdh.as_ref().ok_or_else(|| failed("private key not set".to_owned()))?;
    let shared = pair
        .shared_secret(arguments.text("ecdh_public"))
        .map_err(|error| failed(format!("bad key received: {error}")))?;
    let clear = pem::decrypt_private_key(key, &shared).map_err(|error| failed(error.to_string()))?;
    if let Err(error) = verify::key_fits(&clear, arguments.text("certificate")) {
        complaints.push(format!("the private key does not fit the certificate: {error}"));
    }
    Ok(())
}
