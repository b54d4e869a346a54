//! What must be true of a provider's program before it is started (provider.md F10, F11). Blocks: files are read whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA256};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// A SHA-256 digest of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads 64 hexadecimal digits, in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok().map(|()| Self(bytes))
    }

    fn matches(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Which programs may be started at all.
#[derive(Debug, Clone, Default)]
pub enum Policy {
    /// Every one.
    #[default]
    AllowAll,
    /// None.
    DenyAll,
    /// Those with one of these digests.
    AllowList(Vec<Digest>),
}

/// What must be true of the program before each start and each `schema` question.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Its digest, if it is pinned.
    pub sha256: Option<Digest>,
    /// Start a private copy of the bytes that were verified, so that nobody can swap the file in between.
    pub copy: bool,
    /// The only directory from which programs are started, symbolic links resolved; none is any.
    pub directory: Option<PathBuf>,
    /// Which programs may be started at all.
    pub policy: Policy,
}

/// Why the program is not started.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It could not be read or copied.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Its digest is another one than the pinned.
    #[error("{} has the checksum {found}, but {expected} is pinned", path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: Digest,
        /// What was pinned.
        expected: Digest,
    },
    /// It lies outside of the one directory.
    #[error("{} is not below {}, and providers are only started from there", path.display(), directory.display())]
    Outside {
        /// The file.
        path: PathBuf,
        /// The directory.
        directory: PathBuf,
    },
    /// The policy does not allow it.
    #[error("no policy allows {} to be started (checksum {found})", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: Digest,
    },
}

/// A program that may be started now.
#[derive(Debug)]
pub struct Verified {
    /// What to start.
    pub path: PathBuf,
    /// Its digest, if anything asked for it.
    pub digest: Option<Digest>,
    /// Removed when the last process of it has ended.
    _copy: Option<PrivateCopy>,
}

/// A copy in a directory of its own, readable by us alone.
#[derive(Debug)]
struct PrivateCopy {
    directory: PathBuf,
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the directory of temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The digest of a file.
pub fn digest(path: &Path) -> io::Result<Digest> {
    copy_and_digest(path, &mut io::sink())
}

impl Trust {
    /// Sees whether `program` may be started, and prepares it.
    pub fn verify(&self, program: &Path) -> Result<Verified, TrustError> {
        let read = |source| TrustError::Read { path: program.to_owned(), source };
        let mut path = program.to_owned();
        if let Some(directory) = &self.directory {
            let within = fs::canonicalize(directory)
                .map_err(|source| TrustError::Read { path: directory.clone(), source })?;
            path = fs::canonicalize(program).map_err(read)?;
            if !path.starts_with(&within) {
                return Err(TrustError::Outside { path: program.to_owned(), directory: directory.clone() });
            }
        }
        if self.sha256.is_none() && !self.copy && matches!(self.policy, Policy::AllowAll) {
            return Ok(Verified { path, digest: None, _copy: None });
        }
        let (found, copy) = if self.copy {
            let (found, copy, place) = private_copy(&path).map_err(read)?;
            path = place;
            (found, Some(copy))
        } else {
            (digest(&path).map_err(read)?, None)
        };
        self.judge(program, found)?;
        Ok(Verified { path, digest: Some(found), _copy: copy })
    }

    fn judge(&self, program: &Path, found: Digest) -> Result<(), TrustError> {
        let path = || program.to_owned();
        if let Some(expected) = self.sha256.filter(|expected| !expected.matches(&found)) {
            return Err(TrustError::Mismatch { path: path(), found, expected });
        }
        let allowed = match &self.policy {
            Policy::AllowAll => true,
            Policy::DenyAll => false,
            Policy::AllowList(list) => list.iter().any(|digest| digest.matches(&found)),
        };
        if allowed { Ok(()) } else { Err(TrustError::Denied { path: path(), found }) }
    }
}

fn private_copy(program: &Path) -> io::Result<(Digest, PrivateCopy, PathBuf)> {
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let directory = std::env::temp_dir().join(format!("quartermaster-provider-{unique}"));
    DirBuilder::new().mode(0o700).create(&directory)?;
    let copy = PrivateCopy { directory };
    let place = copy.directory.join(program.file_name().unwrap_or(program.as_os_str()));
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o500).open(&place)?;
    let digest = copy_and_digest(program, &mut to)?;
    to.set_permissions(fs::Permissions::from_mode(0o500))?;
    to.sync_data()?;
    Ok((digest, copy, place))
}

fn copy_and_digest(from: &Path, to: &mut impl io::Write) -> io::Result<Digest> {
    let mut file = File::open(from)?;
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        let bytes = chunk.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        context.update(bytes);
        to.write_all(bytes)?;
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    Ok(Digest(digest))
}
