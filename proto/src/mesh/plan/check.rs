//! What single members of a plan may hold.

use crate::mesh::token::{is_bucket_name, is_name};

/// Longest path, in bytes.
const MAX_PATH: usize = 4_095;

type Checked = Result<(), &'static str>;

/// An absolute path of a file without `.`, `..`, empty parts and control characters.
pub(super) fn path(text: &str) -> Checked {
    let Some(rest) = text.strip_prefix('/') else { return Err("is not an absolute path") };
    if text.len() > MAX_PATH {
        return Err("is longer than a path may be");
    }
    if text.contains(char::is_control) {
        return Err("holds control characters");
    }
    if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("is not a plain path: it has an empty part, `.` or `..`");
    }
    if rest.split('/').any(|part| part.len() > 255) {
        return Err("has a part of more than 255 bytes");
    }
    Ok(())
}

pub(super) fn name(text: &str) -> Checked {
    if is_name(text) { Ok(()) } else { Err("is no name: 1 to 255 bytes without `/` and control characters") }
}

pub(super) fn provider(text: &str) -> Checked {
    if is_bucket_name(text) {
        Ok(())
    } else {
        Err("is no name of a provider: only A-Z a-z 0-9 _ - may stand in it")
    }
}

/// A template's name, a collection: any text of one line.
pub(super) fn line(text: &str) -> Checked {
    if (1..=1_024).contains(&text.len()) && !text.contains(char::is_control) {
        Ok(())
    } else {
        Err("is not 1 to 1,024 bytes without control characters")
    }
}

/// A comment's beginning or end; may be empty.
pub(super) fn comment(text: &str) -> Checked {
    if text.len() <= 64 && !text.contains(char::is_control) {
        Ok(())
    } else {
        Err("is not up to 64 bytes without control characters")
    }
}

/// The name of an account of the operating system.
pub(super) fn account(text: &str) -> Checked {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$');
    if (1..=64).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_plain) {
        Ok(())
    } else {
        Err("is no name of a user or group")
    }
}

/// The name of a systemd unit.
pub(super) fn unit(text: &str) -> Checked {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'.' | b'\\' | b'@' | b'-');
    if (1..=255).contains(&text.len())
        && !text.starts_with('-')
        && text.contains('.')
        && text.bytes().all(is_plain)
    {
        Ok(())
    } else {
        Err("is no name of a unit, such as forge.service")
    }
}
