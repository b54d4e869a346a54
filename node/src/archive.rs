//! Archives of templates, read into memory under limits. Nothing is ever unpacked to a disk.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    sync::Arc,
};

use flate2::read::MultiGzDecoder;
use quartermaster_proto::text::escape_bounded;
use ruzstd::decoding::StreamingDecoder;
use tar::EntryType;

/// Most bytes that are fetched.
pub const MAX_FETCHED: usize = 32 * 1024 * 1024;
/// Most bytes that an archive unpacks to.
pub const MAX_UNPACKED: u64 = 128 * 1024 * 1024;
/// Most entries, directories included.
pub const MAX_ENTRIES: usize = 4_096;
/// Longest template, in bytes.
pub const MAX_TEMPLATE: u64 = 1024 * 1024;

/// Templates by name.
pub type Templates = BTreeMap<String, Arc<[u8]>>;

/// Why an archive is refused. It is the same each time, so only another archive helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// More bytes than may be fetched.
    #[error("the archive has {0} bytes, over the limit of {MAX_FETCHED}")]
    TooLong(usize),
    /// It unpacks to more than it may.
    #[error("the archive unpacks to more than {MAX_UNPACKED} bytes")]
    Bomb,
    /// More entries than there may be.
    #[error("the archive has more than {MAX_ENTRIES} entries")]
    TooMany,
    /// An entry that is neither a regular file nor a directory.
    #[error("`{}` is no regular file", escape_bounded(.0, 120))]
    NotAFile(String),
    /// An entry whose name leads elsewhere.
    #[error("`{}` is no relative path of plain parts", escape_bounded(.0, 120))]
    Name(String),
    /// Two entries of one name.
    #[error("`{}` is there twice", escape_bounded(.0, 120))]
    Twice(String),
    /// A template longer than one may be.
    #[error("`{}` has more than {MAX_TEMPLATE} bytes", escape_bounded(.0, 120))]
    Template(String),
    /// It is no tar archive, or a damaged one.
    #[error("the archive cannot be read: {}", escape_bounded(.0, 120))]
    Damaged(String),
}

/// Reads a tar archive, plain or compressed with gzip or zstd (its first bytes decide).
///
/// # Errors
/// Why the archive as a whole is refused.
pub fn read(bytes: &[u8]) -> Result<Templates, ArchiveError> {
    if bytes.len() > MAX_FETCHED {
        return Err(ArchiveError::TooLong(bytes.len()));
    }
    match bytes {
        [0x1f, 0x8b, ..] => entries(MultiGzDecoder::new(bytes)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match StreamingDecoder::new(bytes) {
            Ok(decoder) => entries(decoder),
            Err(error) => Err(ArchiveError::Damaged(error.to_string())),
        },
        plain => entries(plain),
    }
}

fn entries(unpacked: impl Read) -> Result<Templates, ArchiveError> {
    let mut archive = tar::Archive::new(Counted { inner: unpacked, left: MAX_UNPACKED });
    let mut templates = Templates::new();
    let mut count = 0;
    for entry in archive.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        count += 1;
        if count > MAX_ENTRIES {
            return Err(ArchiveError::TooMany);
        }
        let raw = entry.path_bytes().into_owned();
        let shown = || String::from_utf8_lossy(&raw).into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular => {}
            _ => return Err(ArchiveError::NotAFile(shown())),
        }
        let name = plain_name(&raw).ok_or_else(|| ArchiveError::Name(shown()))?;
        if entry.size() > MAX_TEMPLATE {
            return Err(ArchiveError::Template(shown()));
        }
        let mut content = Vec::new();
        entry.by_ref().take(MAX_TEMPLATE + 1).read_to_end(&mut content).map_err(|error| damaged(&error))?;
        if u64::try_from(content.len()).is_ok_and(|length| length != entry.size()) {
            return Err(ArchiveError::Damaged(format!("`{name}` is cut short")));
        }
        if templates.insert(name, content.into()).is_some() {
            return Err(ArchiveError::Twice(shown()));
        }
    }
    Ok(templates)
}

/// A relative name of plain parts; a leading `./` is dropped.
fn plain_name(raw: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(raw).ok()?;
    let name = name.strip_prefix("./").unwrap_or(name);
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    name.split('/').all(is_plain).then(|| name.to_owned())
}

fn damaged(error: &io::Error) -> ArchiveError {
    // The tar reader wraps what the counter says, so the text is looked at and not the source.
    if error.to_string().contains(BOMB) || io_chain_holds(error) {
        ArchiveError::Bomb
    } else {
        ArchiveError::Damaged(error.to_string())
    }
}

fn io_chain_holds(error: &io::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = error.get_ref().map(|inner| inner as _);
    while let Some(error) = next {
        if error.to_string().contains(BOMB) {
            return true;
        }
        next = error.source();
    }
    false
}

const BOMB: &str = "unpacks to too much";

/// Counts what comes out of a decompressor, while it comes out.
struct Counted<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        match u64::try_from(count).ok().and_then(|count| self.left.checked_sub(count)) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => Err(io::Error::other(BOMB)),
        }
    }
}

#[cfg(test)]
mod tests;
