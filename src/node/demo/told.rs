//! What the machines' clients report, heard live and shown.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use async_nats::Subscriber;
use futures::StreamExt as _;
use quartermaster_node::client::bus::Bus;
use quartermaster_proto::mesh::report::{Action, Outcome, ProgramResult, Report, Why};
use tokio::time::Instant;

use super::super::mesh::said;
use crate::stage::StageError;
use crate::telemetry::plain_text;

/// How often files are looked at while a report is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Tells the reader of the terminal what happens, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen(Instant);

impl Screen {
    /// Begins to count.
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    /// Says something.
    pub(super) fn say(self, text: &str) {
        // Nobody has to read along.
        let _ = writeln!(
            std::io::stderr(),
            "{:>6.1} s  {}",
            self.0.elapsed().as_secs_f64(),
            plain_text(text, false)
        );
    }
}

/// All reports so far.
pub(super) struct Told {
    screen: Screen,
    heard: Subscriber,
    all: Vec<Report>,
}

impl Told {
    /// Listens from now on.
    pub(super) async fn listen(bus: &Bus, screen: Screen) -> Result<Self, StageError> {
        let heard = bus.client().subscribe("prov.applied.>").await;
        let heard = heard.map_err(|error| StageError::Setup {
            what: "the connection that hears reports",
            source: std::io::Error::other(error),
        })?;
        // What is published after this is heard.
        let _ = bus.client().flush().await;
        Ok(Self { screen, heard, all: Vec::new() })
    }

    /// Goes on hearing until this is so; false when it was not within the time.
    pub(super) async fn until(&mut self, limit: Duration, mut is_so: impl FnMut(&Self) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut look = tokio::time::interval(LOOK_EVERY);
        while !is_so(self) {
            tokio::select! {
                () = tokio::time::sleep_until(end) => return is_so(self),
                _ = look.tick() => {}
                message = self.heard.next() => {
                    let Some(message) = message else { return is_so(self) };
                    self.take(&message.payload);
                }
            }
        }
        true
    }

    fn take(&mut self, body: &[u8]) {
        let Ok(report) = Report::read(body) else { return };
        let what = said(&report);
        self.screen.say(&format!("{} {}: {} {what}", report.node, report.module, report.outcome.as_str()));
        self.all.push(report);
    }

    /// How many there were; marks a moment.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The latest of a module.
    pub(super) fn latest(&self, module: &str) -> Option<&Report> {
        self.all.iter().rev().find(|report| report.module == module)
    }

    /// True when the module's latest report says that it is applied.
    pub(super) fn is_applied(&self, module: &str) -> bool {
        self.latest(module).is_some_and(|report| matches!(report.outcome, Outcome::Applied { .. }))
    }

    /// What the module's latest report is sure to lack, as kind and name; what has not been looked at yet is not among it.
    pub(super) fn waits_for(&self, module: &str) -> Vec<(&str, &str)> {
        match self.latest(module).map(|report| &report.outcome) {
            Some(Outcome::Waiting { waiting }) => {
                let sure = waiting.iter().filter(|one| one.why != Why::NotLoaded);
                sure.map(|one| (one.kind.as_str(), one.name.as_str())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How often a program of the module was told well, from this moment on.
    pub(super) fn programs_told(&self, module: &str, from: usize) -> usize {
        let reports = self.all.iter().skip(from).filter(|report| report.module == module);
        let programs = reports.filter_map(|report| match &report.outcome {
            Outcome::Applied { programs, .. } => Some(programs),
            _ => None,
        });
        programs.flatten().filter(|program| program.result == ProgramResult::Done).count()
    }

    /// True when this was done to the file, from this moment on.
    pub(super) fn was_done(&self, path: &str, action: Action, from: usize) -> bool {
        let done = self.all.iter().skip(from).flat_map(files_of);
        done.into_iter().any(|(found, what, _)| found == path && what == action)
    }

    /// Every file of a module by path: what was last done to it other than nothing, and its latest digest.
    pub(super) fn files(&self, module: &str) -> BTreeMap<String, (Action, String)> {
        let mut files: BTreeMap<String, (Action, String)> = BTreeMap::new();
        for (path, action, digest) in
            self.all.iter().filter(|report| report.module == module).flat_map(files_of)
        {
            let entry = files.entry(path.to_owned()).or_insert((action, String::new()));
            if !matches!(action, Action::Unchanged | Action::Kept) {
                entry.0 = action;
            }
            digest.clone_into(&mut entry.1);
        }
        files
    }
}

fn files_of(report: &Report) -> Vec<(&str, Action, &str)> {
    match &report.outcome {
        Outcome::Applied { files, .. } => {
            files.iter().map(|file| (file.path.as_str(), file.action, file.digest.as_str())).collect()
        }
        _ => Vec::new(),
    }
}
