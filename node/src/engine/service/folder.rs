//! The actor that reads declarations from a folder and publishes them as they change.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler};
use quartermaster_actors::supervise::{Birth, ExitNotice, Liveness, Ping, Stop};
use quartermaster_proto::mesh::unesc;
use tokio::sync::watch;

use crate::engine::declaration::{Declaration, Declarations};
use crate::engine::wire;

/// Its mailbox: pings, and nothing else.
const MAILBOX: usize = 4;
/// Longest declaration, in bytes.
const MAX_DECLARATION: u64 = 8 * 1024 * 1024;

/// Where declarations are published.
pub(super) type Publish = Arc<watch::Sender<Option<Arc<Declarations>>>>;

/// What tells one state of a file from another.
type Stamp = (u64, u64, i64, i64);

/// Looks at the folder at intervals and reads what changed in it.
pub(super) struct DeclarationsReader {
    reader: Reader,
    every: Duration,
    publish: Publish,
    /// Its drop tells the owner.
    _notice: ExitNotice,
}

impl DeclarationsReader {
    pub(super) fn new(
        node: String,
        folder: PathBuf,
        every: Duration,
        publish: Publish,
        birth: Birth,
    ) -> Self {
        Self { reader: Reader::new(node, folder), every, publish, _notice: birth.notice }
    }

    fn look(&mut self) {
        if let Some(declarations) = self.reader.look() {
            self.publish.send_replace(Some(Arc::new(declarations)));
        }
    }
}

impl Actor for DeclarationsReader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.look();
        ctx.run_interval(self.every, |me, _| me.look());
    }
}

impl Handler<Ping> for DeclarationsReader {
    type Result = Liveness;

    fn handle(&mut self, Ping: Ping, _: &mut Self::Context) -> Liveness {
        Liveness::Alive
    }
}

impl Handler<Stop> for DeclarationsReader {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

/// The folder and what was last read from it.
struct Reader {
    node: String,
    folder: PathBuf,
    stamps: Option<BTreeMap<String, Stamp>>,
    declared: BTreeMap<String, Arc<Declaration>>,
    has_complained: bool,
}

impl Reader {
    const fn new(node: String, folder: PathBuf) -> Self {
        Self { node, folder, stamps: None, declared: BTreeMap::new(), has_complained: false }
    }

    /// Reads the folder again if anything in it changed. A folder that cannot be read changes nothing.
    fn look(&mut self) -> Option<Declarations> {
        let stamps = match self.stamps() {
            Ok(stamps) => stamps,
            Err(error) => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    tracing::warn!(folder = %self.folder.display(), %error, "cannot read the declarations; what is known stays");
                }
                return None;
            }
        };
        self.has_complained = false;
        if self.stamps.as_ref() == Some(&stamps) {
            return None;
        }
        let before = self.stamps.take().unwrap_or_default();
        self.declared.retain(|token, _| stamps.contains_key(token));
        for (token, stamp) in &stamps {
            if before.get(token) != Some(stamp) {
                self.read(token);
            }
        }
        self.stamps = Some(stamps);
        Some(Declarations::from_folder(self.declared.clone()))
    }

    fn stamps(&self) -> std::io::Result<BTreeMap<String, Stamp>> {
        use std::os::unix::fs::MetadataExt as _;
        let mut stamps = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Some(token) =
                entry.file_name().to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned)
            else {
                continue;
            };
            let is_module = unesc(&token).is_some_and(|module| quartermaster_proto::mesh::is_name(&module));
            // A file may go between the two.
            if let (true, Ok(file)) = (is_module, entry.metadata())
                && file.is_file()
                && file.len() <= MAX_DECLARATION
            {
                stamps.insert(token, (file.ino(), file.len(), file.mtime(), file.mtime_nsec()));
            }
        }
        Ok(stamps)
    }

    fn read(&mut self, token: &str) {
        let Some(module) = unesc(token) else { return };
        let text = fs::read(self.folder.join(format!("{token}.json"))).map_err(|error| error.to_string());
        let read = text.and_then(|text| {
            wire::declaration(&self.node, &module, &text, 0).map_err(|fault| fault.to_string())
        });
        match read {
            Ok(declaration) => {
                self.declared.insert(token.to_owned(), Arc::new(declaration));
            }
            Err(why) => {
                tracing::warn!(module, why, "a declaration cannot be read; what the module has stays");
                let unknown = Declaration { module, plan: String::new(), revision: 0, files: None };
                self.declared.insert(token.to_owned(), Arc::new(unknown));
            }
        }
    }
}
