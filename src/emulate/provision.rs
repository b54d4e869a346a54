//! The actions of a server in provisioning mode with their exact texts (choria.md 4.2 to 4.4).

use std::collections::BTreeMap;
use std::time::Duration;

use ed25519_dalek::{Signer as _, SigningKey};
use quartermaster_proto::choria::ecdh::KeyPair;
use quartermaster_proto::choria::envelope::Request;
use quartermaster_proto::choria::event::EventKind;
use quartermaster_proto::choria::rpc::RpcRequest;
use quartermaster_proto::time::WallClock;
use serde_json::json;

use super::arguments::Arguments;
use super::fault::Fault;
use super::record::Phase;
use super::server::{AGENT_LIMIT, AGENTS, Action, Answer, COLLECTIVE, Note, Server, Serving, Turn};
use super::{configure, csr, wire};

const LOCKED: [&str; 5] = ["configure", "gen25519", "gencsr", "jwt", "release_update"];
const ACTIONS: [&str; 8] =
    ["configure", "gen25519", "gencsr", "jwt", "release_update", "reprovision", "restart", "shutdown"];

/// Agent rpcutil: ping and inventory.
pub(super) fn rpcutil(server: &Server, action: &str, now: WallClock) -> Turn {
    match action {
        "ping" => Turn::of(Answer::Done(format!("{{\"pong\":{}}}", now.seconds()))),
        "inventory" => Turn::of(Answer::Done(inventory(server))),
        _ => Turn::of(Answer::Refused(2, format!("Unknown action {action} for agent rpcutil"))),
    }
}

/// The nine keys in the order of real servers. The facts stay the text they were given as, digit for digit.
fn inventory(server: &Server) -> String {
    let mut agents = AGENTS;
    agents.sort_unstable();
    let facts = match server.fault("inventory", |fault| matches!(fault, Fault::Facts(_))) {
        Some(Fault::Facts(size)) => json!({"filler": "x".repeat(size)}).to_string(),
        _ => server.profile.facts.clone(),
    };
    format!(
        concat!(
            r#"{{"agents":{agents},"classes":[],"collectives":["{collective}"],"data_plugins":[],"facts":{facts},"#,
            r#""machines":[],"main_collective":"{collective}","version":{version},"upgradable":{upgradable}}}"#
        ),
        agents = json!(agents),
        collective = COLLECTIVE,
        facts = facts,
        version = json!(server.version()),
        upgradable = server.profile.upgradable,
    )
}

/// Agent choria_provision: the lock, then the mode, then the arguments, then the token, then the work.
pub(super) fn choria_provision(
    server: &mut Server,
    request: &Request,
    call: &RpcRequest,
    now: WallClock,
) -> Turn {
    let action = call.action.as_str();
    if !ACTIONS.contains(&action) {
        return Turn::of(Answer::Refused(2, format!("Unknown action {action} for agent choria_provision")));
    }
    if server.record.first_request.is_none() {
        server.record.first_request = Some(now);
    }
    if LOCKED.contains(&action) && !server.lock(request, now) {
        server.record.lock_refusals += 1;
        let mut turn = refuse(server, "Could not obtain provisioning lock");
        turn.before.push(Action::Note(Note::LockRefused));
        return turn;
    }
    if matches!(server.record.phase, Phase::Restarting | Phase::Stopping) {
        // A restarting server holds the agent's mutex: the call waits and dies with the process.
        return Turn::of(Answer::Nothing);
    }
    if action == "reprovision" {
        return refuse(
            server,
            "Server is already in provisioning mode, cannot enable provisioning mode again",
        );
    }
    if action == "release_update" && !server.profile.upgradable {
        return refuse(server, "Version updates is not enabled in the configuration");
    }
    let arguments = match Arguments::decode(action, &call.data) {
        Ok(arguments) => arguments,
        Err(text) => {
            server.record.last_error = Some(text.clone());
            return Turn::of(Answer::Refused(4, text));
        }
    };
    let other_token = server.fault(action, |fault| matches!(fault, Fault::WrongToken)).is_some();
    if other_token || (!server.profile.token.is_empty() && arguments.text("token") != server.profile.token) {
        server.record.token_refusals += 1;
        let mut turn = refuse(server, "Incorrect provision token supplied");
        turn.before.push(Action::Note(Note::TokenRefused));
        return turn;
    }
    match action {
        "jwt" => jwt(server),
        "gen25519" => gen25519(server, &arguments),
        "gencsr" => gencsr(server, &arguments),
        "configure" => configure::configure(server, &arguments, now),
        "restart" => restart(server, &arguments, now),
        "release_update" => release_update(server, &arguments, now),
        _ => shutdown(server),
    }
}

