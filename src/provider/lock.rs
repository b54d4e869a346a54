//! `provider lock`: the digests of providers, written down so that another program under the same name is noticed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{digest, probe};
use quartermaster_actors::text::causes;
use serde::{Deserialize, Serialize};

use super::command::say;
use super::program::{explained, settings};
use crate::cli::out::Out;
use crate::exit::Exit;

/// The version of the file's form.
const FORM: u32 = 1;

/// Arguments of `quartermaster provider lock`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Each program is asked for its schema (PROGRAM schema); nothing is configured, nothing done. Exit codes: 0 written, or all \
as written; 4 a program or the file cannot be used; 6 with --check: something is not as written."
)]
pub struct Args {
    /// The providers' programs
    #[arg(value_name = "PROGRAM", required = true)]
    pub programs: Vec<PathBuf>,
    /// The file with the digests
    #[arg(long, value_name = "FILE", default_value = "providers.lock.json")]
    pub file: PathBuf,
    /// Compare instead of writing
    #[arg(long)]
    pub check: bool,
}

/// The file: programs by path, as they were named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFile {
    /// The version of this form.
    pub form: u32,
    /// What was seen of each program.
    pub providers: BTreeMap<String, Locked>,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// What it calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of the file: `sha256` of a provider's settings.
    pub sha256: String,
    /// The digest of what it declares.
    pub schema_sha256: String,
}

pub async fn run(args: &Args, out: &mut Out) -> Exit {
    let mut lock = match read(&args.file) {
        Ok(lock) => lock,
        Err(error) => {
            say(&format!("{}: {error}\n", args.file.display()));
            return Exit::Files;
        }
    };
    let mut exit = Exit::Success;
    for program in &args.programs {
        let key = program.to_string_lossy().into_owned();
        let seen = match look(program).await {
            Ok(seen) => seen,
            Err(error) => {
                say(&format!("{error}\n"));
                return Exit::Files;
            }
        };
        if args.check {
            let difference = compare(lock.providers.get(&key), &seen);
            match difference {
                None => out.text(&format!("{key}: as locked ({} {})\n", seen.name, seen.version)),
                Some(difference) => {
                    out.text(&format!("{key}: {difference}\n"));
                    exit = Exit::Incomplete;
                }
            }
        } else {
            out.text(&format!("{key}: {} {} {}\n", seen.name, seen.version, seen.sha256));
            lock.providers.insert(key, seen);
        }
    }
    if !args.check
        && let Err(error) = write(&args.file, &lock)
    {
        say(&format!("{}: {error}\n", args.file.display()));
        return Exit::Files;
    }
    exit
}

async fn look(program: &Path) -> Result<Locked, String> {
    let settings = settings(program);
    let sha256 = digest(&settings.program)
        .map_err(|error| format!("{} cannot be read: {}", program.display(), causes(&error)))?;
    let probed = probe(&settings, &Orphans::unadopted()).await.map_err(|error| explained(&error))?;
    Ok(Locked {
        name: probed.schema.name.clone(),
        version: probed.schema.version.clone(),
        sha256: sha256.to_string(),
        schema_sha256: hex::encode(probed.schema.digest()),
    })
}

/// What is not as it was; none when all is.
fn compare(locked: Option<&Locked>, seen: &Locked) -> Option<String> {
    let Some(locked) = locked else { return Some("is not in the file".to_owned()) };
    if locked.sha256 == seen.sha256 && locked.schema_sha256 == seen.schema_sha256 {
        return None;
    }
    let what = if locked.schema_sha256 == seen.schema_sha256 {
        "is another program that declares the same"
    } else {
        "declares something else"
    };
    Some(format!("{what}: {} {}, locked was {} {}", seen.name, seen.version, locked.name, locked.version))
}

fn read(file: &Path) -> Result<LockFile, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(LockFile { form: FORM, ..LockFile::default() });
        }
        Err(error) => return Err(error.to_string()),
    };
    let lock: LockFile = serde_json::from_str(&text).map_err(|error| format!("no lock file: {error}"))?;
    if lock.form == FORM { Ok(lock) } else { Err(format!("its form is {}, known is {FORM}", lock.form)) }
}

/// Whole or not at all: first beside it, then in its place.
fn write(file: &Path, lock: &LockFile) -> Result<(), String> {
    let text = serde_json::to_string_pretty(lock).map_err(|error| error.to_string())?;
    let folder =
        file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(|error| error.to_string())?;
    std::io::Write::write_all(&mut beside, format!("{text}\n").as_bytes())
        .map_err(|error| error.to_string())?;
    beside.persist(file).map(|_| ()).map_err(|error| error.error.to_string())
}
