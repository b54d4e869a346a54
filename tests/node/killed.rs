//! T52, T53, C37, C54: whatever is killed, and whenever, everything ends as if nothing had been; no file is ever a part of two.
//!
//! An ordinary run tries a sample of the points; `QM_NODE_KILLS=200` tries as many as one wants. `QM_NODE_SEED` repeats a run whose
//! seed was printed.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use quartermaster_proto::mesh::key;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::support::{COPIED, Module, Site, eventually, eventually_async};

/// Points of an ordinary run.
const SAMPLE: usize = 24;
/// Longest time from a change to the kill: a little longer than a change takes on a quiet machine.
const LONGEST: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Engine,
    Vault,
    Broker,
}

/// What is done before the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Another archive and plan: fetched, needs and items recorded, written.
    Plan,
    /// Another value of the secret: asked for, written.
    Secret,
    /// Another config value: written, reported.
    Config,
    /// Taken off and assigned again: removed, begun anew.
    Remove,
}

const ACTS: [Act; 4] = [Act::Plan, Act::Secret, Act::Config, Act::Remove];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A module whose files follow a counter, and what they must hold.
struct Stage {
    site: Site,
    random: StdRng,
    plan: usize,
    secret: String,
    config: usize,
    is_assigned: bool,
    revision: u64,
}

impl Stage {
    async fn start(name: &str) -> Option<Self> {
        let seed = number("QM_NODE_SEED", u64::from(std::process::id()));
        println!("{name}: QM_NODE_SEED={seed}");
        let mut site = Site::running(&["web1"], 1).await?;
        // Told with a copy of what it is told about, so that the last telling shows whether it was after the last writing.
        let teller = site.web1().teller("tell");
        let (from, to) = (site.web1().path("main"), site.web1().dir().join(COPIED));
        let script = format!("#!/bin/sh\n/bin/cp {} {}\n", from.display(), to.display());
        fs::write(&teller, script).unwrap();
        site.store("own/forge/pw", b"kill-secret-0");
        site.config("web1", "forge", "a", "0").await;
        let mut stage = Self {
            site,
            random: StdRng::seed_from_u64(seed),
            plan: 0,
            secret: "kill-secret-0".to_owned(),
            config: 0,
            is_assigned: true,
            revision: 0,
        };
        stage.assign().await;
        stage.ends_well().await;
        Some(stage)
    }

    fn module(&self) -> Module {
        let machine = self.site.web1();
        let tell = json!({"on-change": {"command": [machine.dir().join("commands/tell").to_str().unwrap()]}});
        let large = format!("plan {} ${{config:a}}\n", self.plan).repeat(4_000);
        machine
            .module("forge")
            .file("large", &large)
            .file_with("main", &format!("plan {} ${{config:a}} ${{secret:pw}}", self.plan), tell)
            .secret_file("pw", "pw", json!({}))
            .item("c", &format!("item of {}", self.plan))
    }

    /// What the files must hold in the end.
    fn expected(&self) -> BTreeMap<String, String> {
        if !self.is_assigned {
            return BTreeMap::new();
        }
        let Self { plan, config, secret, .. } = self;
        let large = format!("plan {plan} {config}\n").repeat(4_000);
        let main = format!("plan {plan} {config} {secret}");
        [("large", large), ("main", main), ("pw", secret.clone())]
            .map(|(name, text)| (name.to_owned(), text))
            .into()
    }

    async fn assign(&mut self) {
        self.is_assigned = true;
        self.revision = self.site.assign(&self.module()).await;
    }

    async fn act(&mut self, act: Act, round: usize) {
        match act {
            Act::Plan => {
                self.plan = round;
                self.assign().await;
            }
            Act::Secret => {
                self.secret = format!("kill-secret-{round}");
                self.site.canary.watch("the secret", self.secret.as_bytes());
            }
            Act::Config => {
                self.config = round;
                self.site.config("web1", "forge", "a", &round.to_string()).await;
            }
            Act::Remove if self.is_assigned => {
                self.is_assigned = false;
                self.site.unassign("web1", "forge").await;
            }
            Act::Remove => self.assign().await,
        }
    }

    /// Stores the secret; the vault, or the broker, may be killed while it does.
    fn try_to_store(&self) -> bool {
        self.site.try_store("own/forge/pw", self.secret.as_bytes())
    }