/// A refusal that the server's record remembers.
pub(super) fn refuse(server: &mut Server, text: impl Into<String>) -> Turn {
    let text = text.into();
    server.record.last_error = Some(text.clone());
    Turn::refused(text)
}

fn jwt(server: &mut Server) -> Turn {
    let pair = KeyPair::generate(server.dice.bytes32());
    let hostile = server.malformation("jwt").and_then(|kind| server.profile.hostile_jwts.get(&kind));
    let token = hostile.unwrap_or(&server.profile.jwt);
    let answer = format!("{{\"jwt\":{},\"ecdh_public\":{}}}", json!(token), json!(pair.public_hex()));
    server.ecdh = Some(pair);
    Turn::of(Answer::Done(answer))
}

fn gen25519(server: &mut Server, arguments: &Arguments) -> Turn {
    let seed = server.dice.bytes32();
    let key = SigningKey::from_bytes(&seed);
    server.disk.server_jwt = None;
    server.disk.seed = Some(seed);
    let signature = key.sign(arguments.text("nonce").as_bytes());
    Turn::of(Answer::Done(format!(
        "{{\"public_key\":\"{}\",\"directory\":{},\"signature\":\"{}\"}}",
        hex::encode(key.verifying_key().to_bytes()),
        json!(server.profile.config_dir),
        hex::encode(signature.to_bytes()),
    )))
}

fn gencsr(server: &mut Server, arguments: &Arguments) -> Turn {
    let cn = match arguments.text("cn") {
        "" => server.identity.as_str(),
        cn => cn,
    };
    // ST is accepted and ignored, as by real servers.
    let subject = csr::Subject {
        cn: cn.to_owned(),
        c: arguments.text("C").to_owned(),
        o: arguments.text("O").to_owned(),
        ou: arguments.text("OU").to_owned(),
        l: arguments.text("L").to_owned(),
    };
    match server.profile.keys.request(&subject, server.malformation("gencsr")) {
        Ok(request) => Turn::of(Answer::Done(format!(
            "{{\"csr\":{},\"public_key\":{},\"ssldir\":{}}}",
            json!(request.csr),
            json!(request.public_key),
            json!(server.profile.ssl_dir()),
        ))),
        Err(error) => refuse(server, format!("Could not create private key: {error}")),
    }
}

fn restart(server: &mut Server, arguments: &Arguments, now: WallClock) -> Turn {
    let file = server.profile.config_file();
    let Some(config) = &server.disk.config else {
        let text = format!(
            "Configuration {file} could not be parsed, restart cannot continue: open {file}: no such file or directory"
        );
        return refuse(server, text);
    };
    if provisions(config) == Some(true) {
        return refuse(server, format!("Configuration {file} enables provisioning, restart cannot continue"));
    }
    let splay = match arguments.integer("splay") {
        0 => 10,
        seconds => u64::try_from(seconds).unwrap_or(0),
    };
    let delay = Duration::from_secs(2) + server.dice.seconds_below(splay);
    let mut turn = restarting(server, delay, now);
    turn.answer = message(&format!("Restarting Choria Server after {}", go_duration(delay)));
    if let Some(first) = server.record.first_request {
        let nanos = u64::try_from(now.nanos().saturating_sub(first.nanos())).unwrap_or(0);
        server.record.cycle_ms = Some(nanos / 1_000_000);
        turn.after.push(Action::Note(Note::Cycle(Duration::from_nanos(nanos))));
    }
    turn
}

