//! Secrets in a record: covered where nobody needs them again, sealed with the key of this machine where an undo does.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quartermaster_actors::journal::Seal;
use quartermaster_proto::provider::{Limits, Members, Value};
use zeroize::Zeroizing;

use crate::scenario::secrets::Secrets;

/// The one member of an object that stands for a sealed value.
const SEALED: &str = "x_sealed";
const LIMITS: Limits = Limits { max_bytes: 64 * 1024 * 1024, max_depth: 128, max_items: 4_000_000 };

/// Where the key lies; it is made when something is sealed for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordKey(pub PathBuf);

impl RecordKey {
    /// Reads the key.
    ///
    /// # Errors
    /// The file cannot be read, or holds no key.
    pub fn read(&self) -> io::Result<Seal> {
        Self::seal(&Zeroizing::new(fs::read(&self.0)?))
    }

    /// Reads the key, and makes one if there is none.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds no key.
    pub fn open(&self) -> io::Result<Seal> {
        let path = &self.0;
        match self.read() {
            Ok(seal) => Ok(seal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = Seal::make_key().ok_or_else(|| io::Error::other("no randomness"))?;
                if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                }
                // Whole or not at all, and never over one that another run has just made.
                let beside = path.with_extension(format!("new-{}", std::process::id()));
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
                file.write_all(&key)?;
                file.sync_all()?;
                let linked = fs::hard_link(&beside, path);
                fs::remove_file(&beside)?;
                match linked {
                    Ok(()) => Self::seal(&key),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.read(),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn seal(key: &[u8]) -> io::Result<Seal> {
        Seal::new(key).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no key of 32 bytes"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// What is done to values on their way into a record and out of it.
pub struct Cover {
    secrets: Secrets,
    seal: Option<Seal>,
    run: String,
}

impl fmt::Debug for Cover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cover").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Cover {
    /// A cover for the record of this run. Without a seal what should be sealed is lost.
    pub const fn new(secrets: Secrets, seal: Option<Seal>, run: String) -> Self {
        Self { secrets, seal, run }
    }

    /// A text with every secret covered.
    pub fn text(&self, text: &str) -> String {
        self.secrets.text(text)
    }

    /// A value with every secret covered.
    pub fn mask(&self, value: &Value) -> Value {
        self.secrets.value(value)
    }

    /// A value in which every part that has a secret in it is sealed.
    pub fn seal(&self, value: &Value) -> Value {
        match value {
            Value::List(items) => items.iter().map(|item| self.seal(item)).collect(),
            // A name that is secret gives itself away, so the whole object is sealed.
            Value::Object(members) if members.keys().all(|name| self.secrets.text(name) == *name) => {
                members.iter().map(|(name, part)| (name.clone(), self.seal(part))).collect()
            }
            part if self.secrets.value(part) == *part => part.clone(),
            part => {
                let text = Zeroizing::new(part.to_json());
                let sealed = self.seal.as_ref().and_then(|seal| seal.close(&self.run, &text));
                let sealed = sealed.map_or(Value::Null, |bytes| STANDARD.encode(bytes).into());
                [(SEALED, sealed)].into_iter().collect()
            }
        }
    }

    /// The value behind the seals; none when one cannot be opened.
    pub fn open(&self, value: &Value) -> Option<Value> {
        match value {
            Value::List(items) => {
                items.iter().map(|item| self.open(item)).collect::<Option<Vec<_>>>().map(Value::List)
            }
            Value::Object(members) => {
                if let (1, Some(sealed)) = (members.len(), members.get(SEALED)) {
                    return self.unseal(sealed);
                }
                let each = members.iter().map(|(name, part)| Some((name.clone(), self.open(part)?)));
                each.collect::<Option<Members>>().map(Value::Object)
            }
            plain => Some(plain.clone()),
        }
    }

    fn unseal(&self, sealed: &Value) -> Option<Value> {
        let bytes = STANDARD.decode(sealed.as_str()?).ok()?;
        let text = self.seal.as_ref()?.open(&self.run, &bytes)?;
        let value = Value::from_json(&text, &LIMITS).ok()?;
        // What was sealed is secret here too.
        self.secrets.cover([&value]);
        Some(value)
    }
}
