//! What the engine was asked and what it holds.

use std::{collections::BTreeMap, time::Duration};

use quartermaster_proto::{
    mesh::{
        fill::{Failure, FillFile, RequestCode, Written},
        plan::Digest,
        report::{Action, FileReport, Program, ProgramReport, ProgramResult, Why},
    },
    text::escape_bounded,
};
use zeroize::Zeroizing;

use super::digest::DigestKey;

/// How often every file is written again.
pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// A file that is filled.
pub(super) struct Filled {
    pub path: String,
    pub content: Zeroizing<Vec<u8>>,
    pub sensitive: bool,
}

/// The files of a module as the engine knows them.
#[derive(Debug, Clone, Default)]
pub(super) struct Writing {
    /// The request that is not answered yet.
    in_flight: Option<InFlight>,
    next_id: u64,
    /// Hash of each content that the engine took, by path.
    accepted: BTreeMap<String, String>,
    /// Something changed while a request was in flight.
    pub dirty: bool,
    /// The next request carries every file.
    pub all: bool,
    /// Why the engine does not take requests, if so.
    pub stuck: Option<Why>,
    /// How often it did not in a row.
    pub tries: u32,
    /// What the engine could not do, if anything.
    pub failure: Option<String>,
    /// When the first request was made.
    pub first: Option<Duration>,
    /// How much of the fixed period had passed by then.
    phase: Duration,
}

#[derive(Debug, Clone)]
struct InFlight {
    id: u64,
    /// Hash of each content that is sent.
    hashes: BTreeMap<String, String>,
    /// Every file of the module and the digest of its content, in order.
    digests: Vec<(String, String)>,
}

/// What a request ended with.
pub(super) enum Ended {
    /// Not ours, or not any more.
    Stale,
    /// Every file is as it should be.
    Applied(Vec<FileReport>, Vec<ProgramReport>, Touched),
    /// Something is not; what was done all the same.
    Failed(Touched),
    /// It is to be tried again.
    Stuck,
}

/// What a request touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// A file was changed.
    pub disk: bool,
    /// A program was told, with success or without.
    pub program: bool,
}

impl Touched {
    fn by(written: &Written) -> Self {
        let disk = written.files.iter().any(|file| file.action.is_some_and(Action::is_change));
        Self { disk, program: !written.programs.is_empty() }
    }
}

impl Writing {
    pub fn with_phase(phase: Duration) -> Self {
        Self { phase, ..Self::default() }
    }

    pub const fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Begins a request with the files that the engine does not hold, or all; none when there is nothing to send.
    pub fn begin(&mut self, files: Vec<Filled>, key: &DigestKey) -> Option<(u64, Vec<FillFile>)> {
        let mut sent = Vec::new();
        let mut digests = Vec::new();
        let mut hashes = BTreeMap::new();
        for Filled { path, content, sensitive } in files {
            let hash = Digest::of(&content);
            let shown = if sensitive { key.digest(&content, true) } else { hash.to_string() };
            digests.push((path.clone(), shown));
            let sha256 = hash.hex();
            if self.all || self.accepted.get(&path) != Some(&sha256) {
                hashes.insert(path.clone(), sha256.clone());
                sent.push(FillFile { path, content, sha256, sensitive });
            }
        }
        self.accepted.retain(|path, _| digests.iter().any(|(one, _)| one == path));
        if sent.is_empty() && !self.all {
            return None;
        }
        self.all = false;
        self.dirty = false;
        self.next_id += 1;
        self.in_flight = Some(InFlight { id: self.next_id, hashes, digests });
        Some((self.next_id, sent))
    }

