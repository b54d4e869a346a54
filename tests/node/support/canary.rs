//! Secrets that can be told apart from everything else, and the search for them: in everything that crossed the bus, in every
//! file of the site (buckets and streams as the broker keeps them, logs, audit, states, stores, core files), in what the
//! programs tell whoever asks (numbers, statuses), and in their arguments and environments.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Program, Tap};
use crate::forms::Canaries;

/// Shortest secret that can be told apart from anything else.
const SHORTEST: usize = 8;

/// The secrets of a site.
#[derive(Default)]
pub struct Canary {
    known: Canaries,
    is_any: bool,
}

impl Canary {
    /// Looks for this from here on; what is too short to be told apart is left out.
    pub fn watch(&mut self, what: &str, value: &[u8]) {
        if value.len() >= SHORTEST {
            self.known.bytes(what, value);
            self.is_any = true;
        }
    }

    /// Fails when one of the secrets is anywhere but below a machine's root; `outputs` is what the programs tell whoever asks.
    pub fn check(&self, site: &Path, tap: &Tap, programs: &[&Program], outputs: BTreeMap<String, Vec<u8>>) {
        assert!(self.is_any, "no secret was ever stored");
        let mut outputs = outputs;
        let mut folders = vec![site.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                // What lies below a machine's root is where secrets belong.
                let is_root = folder.parent() == Some(site) && path.ends_with("root");
                if kind.is_dir() && !is_root {
                    folders.push(path);
                } else if kind.is_file() && !path.ends_with(super::COPIED) {
                    let name = path.strip_prefix(site).unwrap().display().to_string();
                    outputs.insert(name, fs::read(&path).unwrap_or_default());
                }
            }
        }
        assert!(outputs.contains_key("vault.log"), "there are logs to look at");
        for (number, heard) in tap.all().into_iter().enumerate() {
            let headers = heard.headers.map(|headers| format!("{headers:?}")).unwrap_or_default();
            let whole = [heard.subject.as_bytes(), headers.as_bytes(), &heard.body].join(&b' ');
            outputs.insert(format!("message {number} on {}", heard.subject), whole);
        }
        for program in programs {
            for file in ["cmdline", "environ"] {
                let path = format!("/proc/{}/{file}", program.pid());
                outputs.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
        self.known.assert_unseen(&outputs);
    }
}
