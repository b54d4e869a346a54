//! The actor that reads declarations from the mirror of assignments and publishes them as they change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use quartermaster_actors::supervise::{Birth, ExitNotice, Liveness, Ping, Stop};
use quartermaster_proto::mesh::signature::PublicNkey;
use quartermaster_proto::mesh::{key, unesc};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::folder::Publish;
use crate::assigned::{Assigned, Follow, follow};
use crate::client::bus::Bus;
use crate::client::seen::SeenMark;
use crate::engine::declaration::{Declaration, Declarations};
use crate::engine::wire;

/// Its mailbox: pings, and nothing else.
const MAILBOX: usize = 4;
/// What is told of assignments and not yet taken in.
const LANE: usize = 64;
/// The last good copy's name in the state folder.
const COPY: &str = "mirror.json";
/// The name of the file that remembers the highest revision.
const SEEN: &str = "seen";

/// What the reader is given.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// This machine.
    pub(super) node: String,
    /// The folder of the last good copy.
    pub(super) state: PathBuf,
    /// The connection.
    pub(super) bus: Bus,
    /// Keys of the controller.
    pub(super) pins: Vec<PublicNkey>,
    /// Where declarations are published.
    pub(super) publish: Publish,
}

/// Follows this machine's assignments.
pub(super) struct MirrorReader {
    source: Source,
    /// Its drop tells the owner.
    _notice: ExitNotice,
}

impl MirrorReader {
    pub(super) fn new(source: Source, birth: Birth) -> Self {
        Self { source, _notice: birth.notice }
    }
}

impl Actor for MirrorReader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let source = self.source.clone();
        let (out, mut told) = mpsc::channel(LANE);
        let what = Follow {
            bus: source.bus.clone(),
            node: Some(source.node.clone()),
            pins: source.pins.clone(),
            seen: SeenMark::File(source.state.join(SEEN)),
        };
        let reading = async move {
            let mut copy = Copy::of(source);
            copy.publish_if_first();
            while let Some(next) = told.recv().await {
                copy.take(next);
                // What comes together is published and kept together.
                while let Ok(next) = told.try_recv() {
                    copy.take(next);
                }
                copy.publish();
            }
        };
        let both = async move {
            let ((), ()) = futures::join!(follow(what, out), reading);
        };
        ctx.spawn(both.into_actor(self));
    }
}

impl Handler<Ping> for MirrorReader {
    type Result = Liveness;

    fn handle(&mut self, Ping: Ping, _: &mut Self::Context) -> Liveness {
        Liveness::Alive
    }
}

impl Handler<Stop> for MirrorReader {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

/// One assignment as it was last believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    revision: u64,
    value: String,
}

/// The last good copy of this machine's assignments, on the disk as well: with it the engine works while the broker is away.
struct Copy {
    source: Source,
    kept: BTreeMap<String, Kept>,
    declared: BTreeMap<String, Arc<Declaration>>,
    /// Tokens of the snapshot that is being told.
    seen: BTreeSet<String>,
    is_loaded: bool,
}

impl Copy {
    fn of(source: Source) -> Self {
        let file = source.state.join(COPY);
        let kept: BTreeMap<String, Kept> = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!(%error, "the last copy of the declarations cannot be read");
                BTreeMap::new()
            }),
            Err(_) => BTreeMap::new(),
        };
        let mut declared = BTreeMap::new();
        for (token, kept) in &kept {
            if let Some(module) = unesc(token)
                && let Ok(found) =
                    wire::declaration(&source.node, &module, kept.value.as_bytes(), kept.revision)
            {
                declared.insert(token.clone(), Arc::new(found));
            }
        }
        Self { source, kept, declared, seen: BTreeSet::new(), is_loaded: false }
    }

    /// What was known when the engine was last up serves until the broker is heard.
    fn publish_if_first(&self) {
        if self.source.publish.borrow().is_none() && !self.declared.is_empty() {
            let known = Declarations::from_mirror(self.declared.clone()).not_sure();
            self.source.publish.send_replace(Some(Arc::new(known)));
        }
    }

    fn token(key: &str) -> Option<String> {
        let [_, module] = key::parts(key)?;
        Some(quartermaster_proto::mesh::esc(&module))
    }

    fn take(&mut self, told: Assigned) {
        match told {
            Assigned::Put { key, assignment, value, revision } => {
                let Some(token) = Self::token(&key) else { return };
                self.seen.insert(token.clone());
                let value = String::from_utf8_lossy(&value).into_owned();
                let declaration = wire::declared(*assignment, value.as_bytes(), revision);
                self.declared.insert(token.clone(), Arc::new(declaration));
                self.kept.insert(token, Kept { revision, value });
            }
            Assigned::Refused(key) => {
                let Some(token) = Self::token(&key) else { return };
                self.seen.insert(token.clone());
                if let Some(module) = unesc(&token) {
                    // Of one that was never believed nothing is known, and so nothing of it is taken away.
                    let unknown = Declaration { module, plan: String::new(), revision: 0, files: None };
                    self.declared.entry(token).or_insert_with(|| Arc::new(unknown));
                }
            }
            Assigned::Gone(key) => {
                let Some(token) = Self::token(&key) else { return };
                self.declared.remove(&token);
                self.kept.remove(&token);
            }
            Assigned::Loaded => {
                if !self.is_loaded {
                    let seen = std::mem::take(&mut self.seen);
                    self.declared.retain(|token, _| seen.contains(token));
                    self.kept.retain(|token, _| seen.contains(token));
                }
                self.is_loaded = true;
            }
        }
    }

    fn publish(&self) {
        if self.is_loaded {
            let known = Declarations::from_mirror(self.declared.clone());
            if self.source.publish.borrow().as_deref() != Some(&known) {
                self.source.publish.send_replace(Some(Arc::new(known)));
                self.save();
            }
        }
    }

    fn save(&self) {
        if let Err(error) = write(&self.source.state, &self.kept) {
            tracing::warn!(%error, "the copy of the declarations cannot be kept");
        }
    }
}

fn write(state: &Path, kept: &BTreeMap<String, Kept>) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(state)?;
    // Whole, since the file is not buffered.
    std::io::Write::write_all(&mut file, &serde_json::to_vec(kept)?)?;
    file.as_file().sync_all()?;
    file.persist(state.join(COPY)).map_err(|error| error.error)?;
    Ok(())
}