    /// The engine answered.
    pub fn written(&mut self, id: u64, written: &Written) -> Ended {
        let Some(InFlight { hashes, digests, .. }) = self.take(id) else { return Ended::Stale };
        (self.stuck, self.tries) = (None, 0);
        let mut actions: BTreeMap<&str, Action> = BTreeMap::new();
        let mut failure = None;
        for file in &written.files {
            match (&file.err, file.action) {
                (None, Some(action)) => {
                    actions.insert(&file.path, action);
                }
                (Some(err), _) => {
                    let reason =
                        format!("{}: {}: {}", shown(&file.path), err.code.as_str(), shown(&err.reason));
                    failure.get_or_insert(reason);
                }
                (None, None) => {
                    failure
                        .get_or_insert(format!("{}: the engine does not say what it did", shown(&file.path)));
                }
            }
        }
        for (path, hash) in hashes {
            if actions.contains_key(path.as_str()) {
                self.accepted.insert(path, hash);
            } else {
                self.accepted.remove(&path);
                failure.get_or_insert_with(|| format!("{}: the engine says nothing of it", shown(&path)));
            }
        }
        for program in written.programs.iter().filter(|program| program.result == ProgramResult::Failed) {
            let reason = shown(program.reason.as_deref().unwrap_or_default());
            failure.get_or_insert_with(|| format!("{}: {reason}", told(&program.program)));
        }
        self.failure = failure;
        if self.failure.is_some() {
            self.all = true;
            return Ended::Failed(Touched::by(written));
        }
        let report = digests.into_iter().map(|(path, digest)| FileReport {
            action: actions.get(path.as_str()).copied().unwrap_or(Action::Unchanged),
            path,
            digest,
        });
        Ended::Applied(report.collect(), written.programs.clone(), Touched::by(written))
    }

    /// The engine refused the request as a whole.
    pub fn failed(&mut self, id: u64, failure: &Failure<RequestCode>) -> Ended {
        if self.take(id).is_none() {
            return Ended::Stale;
        }
        self.all = true;
        match failure.code {
            RequestCode::Behind | RequestCode::Stale | RequestCode::UnknownModule => {
                self.stuck = Some(Why::NotLoaded);
                self.tries += 1;
                Ended::Stuck
            }
            code => {
                self.failure = Some(format!("the engine: {}: {}", code.as_str(), shown(&failure.reason)));
                Ended::Failed(Touched::default())
            }
        }
    }

    /// The engine is away.
    pub fn away(&mut self, id: u64) -> Ended {
        if self.take(id).is_none() {
            return Ended::Stale;
        }
        // What it did of the request is not known, so all of it is sent again.
        self.all = true;
        self.stuck = Some(Why::NoAnswer);
        self.tries += 1;
        Ended::Stuck
    }

    /// The next end of the fixed period after `now`; late ones are skipped. It falls on a whole second, so that the modules of a
    /// machine, whose phases differ, have some ends in common: one wakes the machine for all of them.
    pub fn next_minute(&mut self, now: Duration) -> Duration {
        let first = *self.first.get_or_insert(now);
        let end = Duration::from_secs((first + MINUTE).saturating_sub(self.phase).as_secs());
        let Some(late) = now.checked_sub(end) else { return end };
        let passed = u32::try_from(late.as_secs() / MINUTE.as_secs()).unwrap_or(u32::MAX - 1);
        end + MINUTE.saturating_mul(passed + 1)
    }

    /// Nothing that was written counts any more; numbers of requests go on.
    pub fn start_over(&mut self) {
        *self = Self { all: true, next_id: self.next_id, phase: self.phase, ..Self::default() };
    }

    /// An answer to what was asked for an older plan is not waited for.
    pub fn forget_request(&mut self) {
        self.in_flight = None;
    }

    fn take(&mut self, id: u64) -> Option<InFlight> {
        self.in_flight.take_if(|in_flight| in_flight.id == id)
    }
}

fn shown(text: &str) -> String {
    escape_bounded(text, 300)
}

fn told(program: &Program) -> String {
    match program {
        Program::Restart(unit) => format!("restart of {}", shown(unit)),
        Program::Reload(unit) => format!("reload of {}", shown(unit)),
        Program::Command(command) => shown(command.first().map_or("", String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_minute_ends_on_whole_seconds_that_modules_share_and_late_ends_are_skipped() {
        // When the first request was, the phase, now, and the end that follows, in milliseconds.
        let cases = [
            (5_400, 0, 5_400, 65_000),
            (5_400, 300, 5_400, 65_000),
            (5_400, 59_999, 5_400, 65_000),
            (5_400, 45_000, 5_400, 20_000),
            (5_400, 45_000, 20_000, 80_000),
            (5_400, 45_000, 79_999, 80_000),
            (5_400, 45_000, 500_000, 560_000),
        ];
        for (first, phase, now, end) in cases {
            let mut writing = Writing::with_phase(ms(phase));
            writing.first = Some(ms(first));
            assert_eq!(writing.next_minute(ms(now)), ms(end), "{first} {phase} {now}");
        }
    }
}
