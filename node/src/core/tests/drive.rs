//! Drives a module: carries timers, answers nothing by itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use quartermaster_proto::{
    mesh::{
        bound::Bound,
        collect::Item,
        fill::{Failure, FileCode, FileReply, RequestCode, Write, Written},
        need::Need,
        plan::{Digest, Planned, read_assignment},
        registry::Entry,
        report::{Action, Outcome, ProgramReport, Report, Why},
        value::Json,
    },
    time::WallClock,
};
use zeroize::Zeroizing;

use super::super::*;
use crate::{check::Want, value::Value};

pub const START: i64 = 1_795_975_200;

pub struct Drive {
    core: ModuleCore,
    now: Duration,
    timers: BTreeMap<Timer, Duration>,
    pub reports: Vec<Report>,
    pub writes: Vec<(u64, Write)>,
    pub wants: BTreeSet<Want>,
    pub fetched: usize,
    pub needs: Vec<Need>,
    pub items: BTreeMap<String, String>,
    pub notes: Vec<Note>,
    pub changed: usize,
    pub removed: usize,
    digest: String,
}

/// What a plan begins with; a second digest is another archive.
pub const DIGEST: &str = "1111111111111111111111111111111111111111111111111111111111111111";

impl Drive {
    /// A module whose registry is known and of which nothing else is.
    pub fn new() -> Self {
        let mut drive = Self::without_registry();
        drive.registry(|_| true);
        drive
    }

    /// The same, that far into its minute.
    pub fn with_phase(phase: Duration) -> Self {
        let mut drive = Self::begun(phase);
        drive.registry(|_| true);
        drive
    }

    pub fn without_registry() -> Self {
        Self::begun(Duration::ZERO)
    }

    fn begun(phase: Duration) -> Self {
        let settings = ModuleSettings {
            node: "web1".to_owned(),
            module: "forge".to_owned(),
            run: "run".to_owned(),
            digest_key: Arc::new(DigestKey::new(Zeroizing::new([7; 32]))),
            jitter: 1,
            phase,
        };
        Self {
            core: ModuleCore::new(settings),
            now: Duration::ZERO,
            timers: BTreeMap::new(),
            reports: Vec::new(),
            writes: Vec::new(),
            wants: BTreeSet::new(),
            fetched: 0,
            needs: Vec::new(),
            items: BTreeMap::new(),
            notes: Vec::new(),
            changed: 0,
            removed: 0,
            digest: format!("sha256:{DIGEST}"),
        }
    }

    pub fn state(&self) -> State {
        self.core.state()
    }

    pub fn handle(&mut self, event: Event) {
        let wall = WallClock::from_nanos(START * 1_000_000_000 + i64::try_from(self.now.as_nanos()).unwrap());
        for effect in self.core.handle(Moment { mono: self.now, wall }, event) {
            match effect {
                Effect::Fetch(_) => self.fetched += 1,
                Effect::Needs(needs) => self.needs = needs,
                Effect::Want { wants, .. } => self.wants = wants,
                Effect::PutItem(Item { collection, text, .. }) => drop(self.items.insert(collection, text)),
                Effect::KeepItems(keep) => self.items.retain(|collection, _| keep.contains(collection)),
                Effect::Write(id, write) => self.writes.push((id, write)),
                Effect::Report(report) => self.reports.push(report),
                Effect::Changed => self.changed += 1,
                Effect::Remove => {
                    self.removed += 1;
                    self.needs.clear();
                    self.items.clear();
                }
                Effect::Wake(timer, at) => drop(self.timers.insert(timer, at)),
                Effect::Note(note) => self.notes.push(note),
            }
        }
    }

