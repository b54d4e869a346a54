//! The vault as a whole: opened, started, stopped.

use std::fmt;
use std::fs;
use std::future::Future;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quartermaster_actors::supervise::{
    Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy, Slot, Vital, Ward,
};
use quartermaster_proto::mesh::key::SECRET_CHANGED;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::admin::AdminListener;
use super::server::{Clock, Part, Shared, VaultServer};
use super::{ServiceError, Settings};
use crate::client::bus::Bus;
use crate::secrecy::forbid_core_files;
use crate::vault::kv::KvClient;
use crate::vault::{Audit, Rules, Store, StoreKey, Vault, box_key, keep_to};

/// How long each actor may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// What the file beside the store ends with that remembers how far the mirror had come.
const SEEN: &str = "seen";

/// Opens the store, or makes an empty one, with the key of this file.
///
/// # Errors
/// [`ServiceError`].
pub fn open_store(store: &Path, key_file: &Path) -> Result<Store, ServiceError> {
    let key = StoreKey::from_file(key_file)?;
    if let Some(folder) = store.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| file(folder, source))?;
    }
    Ok(Store::open(store, key)?)
}

/// Makes the store, if it is not there; answers the public half of the key that deposits are sealed to, standard base64.
///
/// # Errors
/// [`ServiceError`].
pub fn init(store: &Path, key_file: &Path) -> Result<String, ServiceError> {
    let key = box_key(&mut open_store(store, key_file)?)?;
    Ok(STANDARD.encode(key.public()))
}

fn file(path: &Path, source: std::io::Error) -> ServiceError {
    ServiceError::File { path: path.display().to_string(), source }
}

/// A vault that has begun, for who watches over it.
#[derive(Clone)]
pub struct Running {
    overseer: OverseerHandle,
    shared: Weak<Shared>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// Signs of life.
    pub fn vital(&self) -> Vital {
        self.overseer.vital()
    }

    /// What it can do now, in a few words.
    pub fn in_words(&self) -> &'static str {
        self.shared.upgrade().map_or("ending", |shared| shared.in_words())
    }
}

/// Runs the vault until `stop` resolves, on the current actix system; `begun` is told when it listens. The broker and the
/// key-value store may be away.
///
/// # Errors
/// [`ServiceError`].
pub async fn run(
    settings: Settings,
    clock: Clock,
    begun: impl FnOnce(Running),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    forbid_core_files();
    let mut store = open_store(&settings.store, &settings.key_file)?;
    let kv = settings.kv.map(KvClient::new).transpose()?;
    keep_to(&mut store, kv.is_some())?;
    let rules = match &settings.rules {
        Some(path) => Rules::parse(&fs::read_to_string(path).map_err(|source| file(path, source))?)?,
        None => Rules::default(),
    };
    let audit = Audit::open(&settings.audit).map_err(|source| file(&settings.audit, source))?;
    let vault = Vault::new(store, audit, rules, SECRET_CHANGED)?;
    let socket = Arc::new(bind(&settings.socket).map_err(|source| file(&settings.socket, source))?);
    let (closing, closed) = oneshot::channel();
    let shared = Arc::new(Shared::new(vault, Part { kv, metrics: settings.metrics }, clock, closing));
    let bus = Bus::connect(settings.bus).await?;
    let mut hangups =
        signal(SignalKind::hangup()).map_err(|error| ServiceError::Fatal { why: error.to_string() })?;

    let always = RestartPolicy::standard();
    let wards: Vec<Box<dyn Ward>> = vec![
        Box::new({
            let (shared, pins) = (Arc::clone(&shared), settings.pins);
            let seen = settings.store.with_extension(SEEN);
            Owned::new(Slot::new("vault", 1), always, move |birth, _| {
                VaultServer::new(Arc::clone(&shared), bus.clone(), pins.clone(), seen.clone(), birth)
            })
        }),
        Box::new({
            let shared = Arc::clone(&shared);
            Owned::new(Slot::new("vault-admin", 1), always, move |birth, _| {
                AdminListener::new(Arc::clone(&socket), Arc::clone(&shared), birth)
            })
        }),
    ];
    let observer = Arc::new(|ending: &quartermaster_actors::supervise::ActorEnding| {
        tracing::warn!(child = %ending.child, cause = %ending.cause, decision = ending.decision, "a part of the vault ended");
    });
    let overseer = Overseer::launch(OverseerSettings::default(), wards, observer);
    tracing::info!(socket = %settings.socket.display(), "the vault listens");
    // It does not keep the store open.
    begun(Running { overseer: overseer.clone(), shared: Arc::downgrade(&shared) });
    tokio::pin!(stop);
    let ended = loop {
        tokio::select! {
            () = &mut stop => break Ok(()),
            fatal = overseer.fatal() => {
                break Err(ServiceError::Fatal { why: format!("{}: {}", fatal.child, fatal.why) });
            }
            _ = hangups.recv() => shared.reopen_audit(),
        }
    };
    overseer.stop(STOP_LIMIT).await;
    drop((overseer, shared));
    // Nobody answers there any more.
    let _ = fs::remove_file(&settings.socket);
    // Whoever starts next is to find the store closed.
    let _ = tokio::time::timeout(STOP_LIMIT, closed).await;
    ended
}

/// Listens for operators; the socket gets its name only when nobody else can reach it.
fn bind(path: &Path) -> std::io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{:08x}", rand::random::<u32>()));
    let listener = UnixListener::bind(&beside)?;
    let named = fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&beside, path));
    if let Err(error) = named {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    listener.set_nonblocking(true)?;
    Ok(listener)
}
