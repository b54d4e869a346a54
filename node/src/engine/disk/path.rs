//! Paths that may be written at all.

use std::fmt;

use crate::engine::fault::{Fault, FileCode};

/// Longest path, in bytes, as the system has it.
const MAX_PATH: usize = 4_095;
/// Longest name between two slashes, in bytes.
const MAX_NAME: usize = 255;

/// Why a path is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with a slash.
    #[error("the path is not absolute")]
    Relative,
    /// It has an empty part, `.`, `..`, or ends with a slash.
    #[error("the path has an empty part, `.` or `..`")]
    Part,
    /// It holds a control character.
    #[error("the path holds a control character")]
    Control,
    /// It, or a part of it, is longer than a path can be.
    #[error("the path is too long")]
    TooLong,
}

/// An absolute path of a file, as plain as can be: no empty part, no `.` and no `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FilePath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let rest = path.strip_prefix('/').ok_or(PathError::Relative)?;
        if path.len() > MAX_PATH || rest.split('/').any(|part| part.len() > MAX_NAME) {
            return Err(PathError::TooLong);
        }
        if path.chars().any(char::is_control) {
            return Err(PathError::Control);
        }
        if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(PathError::Part);
        }
        Ok(Self(path.to_owned()))
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder that holds it; empty for the root.
    pub fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The parts of that folder, from the root.
    pub fn folder_parts(&self) -> Vec<&str> {
        self.folder().split('/').filter(|part| !part.is_empty()).collect()
    }

    /// The name in that folder.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }
}

/// The folders below which anything may be written; without one, nothing is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots(Vec<String>);

impl Roots {
    /// Checks the folders. `/` stands for everything.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn parse<'a>(roots: impl IntoIterator<Item = &'a str>) -> Result<Self, PathError> {
        let checked = roots.into_iter().map(|root| match root.strip_suffix('/').unwrap_or(root) {
            "" if root == "/" => Ok(String::new()),
            root => FilePath::parse(root).map(|path| path.0),
        });
        Ok(Self(checked.collect::<Result<_, _>>()?))
    }

    /// Says whether a path may be written.
    ///
    /// # Errors
    /// [`FileCode::PathRefused`].
    pub fn admit(&self, path: &FilePath) -> Result<(), Fault> {
        let is_below =
            |root: &String| path.0.strip_prefix(root.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if self.0.iter().any(is_below) {
            return Ok(());
        }
        let reason = if self.0.is_empty() {
            "the engine has no roots, so it writes nothing".to_owned()
        } else {
            format!("{path} lies outside of the engine's roots")
        };
        Err(Fault::new(FileCode::PathRefused, reason))
    }
}
