//! One host's claim: what it says in the bucket, kept in step with what was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::record::{Record, RecordState, host_key};
use crate::control::LeadingUntil;
use crate::link::{CasFault, CasKey, LinkHandle};

/// Between two attempts to write while the broker does not answer as it should.
const AGAIN: Duration = Duration::from_millis(500);

/// Who writes, and where.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    pub link: LinkHandle,
    pub bucket: String,
    pub by: String,
    pub life: String,
    /// How long the broker may take over one answer.
    pub limit: Duration,
}

/// What may be written over, beside nothing and something free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// What this life wrote, and nothing else at all.
    Own,
    /// What an earlier life of this instance left unfinished as well, unless the host was being configured.
    Unfinished,
    /// That as well.
    Resumed,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// It stands.
    Yes,
    /// Another instance's value stands there instead: its record, if it is one, and its sequence number.
    Other(Option<Record>, u64),
    /// Unknown, or not at all; says why.
    Failed(String),
}

impl Writer {
    pub(super) fn record(&self, state: RecordState) -> Record {
        Record { by: self.by.clone(), life: self.life.clone(), state }
    }

    pub(super) fn key(&self, key: String) -> CasKey {
        CasKey { prefix: String::new(), bucket: self.bucket.clone(), key }
    }

    /// Writes over nothing, over something free, and over what this instance wrote. `seq` is what the key's last write is
    /// believed to be, and becomes what it is.
    pub(super) async fn write(&self, key: &CasKey, state: RecordState, over: Over, seq: &mut u64) -> Written {
        let (value, anew) = (self.record(state).to_bytes(), over != Over::Own);
        for _ in 0..3 {
            match self.link.cas_write(key, &value, *seq, self.limit).await {
                Ok(written) => {
                    *seq = written;
                    return Written::Yes;
                }
                Err(CasFault::Conflict) => match self.link.cas_read(key, self.limit).await {
                    Ok(None) if anew => *seq = 0,
                    // It has expired, or somebody has deleted it: ours no more.
                    Ok(None) => return Written::Other(None, 0),
                    Ok(Some((stands, value))) => {
                        let record = Record::parse(&value);
                        let deleted = anew && value.is_empty();
                        let ours = |record: &Record| {
                            let same = record.by == self.by && record.life == self.life;
                            let left = record.by == self.by
                                && match record.state {
                                    RecordState::Done => false,
                                    RecordState::Committed => over == Over::Resumed,
                                    _ => true,
                                };
                            same || (anew && (left || record.state == RecordState::Free))
                        };
                        if !deleted && !record.as_ref().is_some_and(ours) {
                            return Written::Other(record, stands);
                        }
                        *seq = stands;
                    }
                    Err(fault) => return Written::Failed(fault.to_string()),
                },
                Err(fault) => return Written::Failed(fault.to_string()),
            }
        }
        Written::Failed("somebody writes the same key again and again".to_owned())
    }
}

/// A claim. It stays known for as long as its value in the bucket may live, for the next cycle of the same host.
#[derive(Debug)]
pub(super) struct Lease {
    pub host: Identity,
    key: CasKey,
    /// The sequence number of the last write; 0 before the first.
    seq: Mutex<u64>,
    /// Counts the cycles of the host, so that the end of one cannot undo the claim of the next.
    round: AtomicU64,
    until: LeadingUntil,
    lost: AtomicBool,
    committed: AtomicBool,
}

impl Lease {
    pub(super) fn new(host: &Identity, writer: &Writer) -> Self {
        Self {
            host: host.clone(),
            key: writer.key(host_key(host)),
            seq: Mutex::new(0),
            round: AtomicU64::new(0),
            until: LeadingUntil::new(),
            lost: AtomicBool::new(false),
            committed: AtomicBool::new(false),
        }
    }

    /// Claims the host, or claims it anew, after the write with this number.
    pub(super) async fn claim(&self, writer: &Writer, after: u64, resumed: bool, lives: Duration) -> Written {
        let over = if resumed { Over::Resumed } else { Over::Unfinished };
        let mut seq = self.seq.lock().await;
        // A number of our own is newer than what was heard.
        *seq = after.max(*seq);
        self.lost.store(false, Ordering::SeqCst);
        self.committed.store(false, Ordering::SeqCst);
        let sent = Instant::now();
        let written = writer.write(&self.key, RecordState::Working, over, &mut seq).await;
        if written == Written::Yes {
            self.until.extend(sent + lives * 3 / 4);
        }
        written
    }

    /// Renews the claim, or makes sure of it. False when it is not ours any more.
    pub(super) async fn renew(&self, writer: &Writer, lives: Duration) -> bool {
        loop {
            let sent = Instant::now();
            let state = if self.is_committed() { RecordState::Committed } else { RecordState::Working };
            let written = writer.write(&self.key, state, Over::Own, &mut *self.seq.lock().await).await;
            match written {
                Written::Yes => self.until.extend(sent + lives * 3 / 4),
                Written::Other(..) => self.lost.store(true, Ordering::SeqCst),
                // As long as the claim lives it is worth another try: a broker may be electing its own leader.
                Written::Failed(_) if self.holds() => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Written::Failed(_) => {}
            }
            return self.holds();
        }
    }

    /// The next cycle of the host begins.
    pub(super) fn next_round(&self) -> u64 {
        self.round.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Says in the bucket what became of the host in this round, unless the next has begun.
    pub(super) async fn end(&self, writer: &Writer, state: RecordState, round: u64, lives: Duration) {
        let mut seq = self.seq.lock().await;
        if self.round.load(Ordering::SeqCst) != round {
            return;
        }
        let end = Instant::now() + lives;
        while let Written::Failed(_) = writer.write(&self.key, state, Over::Own, &mut seq).await {
            if Instant::now() >= end {
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// True while nobody else can have the host.
    pub(super) fn holds(&self) -> bool {
        !self.lost.load(Ordering::SeqCst) && !self.has_expired()
    }

    /// True once the claim may have run out.
    pub(super) fn has_expired(&self) -> bool {
        self.until.has_passed()
    }

    /// True when a good part of its time has passed.
    pub(super) fn is_due(&self, lives: Duration) -> bool {
        self.until.left() < lives / 2
    }

    pub(super) fn commit(&self) {
        self.committed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_committed(&self) -> bool {
        self.committed.load(Ordering::SeqCst)
    }
}

/// A shared hold of a claim.
pub(super) type SharedLease = Arc<Lease>;