    /// Lets time pass; timers ring when they are due.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((timer, at)) =
            self.timers.iter().map(|(timer, at)| (*timer, *at)).min_by_key(|(_, at)| *at)
            && at <= end
        {
            self.timers.remove(&timer);
            self.now = self.now.max(at);
            self.handle(Event::Woke(timer));
        }
        self.now = end;
    }

    pub fn settle(&mut self) {
        self.pass(Duration::from_millis(250));
    }

    pub fn registry(&mut self, keep: impl Fn(&Entry) -> bool) {
        let entries = Entry::defaults(None).into_iter().filter(keep).map(|entry| (entry.kind, entry));
        let view = RegistryView { unknown: None, entries: Arc::new(entries.collect()) };
        self.handle(Event::Registry(view));
        self.settle();
    }

    /// Assigns a plan of these members; the revision is also in the value, so that each has its own digest.
    pub fn assign(&mut self, revision: u64, members: &str) {
        let plan = format!(
            r#","provisioning":{{"templates":{{"reference":"file:/t","digest":"{}"}},{members}}}"#,
            self.digest
        );
        self.assign_raw(revision, &plan);
    }

    pub fn assign_raw(&mut self, revision: u64, plan: &str) {
        let text = format!(r#"{{"node":"web1","module":"forge","serial":{revision}{plan}}}"#);
        let (assignment, _) = read_assignment("web1.forge", text.as_bytes()).unwrap();
        if let Planned::Unreadable(fault) = &assignment.planned {
            assert!(plan.contains("bad"), "{fault}");
        }
        let assigned = Assigned {
            revision,
            digest: Digest::of(text.as_bytes()),
            planned: Arc::new(assignment.planned),
            newly: revision == 1,
        };
        self.handle(Event::Assigned(assigned));
    }

    pub fn other_archive(&mut self) {
        self.digest = format!("sha256:{}", DIGEST.replace('1', "2"));
    }

    pub fn archive(&mut self, templates: &[(&str, &str)]) {
        let templates =
            templates.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().into())).collect();
        self.archive_state(ArchiveState::Ready(Arc::new(templates)));
    }

    pub fn archive_state(&mut self, state: ArchiveState) {
        self.handle(Event::Archive(self.digest.parse().unwrap(), state));
    }

    pub fn found(&mut self, want: Want, found: Found) {
        assert!(self.wants.contains(&want), "{want:?} is not wanted");
        self.handle(Event::Found(want, found));
    }

    pub fn config(&mut self, name: &str, stored: &str) {
        let stored = Stored::Json(Json::from_bucket(stored.as_bytes()).unwrap());
        self.found(Want::Config(name.to_owned()), Found::Here(stored));
    }

    pub fn no_config(&mut self, name: &str) {
        self.found(Want::Config(name.to_owned()), Found::Missing(Why::NoEntry));
    }

    pub fn vault(name: &str) -> Want {
        Want::Vault(name.parse().unwrap())
    }

    pub fn secret(&mut self, name: &str, value: &str) {
        let value = Value::bytes(Zeroizing::new(value.as_bytes().to_vec()));
        self.found(Self::vault(name), Found::Here(Stored::Secret(value)));
    }

    pub fn bound(&mut self, entry: &str) {
        let want = self.wants.iter().find(|want| matches!(want, Want::Bound { .. })).unwrap().clone();
        let found = match Bound::read(entry.as_bytes()).unwrap() {
            Bound::Served(served) => Found::Here(Stored::Bound(served)),
            Bound::Refused { reason } => Found::Refused { reason, retry_at: None },
        };
        self.found(want, found);
    }

    /// The files of the latest request, as text.
    pub fn sent(&self) -> Vec<(String, String)> {
        let (_, write) = self.writes.last().expect("something was sent");
        let text = |content: &[u8]| String::from_utf8(content.to_vec()).unwrap();
        write.files.iter().map(|file| (file.path.clone(), text(&file.content))).collect()
    }

    /// The engine does all of the latest request with this action.
    pub fn engine_does(&mut self, action: Action) {
        self.engine_does_and_tells(action, vec![]);
    }

    pub fn engine_does_and_tells(&mut self, action: Action, programs: Vec<ProgramReport>) {
        let (id, write) = self.writes.last().expect("something was sent");
        let files = write.files.iter().map(|file| FileReply {
            path: file.path.clone(),
            action: Some(action),
            sha256: Some(file.sha256.clone()),
            err: None,
        });
        let (id, written) = (*id, Written { files: files.collect(), programs });
        self.handle(Event::Engine(id, EngineAnswer::Written(written)));
    }

    pub fn engine_refuses_file(&mut self, code: FileCode, reason: &str) {
        let (id, write) = self.writes.last().expect("something was sent");
        let failure = Failure { code, reason: reason.to_owned() };
        let err =
            FileReply { path: write.files[0].path.clone(), action: None, sha256: None, err: Some(failure) };
        let (id, written) = (*id, Written { files: vec![err], programs: vec![] });
        self.handle(Event::Engine(id, EngineAnswer::Written(written)));
    }

    pub fn engine_fails(&mut self, code: RequestCode) {
        let id = self.writes.last().expect("something was sent").0;
        let failure = Failure { code, reason: "knows revision 0".to_owned() };
        self.handle(Event::Engine(id, EngineAnswer::Failed(failure)));
    }

    pub fn engine_is_away(&mut self) {
        let id = self.writes.last().expect("something was sent").0;
        self.handle(Event::Engine(id, EngineAnswer::Away));
    }

    /// The latest report in short: `applied /a=written`, `waiting config a no-entry`, `failed …`, `removed`.
    pub fn said(&self) -> String {
        let Some(report) = self.reports.last() else { return String::new() };
        let each: Vec<String> = match &report.outcome {
            Outcome::Applied { files, .. } => {
                files.iter().map(|file| format!("{}={}", file.path, file.action.as_str())).collect()
            }
            Outcome::Waiting { waiting } => {
                let shown =
                    waiting.iter().map(|one| format!("{} {} {}", one.kind, one.name, one.why.as_str()));
                shown.collect()
            }
            Outcome::Failed { reason, .. } => vec![reason.clone()],
            Outcome::Removed => vec![],
        };
        format!("{} {}", report.outcome.as_str(), each.join(", ")).trim_end().to_owned()
    }
}
