//! The ClaimKeeper: opens the bucket, listens to it, renews what is held, and passes hosts on whose turn has come.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, StreamHandler, WrapFuture,
};
use futures::StreamExt as _;
use quartermaster_proto::choria::identity::Identity;
use tokio::sync::watch;
use tokio::time::Instant;

use super::lease::{Over, SharedLease, Written};
use super::messages::{ClaimEnded, ClaimSnapshot, LeaveCluster};
use super::record::{Record, RecordState, Subject, member_key, subject_of};
use super::settings::ClaimSettings;
use super::shared::Shared;
use crate::discovery::Seen;
use crate::link::{BucketFault, BucketFound, KvSeen, watch_rebuilding};
use crate::metrics::Fact;
use crate::supervise::ExitNotice;

/// Ends of claims waiting at most; one that does not fit leaves its claim to expire.
const MAILBOX: usize = 16_384;
/// Between two rounds of renewing and looking for hosts whose turn has come.
const ROUND: Duration = Duration::from_secs(1);
/// Between two attempts to open the bucket.
const REOPEN: Duration = Duration::from_secs(2);
/// After the bucket was opened, how long the other instances' keys are listened to before any host counts as ours.
const SETTLE: Duration = Duration::from_secs(1);
/// Renewals under way at once.
const AT_ONCE: usize = 64;
/// Shortest life of values that can be worked with.
const SHORTEST: Duration = Duration::from_secs(3);

/// The actor.
pub struct ClaimKeeper {
    settings: ClaimSettings,
    shared: Arc<Shared>,
    lives: Option<Duration>,
    listening: bool,
    member: Member,
    renewing: bool,
    ending: watch::Sender<usize>,
    trouble: Option<String>,
    /// Until when the other instance with our identity, that was met, may still be there.
    twin: Option<Instant>,
    _notice: ExitNotice,
}

/// This instance's own key.
#[derive(Debug, Default)]
struct Member {
    seq: u64,
    said: Option<(RecordState, Instant)>,
    writing: bool,
}

