//! A key-value store of version 2: a small one whose answers are those that HashiCorp's plugin of the kind gave when it was asked the same.
#![allow(dead_code, reason = "several test programs share this and each uses a part of it")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use quartermaster_node::vault::kv::{KvAuth, KvSettings};
use serde_json::{Value, json};

use super::web::{Answer, Asked, Web, fixture};

pub const TOKEN: &str = "hvs.test-token";
pub const ROLE: &str = "role-1";
pub const SECRET_ID: &str = "secret-id-1";

/// One version.
#[derive(Clone)]
struct Version {
    data: Option<Value>,
    at: u64,
}

/// What the store holds, and how it behaves.
#[derive(Default)]
pub struct State {
    names: BTreeMap<String, Vec<Version>>,
    clock: u64,
    pub is_sealed: bool,
    /// Names that our policy does not grant.
    pub is_forbidden: Vec<String>,
    /// Tokens that are good; the first is what `AppRole` hands out.
    pub tokens: Vec<String>,
    pub logins: usize,
    pub renewals: usize,
    pub token_life: u64,
    /// Answered instead of anything else.
    pub status: Option<u16>,
    /// Answered to the next reading instead of what is there: the version before the last.
    pub is_late: bool,
}

/// The small store.
pub struct FakeKv {
    pub web: Web,
    pub state: Arc<Mutex<State>>,
}

impl FakeKv {
    pub fn start(is_tls: bool) -> Self {
        let state = Arc::new(Mutex::new(State { tokens: vec![TOKEN.to_owned()], ..State::default() }));
        let answers = Arc::clone(&state);
        let web = Web::start(is_tls, Arc::new(move |asked| answers.lock().unwrap().answer(&asked)));
        Self { web, state }
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }

    pub fn address(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}", self.web.address.port())
    }

    /// How it is asked, with a token in a file of this folder.
    pub fn settings(&self, folder: &Path) -> KvSettings {
        let auth = KvAuth::Token { file: private(folder, "kv-token", TOKEN) };
        KvSettings::new(self.address("http"), "secret".to_owned(), auth)
    }

    /// As [`FakeKv::settings`], over TLS with the certificate for tests believed.
    pub fn tls_settings(&self, folder: &Path) -> KvSettings {
        let settings = self.settings(folder);
        KvSettings { address: self.address("https"), ca: Some(fixture("ca.pem")), ..settings }
    }
}

/// A file that only its owner may read.
pub fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn answer(status: u16, body: &Value) -> Answer {
    (status, vec![("content-type", "application/json".to_owned())], body.to_string().into_bytes())
}

fn errors(status: u16, said: &[&str]) -> Answer {
    answer(status, &json!({ "errors": said }))
}

fn data(status: u16, data: &Value) -> Answer {
    let body = json!({ "request_id": "3d6b…", "lease_id": "", "renewable": false, "lease_duration": 0,
        "data": data, "wrap_info": null, "warnings": null, "auth": null });
    answer(status, &body)
}

/// A path without what stands for characters that a path cannot hold.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn moment(at: u64) -> String {
    format!("2026-11-29T18:{:02}:{:02}.1234567Z", at / 60, at % 60)
}

impl Version {
    fn shown(&self, number: usize) -> Value {
        let gone = if self.data.is_none() { moment(self.at) } else { String::new() };
        json!({ "created_time": moment(self.at), "custom_metadata": null, "deletion_time": gone,
            "destroyed": false, "version": number })
    }
}

impl State {
    /// Somebody else writes a value, with these members.
    pub fn write(&mut self, name: &str, members: Value) {
        self.clock += 1;
        let at = self.clock;
        self.names.entry(name.to_owned()).or_default().push(Version { data: Some(members), at });
    }

    /// Somebody else deletes the last version.
    pub fn delete(&mut self, name: &str) {
        if let Some(version) = self.names.get_mut(name).and_then(|versions| versions.last_mut()) {
            version.data = None;
        }
    }

