//! A site whose servers get a DNS record and a certificate from providers before they are configured, and an entry in an inventory
//! after that: the example of the documentation, with its files in a folder of the test.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::prove_site::Site;
use super::support::{eventually, skip};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/steps");

/// The site and what its providers keep.
pub struct Steps {
    pub site: Site,
}

impl Steps {
    /// None, said in one line, where there is no broker or no Python.
    pub fn new() -> Option<Self> {
        if std::process::Command::new("python3").arg("-V").output().is_err() {
            skip("providers of steps", "python3 not found on the PATH");
            return None;
        }
        let site = Site::new()?;
        let folder = site.path("registry");
        fs::create_dir_all(folder.join("hold")).unwrap();
        let yaml = fs::read_to_string(format!("{EXAMPLE}/steps.yaml")).unwrap();
        let mut yaml = yaml.replace("exec:registry.py", &format!("exec:{EXAMPLE}/registry.py"));
        for name in ["dns", "ca", "cmdb"] {
            let more = format!("{name}.json, log: {0}/log, hold: {0}/hold", folder.display());
            yaml = yaml.replace(&format!("{name}.json"), &more);
        }
        let yaml = yaml.replace("/var/lib/registry", &folder.display().to_string());
        let text = fs::read_to_string(&site.files.config).unwrap();
        let state = site.path("state");
        let more = format!("state_dir: {}\nretry: {{first: 1s, cap: 2s}}\n", state.display());
        fs::write(&site.files.config, format!("{text}\n{more}\n{yaml}")).unwrap();
        Some(Self { site })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.site.path("registry").join(name)
    }

    /// While this is set, the inventory takes nothing.
    pub fn refuse(&self, yes: bool) {
        let file = self.path("refuse");
        if yes {
            fs::write(file, "").unwrap();
        } else {
            let _ = fs::remove_file(file);
        }
    }

    /// Calls of this action wait at this place (`before` or `after` it was done) until they are let go.
    pub fn hold(&self, place: &str, action: &str) {
        fs::write(self.path("hold").join(format!("{place}-{action}")), "").unwrap();
    }

    pub fn let_go(&self) {
        for file in fs::read_dir(self.path("hold")).unwrap().flatten() {
            fs::remove_file(file.path()).unwrap();
        }
    }

    /// What a provider keeps: the names by key.
    pub fn things(&self, provider: &str) -> BTreeMap<String, String> {
        let text = fs::read_to_string(self.path(&format!("{provider}.json"))).unwrap_or_else(|_| "{}".into());
        let all: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        all.into_iter().map(|(key, thing)| (key, thing["name"].as_str().unwrap().to_owned())).collect()
    }

    /// Every call, as the providers saw it.
    pub fn log(&self) -> Vec<String> {
        fs::read_to_string(self.path("log")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub async fn seen(&self, begins: &str, times: usize) {
        eventually(&format!("{begins:?} is seen"), || {
            self.log().iter().filter(|line| line.starts_with(begins)).count() >= times
        })
        .await;
    }

    /// Everything is there for this server, once.
    pub fn assert_complete(&self, server: &str) {
        for provider in ["dns", "ca", "cmdb"] {
            let things = self.things(provider);
            assert_eq!(
                things.values().collect::<Vec<_>>(),
                [server],
                "{provider}: {things:?}\n{:#?}",
                self.log()
            );
        }
    }
}