impl fmt::Debug for ClaimKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimKeeper").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ClaimKeeper {
    pub(super) fn new(settings: ClaimSettings, shared: Arc<Shared>, notice: ExitNotice) -> Self {
        // Another life may have opened it before; its content is listened to anew all the same.
        shared.lives.send_replace(None);
        Self {
            settings,
            shared,
            lives: None,
            listening: false,
            member: Member::default(),
            renewing: false,
            ending: watch::Sender::new(0),
            trouble: Some("the bucket was not looked at yet".to_owned()),
            twin: None,
            _notice: notice,
        }
    }

    fn open(&self, ctx: &mut Context<Self>) {
        let ClaimSettings { link, bucket, limit, .. } = self.settings.clone();
        let opened = async move {
            if !link.is_connected() {
                return Err(BucketFault::Asking("there is no connection".to_owned()));
            }
            link.open_bucket(&bucket, limit).await
        };
        ctx.spawn(opened.into_actor(self).map(|opened, me, ctx| match opened {
            Ok(found) => me.opened(found, ctx),
            Err(fault) => {
                me.say(Some(format!("bucket {}: {fault}", me.settings.bucket.name)));
                ctx.run_later(REOPEN, |me, ctx| me.open(ctx));
            }
        }));
    }

    fn opened(&mut self, found: BucketFound, ctx: &mut Context<Self>) {
        let name = &self.settings.bucket.name;
        if found.lives < SHORTEST {
            let command = self.settings.bucket.command(found.replicas);
            self.say(Some(format!(
                "values of bucket {name} live {:?}, but claims must expire; make it anew as: {command}",
                found.lives
            )));
            ctx.run_later(REOPEN, |me, ctx| me.open(ctx));
            return;
        }
        if found.made {
            tracing::info!(
                component = "claim",
                bucket = name,
                replicas = found.replicas,
                "Made the bucket of claims"
            );
        } else if found.lives != self.settings.bucket.lives {
            tracing::warn!(
                component = "claim",
                bucket = name,
                "values of the bucket live {:?} and not {:?} as configured; the bucket's word counts",
                found.lives,
                self.settings.bucket.lives
            );
        }
        self.lives = Some(found.lives);
        self.shared.board().set_lives(found.lives);
        if !self.listening {
            self.listening = true;
            ctx.add_stream(watch_rebuilding(self.settings.link.watch_client(), name.clone(), ">"));
        }
        self.greet(ctx);
        ctx.run_later(SETTLE, move |me, _| {
            me.say(None);
            me.shared.lives.send_replace(Some(found.lives));
        });
    }

    fn say(&mut self, trouble: Option<String>) {
        if let Some(trouble) = trouble.as_ref().filter(|new| self.trouble.as_ref() != Some(*new)) {
            tracing::warn!(component = "claim", "hosts cannot be claimed: {trouble}");
        }
        self.trouble = trouble;
        self.publish();
    }

    fn publish(&self) {
        let (kept, members) = {
            let board = self.shared.board();
            (board.kept(), board.members(Instant::now()))
        };
        let held = self.shared.held();
        self.settings.recorder.record(Fact::ClaimsCounted { held, kept, members: members.len() });
        let twin = |_| {
            let identity = &self.settings.identity;
            format!("another instance with this one's identity, {identity}, is at work: give each its own")
        };
        // The bucket may be reached over a connection that nothing else depends on: its end is said here.
        let away = || {
            let name = &self.settings.bucket.name;
            (!self.settings.link.is_connected()).then(|| format!("bucket {name}: there is no connection"))
        };
        let trouble = (self.trouble.clone().or_else(away))
            .or_else(|| self.twin.filter(|until| Instant::now() < *until).map(twin));
        self.shared.published.send_replace(ClaimSnapshot { held, kept, members, trouble });
    }

    fn round(&mut self, ctx: &mut Context<Self>) {
        if let Some(lives) = self.lives {
            self.greet(ctx);
            self.renew(lives, ctx);
        }
        let works = self.shared.lives.borrow().is_some() && self.settings.run_state.borrow().admits();
        if works {
            let (room, help) = ((self.settings.room)(), self.settings.help);
            let taken = self.shared.board().take_over(room, help, Instant::now());
            self.pass_on(taken);
        }
        self.publish();
    }

    fn pass_on(&self, hosts: Vec<Identity>) {
        for host in hosts {
            if (self.settings.fleet)(Seen::Answered(host.clone())).is_err() {
                self.shared.board().keep(&host, Instant::now());
            }
        }
    }

    fn renew(&mut self, lives: Duration, ctx: &mut Context<Self>) {
        if self.renewing {
            return;
        }
        let due = self.shared.due(lives, Instant::now());
        if due.is_empty() {
            return;
        }
        self.renewing = true;
        let shared = Arc::clone(&self.shared);
        let renewed = async move {
            let renew = |lease: SharedLease| {
                let shared = Arc::clone(&shared);
                async move { (!lease.renew(&shared.writer, lives).await).then(|| lease.host.clone()) }
            };
            let all: Vec<_> = futures::stream::iter(due).map(renew).buffer_unordered(AT_ONCE).collect().await;
            all
        };
        ctx.spawn(renewed.into_actor(self).map(|lost, me, _| {
            me.renewing = false;
            for host in lost.into_iter().flatten() {
                me.settings.recorder.record(Fact::ClaimLost { host: host.to_string() });
            }
        }));
    }

    /// Says that this instance is there, or, while it is paused or stopping, that it is not.
    fn greet(&mut self, ctx: &mut Context<Self>) {
        let Some(lives) = self.lives else { return };
        let works = self.settings.run_state.borrow().admits();
        let state = if works { RecordState::Member } else { RecordState::Free };
        let now = Instant::now();
        let said = |(said, at): (RecordState, Instant)| said == state && (!works || now < at + lives / 4);
        if self.member.writing || self.member.said.is_some_and(said) {
            return;
        }
        self.member.writing = true;
        let over = if self.member.said.is_none() { Over::Unfinished } else { Over::Own };
        let (shared, mut seq) = (Arc::clone(&self.shared), self.member.seq);
        let key = shared.writer.key(member_key(&self.settings.identity));
        let written = async move { (shared.writer.write(&key, state, over, &mut seq).await, seq) };
        ctx.spawn(written.into_actor(self).map(move |(written, seq), me, _| {
            me.member.writing = false;
            me.member.seq = seq;
            if matches!(&written, Written::Other(Some(record), _) if record.by == me.settings.identity) {
                me.twin = Some(Instant::now() + lives);
            }
            match written {
                Written::Yes => me.member.said = Some((state, now)),
                // Taken back, so that whoever is told about the two sees it in both.
                Written::Other(..) => me.member.said = None,
                Written::Failed(why) => {
                    tracing::debug!(component = "claim", "could not say that we are here: {why}");
                }
            }
        }));
    }

    fn heard(&mut self, key: &str, value: &[u8], seq: u64) {
        let Some(record) = Record::parse(value) else { return };
        let now = Instant::now();
        match subject_of(key) {
            Some(Subject::Host(host)) => {
                let done = self.shared.board().hear(&host, &record, seq, now);
                if done {
                    // Refused by a full mailbox: then its claim says so when its turn comes.
                    let _ = (self.settings.fleet)(Seen::Elsewhere(host));
                }
            }
            Some(Subject::Member(name)) if name != self.settings.identity => {
                self.shared.board().hear_member(&name, &record, now);
            }
            Some(Subject::Member(_)) | None => {}
        }
    }
}

impl Actor for ClaimKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.open(ctx);
        ctx.run_interval(ROUND, Self::round);
    }
}

impl StreamHandler<KvSeen> for ClaimKeeper {
    fn handle(&mut self, seen: KvSeen, _: &mut Self::Context) {
        match seen {
            KvSeen::Entry(entry) => self.heard(&entry.key, &entry.value, entry.revision),
            KvSeen::Rebuilt { why } => {
                tracing::debug!(component = "claim", "the bucket is listened to anew: {why}");
            }
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

impl Handler<ClaimEnded> for ClaimKeeper {
    type Result = ();

    fn handle(&mut self, ClaimEnded { lease, round, state }: ClaimEnded, ctx: &mut Self::Context) {
        let Some(lives) = self.lives else { return };
        self.ending.send_modify(|ending| *ending += 1);
        let shared = Arc::clone(&self.shared);
        let ended = async move { lease.end(&shared.writer, state, round, lives).await };
        ctx.spawn(ended.into_actor(self).map(|(), me, _| me.ending.send_modify(|ending| *ending -= 1)));
    }
}

impl Handler<LeaveCluster> for ClaimKeeper {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: LeaveCluster, _: &mut Self::Context) -> Self::Result {
        let mut ending = self.ending.subscribe();
        let (shared, mut seq) = (Arc::clone(&self.shared), self.member.seq);
        let key = shared.writer.key(member_key(&self.settings.identity));
        Box::pin(async move {
            // The sender lives as long as the actor, whose end ends this as well.
            drop(ending.wait_for(|ending| *ending == 0).await);
            shared.writer.write(&key, RecordState::Free, Over::Own, &mut seq).await;
        })
    }
}

crate::supervised!(ClaimKeeper);
