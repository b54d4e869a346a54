//! What programs say of themselves, without starting them for good. The schema of a program that is pinned by its digest is kept, so
//! that nothing is started at all when nothing has changed (provider.md D14).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{CallError, ProviderSettings, digest, probe, probe_by_describe};
use quartermaster_proto::provider::{Schema, Warning};

/// What a program said.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its schema.
    pub schema: Arc<Schema>,
    /// What was forgiven.
    pub warnings: Vec<Warning>,
    /// The digest of the program; empty when it could not be read.
    pub sha256: String,
}

/// Asks a program for its schema, or remembers it.
///
/// # Errors
/// It has another digest than the pinned, cannot be run, or says nothing usable.
pub async fn ask(
    settings: &ProviderSettings,
    by_describe: bool,
    cache: Option<&Path>,
) -> Result<Asked, CallError> {
    let program = settings.program.clone();
    let found = tokio::task::spawn_blocking(move || digest(&program).ok()).await.ok().flatten();
    let sha256 = found.map(|found| found.to_string()).unwrap_or_default();
    let is_pinned = settings.trust.sha256.is_some() && settings.trust.sha256 == found;
    // What a program says by the one way and by the other may differ.
    let way = if by_describe { "describe" } else { "schema" };
    let file = cache.filter(|_| is_pinned).map(|cache| cache.join(format!("{sha256}.{way}.json")));
    if let Some(read) =
        file.as_ref().and_then(|file| fs::read(file).ok()).and_then(|kept| Schema::from_probe(&kept).ok())
    {
        return Ok(Asked { schema: Arc::new(read.value), warnings: read.warnings, sha256 });
    }
    let orphans = Orphans::unadopted();
    let probed = if by_describe {
        probe_by_describe(settings, &orphans).await?
    } else {
        probe(settings, &orphans).await?
    };
    if let Some(file) = file {
        // What cannot be kept is asked for again the next time.
        let _ = keep(&file, &probed.printed);
    }
    Ok(Asked { schema: probed.schema, warnings: probed.warnings, sha256 })
}

/// Whole or not at all.
fn keep(file: &Path, printed: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = file.with_extension(format!("new-{}", std::process::id()));
    let mut out = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    out.write_all(printed)?;
    out.sync_all()?;
    fs::rename(&beside, file)
}

/// Where the schemas of pinned programs are kept: below the user's directory of caches.
pub fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("quartermaster/schemas"))
}
