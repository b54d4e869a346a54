//! The same texts mean the same here and in the libraries of the peer: `vectors/` holds what those made of them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::raw::RawConfig;
use super::surroundings::Surroundings;
use super::yaml::Value;
use super::{Faults, choria_cfg, split, yaml};
use crate::machine::MachineNames;

fn cases(text: &str) -> Vec<Json> {
    let cases: Vec<Json> = serde_json::from_str(text).unwrap();
    assert!(cases.len() >= 50);
    cases
}

/// The raw configuration, or the errors.
fn read(text: &str) -> Result<RawConfig, String> {
    let mut faults = Faults::default();
    let document = yaml::parse(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| error.what)?;
    let Some(Value::Map(entries)) = document.root.map(|root| root.value) else {
        return Err("no map".to_owned());
    };
    let raw = RawConfig::from_map(Path::new("p.yaml"), entries, &mut faults);
    match faults.errors().next() {
        None => Ok(raw),
        Some(fault) => Err(fault.what.clone()),
    }
}

#[test]
fn yaml_files_mean_what_they_mean_to_the_peer() {
    for case in cases(include_str!("vectors/yaml.json")) {
        let text = case["case"].as_str().unwrap();
        let raw = read(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let ours = json!({
            "workers": raw.workers.unwrap_or(0),
            "interval": raw.interval.unwrap_or_default(),
            "site": raw.site.unwrap_or_default(),
            "choria_insecure": raw.choria_insecure.unwrap_or(false),
            "monitor_port": raw.monitor_port.unwrap_or(0),
            "cert_deny_list": raw.cert_deny_list,
            "features": {"pki": raw.features.pki.unwrap_or(false), "jwt": raw.features.jwt.unwrap_or(false)},
        });
        assert_eq!(ours, case["config"], "{text:?}");
    }
}

#[test]
fn types_the_peer_refuses_are_refused() {
    for case in cases(include_str!("vectors/yaml_refused.json")) {
        let text = case.as_str().unwrap();
        assert!(read(text).is_err(), "{text:?}");
    }
}

#[test]
fn helper_lines_are_split_alike() {
    for case in cases(include_str!("vectors/shell.json")) {
        let line = case["line"].as_str().unwrap();
        let ours = split(line).map_or(Json::Null, |words| json!(words));
        assert_eq!(ours, case["words"], "{line:?}");
    }
}

#[test]
fn client_files_are_read_alike() {
    let env = BTreeMap::from([("HOME".to_owned(), "/home/prov".to_owned())]);
    let folder = tempfile::tempdir().unwrap();
    let around = Surroundings {
        env: &env,
        names: &MachineNames,
        cwd: folder.path().to_owned(),
        is_root: true,
        cpus: NonZeroUsize::MIN,
    };
    let file = folder.path().join("c.cfg");
    for case in cases(include_str!("vectors/cfg.json")) {
        let text = case["text"].as_str().unwrap();
        std::fs::write(&file, text).unwrap();
        let cfg = choria_cfg::read(&file, &around, &mut Faults::default()).unwrap();
        let mut peer = case["cfg"].as_object().unwrap().clone();
        for (key, value) in peer.remove("raw").unwrap().as_object().unwrap() {
            assert_eq!(cfg.option(key), value.as_str(), "{key} in {text:?}");
        }
        let seconds =
            cfg.duration("plugin.choria.network.connect_timeout").map_or(2.0, |limit| limit.as_secs_f64());
        let hosts = "plugin.choria.middleware_hosts";
        let ours = json!({
            "identity": cfg.text("identity"),
            "ttl": cfg.int("ttl").unwrap_or(60),
            "disc": cfg.int("discovery_timeout").unwrap_or(2),
            "provider": cfg.text("plugin.security.provider").unwrap_or("puppet"),
            "hosts": cfg.option(hosts).map(|_| cfg.list(hosts)),
            "srv": cfg.boolean("plugin.choria.use_srv").unwrap_or(true),
            "domain": cfg.text("plugin.choria.srv_domain").unwrap_or_default(),
            "cert": cfg.text("plugin.security.file.certificate").unwrap_or_default(),
            "user": cfg.text("plugin.nats.user").unwrap_or_default(),
        });
        let timeout = peer.remove("timeout").unwrap().as_f64().unwrap() / 1e9;
        assert!((timeout - seconds).abs() < 1e-6, "{text:?}: {seconds}");
        assert_eq!(ours, Json::Object(peer), "{text:?}");
    }
}