    /// Files are old or new, never a part, and nothing unfinished lies about once everything is at rest.
    fn check_whole(&self, before: &BTreeMap<String, String>) {
        let after = self.expected();
        for (name, text) in self.site.web1().files() {
            if name.contains(".qm-") {
                continue;
            }
            let is_whole = match name.as_str() {
                // Between the two there may be one in between: a plan of before with a value of after.
                "large" => {
                    let mut lines = text.lines();
                    let first = lines.next().unwrap_or_default();
                    text.lines().count() == 4_000 && lines.all(|line| line == first)
                }
                "main" => text.starts_with("plan ") && text.contains("kill-secret-"),
                _ => before.get(&name) == Some(&text) || after.get(&name) == Some(&text),
            };
            assert!(is_whole, "{name} is neither old nor new: {} bytes", text.len());
        }
    }

    /// Waits until everything is as an undisturbed run leaves it.
    async fn ends_well(&self) {
        let expected = self.expected();
        let look = || {
            let found = self.site.web1().files();
            (found == expected).then_some(())
        };
        eventually("the files are as they must be", look).await;
        let bus = &self.site.bus;
        if self.is_assigned {
            eventually_async(true, || async {
                let report = self.site.report("web1", "forge").await.unwrap_or_default();
                report["state"] == "applied" && report["revision"] == self.revision
            })
            .await;
            let needs = ["config.a", "secret.pw"].map(str::to_owned).to_vec();
            eventually_async(needs, || self.site.needs("web1", "forge")).await;
            let item = format!("item of {}", self.plan);
            eventually_async(true, || async {
                let item_is = bus.get(key::COLLECT, "web1.c.forge").await;
                item_is.is_some_and(|body| String::from_utf8_lossy(&body).contains(&item))
            })
            .await;
            let told = self.site.web1().dir().join(COPIED);
            let main = &expected["main"];
            eventually("its program was told last of what is there now", || {
                fs::read_to_string(&told).is_ok_and(|text| text == *main).then_some(())
            })
            .await;
        } else {
            eventually_async(Vec::<String>::new(), || self.site.needs("web1", "forge")).await;
            eventually_async(None, || bus.get(key::COLLECT, "web1.c.forge")).await;
            eventually_async(None, || bus.get(key::APPLIED, "web1.forge")).await;
        }
    }

    fn kill(&mut self, victim: Victim) {
        match victim {
            Victim::Client => self.site.web1_mut().client = None,
            Victim::Engine => self.site.web1_mut().engine = None,
            Victim::Vault => self.site.kill_vault(),
            Victim::Broker => self.site.broker.kill(),
        }
    }

    async fn revive(&mut self, victim: Victim) {
        match victim {
            Victim::Client => self.site.web1_mut().start_client(),
            Victim::Engine => self.site.machines[0].start_engine().await,
            Victim::Vault => self.site.start_vault().await,
            Victim::Broker => self.site.broker.start_again(),
        }
    }

    /// One change with a kill somewhere in it.
    async fn round(&mut self, round: usize, victim: Victim, act: Act) {
        let before = self.expected();
        let delay = self.random.random_range(Duration::ZERO..LONGEST);
        println!("round {round}: {act:?}, {victim:?} killed after {delay:?}");
        self.act(act, round).await;
        let is_stored = act != Act::Secret || {
            let stored = self.try_to_store();
            assert!(stored, "the vault runs, so it takes the value");
            stored
        };
        tokio::time::sleep(delay).await;
        self.kill(victim);
        self.check_whole(&before);
        self.revive(victim).await;
        assert!(is_stored);
        self.ends_well().await;
    }
}

/// T52: a client killed at any point of fetching, asking, writing, reporting and removing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t52_c37_c54_a_client_that_is_killed_at_any_point_leaves_nothing_half() {
    let Some(mut stage) = Stage::start("t52").await else { return };
    let rounds = usize::try_from(number("QM_NODE_KILLS", SAMPLE as u64)).unwrap();
    for round in 1..=rounds {
        let act = ACTS[round % ACTS.len()];
        stage.round(round, Victim::Client, act).await;
    }
    stage.site.check_secrets();
}

/// T53: the same of engine, vault and broker; no word of a changed secret and no restart that was owed is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t53_c54_an_engine_a_vault_and_a_broker_that_are_killed_lose_nothing() {
    let Some(mut stage) = Stage::start("t53").await else { return };
    let rounds = usize::try_from(number("QM_NODE_KILLS", SAMPLE as u64)).unwrap();
    for round in 1..=rounds {
        let victim = [Victim::Engine, Victim::Vault, Victim::Broker][round % 3];
        let act = ACTS[stage.random.random_range(0..ACTS.len())];
        stage.round(round, victim, act).await;
    }
    stage.site.check_secrets();
}