/// The shutdown event and the delay that come before each restart.
fn restarting(server: &mut Server, delay: Duration, now: WallClock) -> Turn {
    let mut turn = Turn::of(Answer::Nothing);
    turn.before.push(server.event(EventKind::Shutdown, now));
    turn.after.extend(server.enter(Phase::Restarting));
    turn.after.push(Action::Wake(server.profile.restart_delay.unwrap_or(delay)));
    turn
}

fn release_update(server: &mut Server, arguments: &Arguments, now: WallClock) -> Turn {
    let version = arguments.text("version").to_owned();
    if server.fault("release_update", |fault| matches!(fault, Fault::FailUpdate)).is_some() {
        let text = format!(
            "Update to version {version} failed, release rolled back: could not download release: 404 Not Found"
        );
        return refuse(server, text);
    }
    let takes = match server.fault("release_update", |fault| matches!(fault, Fault::SlowUpdate(_))) {
        Some(Fault::SlowUpdate(takes)) => takes,
        _ => Duration::ZERO,
    };
    let delay = Duration::from_secs(2);
    let old = server.version().to_owned();
    server.disk.version = Some(version.clone());
    server.record.updates += 1;
    let id = server.dice.bytes16();
    let upgraded = wire::event(
        EventKind::Upgraded,
        server.identity.as_str(),
        "provision_mode_server",
        &old,
        Some(&version),
        id,
        now,
    );
    let mut turn = restarting(server, takes + delay, now);
    turn.before.insert(0, upgraded);
    turn.before.push(Action::Note(Note::Updated));
    turn.takes = takes;
    if takes < AGENT_LIMIT {
        turn.answer = message(&format!("Restarting Choria Server after {}", go_duration(delay)));
    }
    turn
}

fn shutdown(server: &mut Server) -> Turn {
    let delay = server.dice.seconds_below(10);
    let mut turn = Turn::of(message(&format!("Shutting Choria Server down after {}", go_duration(delay))));
    turn.after.extend(server.enter(Phase::Stopping));
    turn.after.push(Action::Wake(server.profile.restart_delay.unwrap_or(delay)));
    turn
}

/// The one output of the actions that only report.
pub(super) fn message(text: &str) -> Answer {
    Answer::Done(json!({ "message": text }).to_string())
}

/// Whole seconds in the way Go prints them.
fn go_duration(delay: Duration) -> String {
    format!("{}s", delay.as_secs())
}

/// What the configuration says about provisioning, read as Choria reads booleans.
fn provisions(config: &BTreeMap<String, String>) -> Option<bool> {
    let value = config.get("plugin.choria.server.provision")?.to_ascii_lowercase();
    Some(matches!(value.as_str(), "1" | "yes" | "true" | "y" | "t"))
}

/// How the server connects with its new configuration; none when it provisions again (choria.md 4.1).
pub(super) fn serving(server: &Server) -> Option<Serving> {
    let config = server.disk.config.as_ref()?;
    if provisions(config) != Some(false) {
        return None;
    }
    let provider = config.get("plugin.security.provider").map(String::as_str).unwrap_or_default();
    let login = server.disk.server_jwt.clone().zip(server.disk.seed);
    let default = if provider == "choria" {
        // Without usable credentials such a server falls back to provisioning, whatever its configuration says.
        login.as_ref()?;
        "choria"
    } else {
        "mcollective"
    };
    let collectives = config.get("collectives").map_or_else(
        || vec![default.to_owned()],
        |list| list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
    );
    let identity = config.get("identity").cloned().unwrap_or_else(|| server.identity.to_string());
    Some(Serving { identity, collectives, login: if provider == "choria" { login } else { None } })
}
