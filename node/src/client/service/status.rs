//! Where each module stands, for people: kept in memory and told on a socket, so that it costs nothing while nobody asks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use quartermaster_proto::{
    mesh::{
        report::{Action, Outcome, Report, Waiting},
        stamp,
    },
    time::WallClock,
};
use serde::{Deserialize, Serialize};

use crate::core::{EngineAnswer, State};

/// Every state, in the order of a module's life.
pub(super) const STATES: [State; 6] =
    [State::Unplanned, State::Fetching, State::Gathering, State::Writing, State::Applied, State::Failed];

/// What `quartermaster node status` shows. No content, no value and no digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The machine.
    pub node: String,
    /// Which life of the client this is.
    pub run: String,
    /// The broker is connected.
    pub connected: bool,
    /// What the broker refused last since it was connected, or why it cannot be, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Each module of this machine.
    pub modules: BTreeMap<String, ModuleStatus>,
}

/// Where one module stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModuleStatus {
    /// `unplanned`, `fetching`, `gathering`, `writing`, `applied` or `failed`.
    pub state: String,
    /// The mirror's revision of the assignment that was reported on last.
    pub revision: u64,
    /// What it waits for, each since when.
    #[serde(default)]
    pub waiting: Vec<Missing>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it is tried again, where time alone helps (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// How many files it has, as far as they were written.
    #[serde(default)]
    pub files: usize,
    /// When a file of it last changed on the disk by our doing in this run (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_write: Option<String>,
    /// When the engine last said that every file is as it should be (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_look: Option<String>,
}

/// Something that is waited for, as the report has it, and where it was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What, why, and since when.
    #[serde(flatten)]
    pub waiting: Waiting,
    /// Where it was looked for: a key and its bucket, a name of the vault, a place in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked: Option<String>,
    /// What is there under a like name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<String>,
}

/// What is known of one module.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) state: State,
    report: Option<Arc<Report>>,
    files: usize,
    wrote: Option<WallClock>,
    looked: Option<WallClock>,
}

impl Standing {
    fn shown(&self) -> ModuleStatus {
        let (mut waiting, mut reason, mut retry) = (Vec::new(), None, None);
        match self.report.as_ref().map(|report| &report.outcome) {
            Some(Outcome::Waiting { waiting: missing }) => {
                let bare = |waiting: &Waiting| Missing { waiting: waiting.clone(), looked: None, near: None };
                waiting.extend(missing.iter().map(bare));
            }
            Some(Outcome::Failed { reason: why, retry_at }) => {
                (reason, retry) = (Some(why.clone()), *retry_at);
            }
            _ => {}
        }
        let shown = |at: Option<WallClock>| at.map(stamp::text);
        ModuleStatus {
            state: self.state.as_str().to_owned(),
            revision: self.report.as_ref().map_or(0, |report| report.revision),
            waiting,
            reason,
            retry_at: shown(retry),
            files: self.files,
            last_write: shown(self.wrote),
            last_look: shown(self.looked),
        }
    }
}

/// Where all modules stand. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Statuses(Arc<Mutex<BTreeMap<String, Standing>>>);

impl Statuses {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, module: &str, change: impl FnOnce(&mut Standing)) {
        let mut all = self.all();
        if let Some(standing) = all.get_mut(module) {
            change(standing);
        } else {
            let mut standing =
                Standing { state: State::Unplanned, report: None, files: 0, wrote: None, looked: None };
            change(&mut standing);
            all.insert(module.to_owned(), standing);
        }
    }

    pub(super) fn stands(&self, module: &str, state: State) {
        self.change(module, |standing| standing.state = state);
    }

    pub(super) fn reports(&self, module: &str, report: &Arc<Report>) {
        self.change(module, |standing| standing.report = Some(Arc::clone(report)));
    }

    pub(super) fn written(&self, module: &str, answer: &EngineAnswer, now: WallClock) {
        let EngineAnswer::Written(written) = answer else { return };
        self.change(module, |standing| {
            standing.files = standing.files.max(written.files.len());
            if written.files.iter().all(|file| file.err.is_none()) {
                standing.looked = Some(now);
            }
            if written.files.iter().any(|file| file.action.is_some_and(Action::is_change)) {
                standing.wrote = Some(now);
            }
        });
    }

    pub(super) fn gone(&self, module: &str) {
        self.all().remove(module);
    }

    pub(super) fn counts(&self) -> BTreeMap<State, i64> {
        let mut counts = BTreeMap::new();
        for standing in self.all().values() {
            *counts.entry(standing.state).or_default() += 1;
        }
        counts
    }

    pub(super) fn shown(&self) -> BTreeMap<String, ModuleStatus> {
        self.all().iter().map(|(module, standing)| (module.clone(), standing.shown())).collect()
    }
}