    /// Everything that is stored, as text.
    pub fn text(&self, name: &str) -> Option<String> {
        Some(self.names.get(name)?.last()?.data.as_ref()?["value"].as_str()?.to_owned())
    }

    fn answer(&mut self, asked: &Asked) -> Answer {
        if let Some(status) = self.status {
            return errors(status, &["told so"]);
        }
        if self.is_sealed {
            return errors(503, &["Vault is sealed"]);
        }
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let path = decoded(path.strip_prefix("/v1/").unwrap_or_default());
        let path = path.as_str();
        let token = asked.header("x-vault-token").unwrap_or_default().to_owned();
        if path == "auth/approle/login" {
            let body: Value = serde_json::from_slice(&asked.body).unwrap();
            if body["role_id"] != ROLE || body["secret_id"] != SECRET_ID {
                return errors(400, &["invalid role or secret ID"]);
            }
            self.logins += 1;
            let lease =
                json!({ "auth": { "client_token": self.tokens[0], "lease_duration": self.token_life } });
            return answer(200, &lease);
        }
        if !self.tokens.contains(&token) {
            return errors(403, &["permission denied"]);
        }
        match path {
            "auth/token/lookup-self" => {
                self.logins += 1;
                return data(200, &json!({ "ttl": self.token_life, "renewable": self.token_life > 0 }));
            }
            "auth/token/renew-self" => {
                self.renewals += 1;
                let lease = json!({ "client_token": token, "lease_duration": self.token_life });
                return answer(200, &json!({ "auth": lease }));
            }
            _ => {}
        }
        let Some((kind, name)) = path.strip_prefix("secret/").and_then(|rest| rest.split_once('/')) else {
            let said = format!("no handler for route \"{path}\". route entry not found.");
            return errors(404, &[&said]);
        };
        if self.is_forbidden.iter().any(|other| other == name) {
            return errors(403, &["1 error occurred:\n\t* permission denied\n\n"]);
        }
        match (asked.method.as_str(), kind) {
            ("GET", "data") => self.read(name),
            ("POST", "data") => self.post(name, &asked.body),
            ("GET", "metadata") if query == "list=true" => self.list(name),
            ("GET", "metadata") => self.metadata(name),
            ("DELETE", "metadata") => {
                self.names.remove(name);
                (204, Vec::new(), Vec::new())
            }
            _ => errors(405, &["unsupported operation"]),
        }
    }

    fn read(&mut self, name: &str) -> Answer {
        let Some(versions) = self.names.get(name) else { return errors(404, &[]) };
        let number = versions.len() - usize::from(std::mem::take(&mut self.is_late) && versions.len() > 1);
        let version = &versions[number - 1];
        let status = if version.data.is_some() { 200 } else { 404 };
        data(status, &json!({ "data": version.data, "metadata": version.shown(number) }))
    }

    fn post(&mut self, name: &str, body: &[u8]) -> Answer {
        let body: Value = serde_json::from_slice(body).unwrap();
        let last = self.names.get(name).map_or(0, Vec::len);
        if body["options"]["cas"] != last {
            return errors(400, &["check-and-set parameter did not match the current version"]);
        }
        self.write(name, body["data"].clone());
        data(200, &self.names[name][last].shown(last + 1))
    }

    fn list(&self, folder: &str) -> Answer {
        let mut keys: Vec<String> = Vec::new();
        for name in self.names.keys() {
            let Some(rest) = name.strip_prefix(&format!("{folder}/")) else { continue };
            let key = rest.split_once('/').map_or(rest.to_owned(), |(first, _)| format!("{first}/"));
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if keys.is_empty() { errors(404, &[]) } else { data(200, &json!({ "keys": keys })) }
    }

    fn metadata(&self, name: &str) -> Answer {
        let Some(versions) = self.names.get(name) else { return errors(404, &[]) };
        let each: BTreeMap<String, Value> = versions
            .iter()
            .zip(1..)
            .map(|(version, number)| (number.to_string(), version.shown(number)))
            .collect();
        data(200, &json!({ "current_version": versions.len(), "oldest_version": 0, "versions": each }))
    }
}
