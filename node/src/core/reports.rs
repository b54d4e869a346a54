//! Reports: what is said, and when it is worth saying.

use std::collections::{BTreeMap, BTreeSet};

use quartermaster_proto::{
    mesh::report::{Action, Outcome, Report, Waiting},
    time::WallClock,
};

use super::gather::Missing;

/// What was said last, and since when each thing is missing.
#[derive(Debug, Clone)]
pub(super) struct Reports {
    node: String,
    module: String,
    run: String,
    last: Option<Report>,
    since: BTreeMap<Missing, WallClock>,
}

impl Reports {
    pub fn new(node: &str, module: &str, run: &str) -> Self {
        let (node, module, run) = (node.to_owned(), module.to_owned(), run.to_owned());
        Self { node, module, run, last: None, since: BTreeMap::new() }
    }

    /// The report of this outcome, if it says anything new.
    pub fn say(&mut self, revision: u64, outcome: Outcome, now: WallClock) -> Option<Report> {
        if !matches!(outcome, Outcome::Waiting { .. }) {
            self.since.clear();
        }
        let (node, module, run) = (self.node.clone(), self.module.clone(), self.run.clone());
        let report = Report { node, module, run, revision, at: now, outcome };
        if self.last.as_ref().is_some_and(|last| last.says_the_same(&report) || is_quiet(last, &report)) {
            return None;
        }
        self.last = Some(report.clone());
        Some(report)
    }

    /// Everything that is missing, each since it was first missing.
    pub fn waiting(&mut self, missing: BTreeSet<Missing>, now: WallClock) -> Outcome {
        let since: BTreeMap<Missing, WallClock> = missing
            .into_iter()
            .map(|one| {
                // Another reason for the same thing does not make the wait a new one.
                let before = self.since.iter().find(|((kind, name, _), _)| (kind, name) == (&one.0, &one.1));
                let since = before.map_or(now, |(_, since)| *since);
                (one, since)
            })
            .collect();
        self.since = since;
        let waiting = self.since.iter().map(|((kind, name, why), since)| Waiting {
            kind: kind.clone(),
            name: name.clone(),
            why: *why,
            since: *since,
        });
        Outcome::Waiting { waiting: waiting.collect() }
    }

    pub const fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Nothing of what was said stands any more.
    pub fn forget(&mut self) {
        self.last = None;
        self.since.clear();
    }
}

/// True for a round in which nothing was done after another that ended well, with the same contents.
fn is_quiet(last: &Report, next: &Report) -> bool {
    let (Outcome::Applied { files: before, .. }, Outcome::Applied { files, programs }) =
        (&last.outcome, &next.outcome)
    else {
        return false;
    };
    last.revision == next.revision
        && programs.is_empty()
        && files.iter().all(|file| matches!(file.action, Action::Unchanged | Action::Kept))
        && files
            .iter()
            .map(|file| (&file.path, &file.digest))
            .eq(before.iter().map(|file| (&file.path, &file.digest)))
}
