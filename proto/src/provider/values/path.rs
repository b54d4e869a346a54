//! Where in a value something is, and what is wrong there.

use std::fmt::{self, Write as _};

use crate::text::escape_bounded;

use super::{value::Value, write::Part};

/// Longest name shown of one step of a path, in characters.
const MAX_SHOWN_NAME: usize = 60;
/// Longest path shown, in characters.
const MAX_SHOWN_PATH: usize = 160;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Into an object or map, by name.
    Key(String),
    /// Into a list, set or tuple, counted from 0.
    Index(usize),
}

/// The way from a whole to a part of it, printed as `records[1].ttl`; empty for the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The path of one attribute.
    pub fn of(name: &str) -> Self {
        Self(vec![Segment::Key(name.to_owned())])
    }

    /// The path as it stands on the wire: a list of names and numbers.
    pub(in crate::provider) fn to_part(&self) -> Part<'_> {
        let each = self.0.iter().map(|segment| match segment {
            Segment::Key(name) => Part::Text(name),
            Segment::Index(index) => Part::Count(u64::try_from(*index).unwrap_or(u64::MAX)),
        });
        Part::List(each.collect())
    }

    /// Reads a path from the wire.
    pub(in crate::provider) fn from_value(value: &Value) -> Option<Self> {
        value
            .as_list()?
            .iter()
            .map(|segment| match segment {
                Value::String(name) => Some(Segment::Key(name.to_string())),
                Value::Number(index) => index.as_u64()?.try_into().ok().map(Segment::Index),
                _ => None,
            })
            .collect::<Option<_>>()
            .map(Self)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Index(index) => write!(text, "[{index}]")?,
                Segment::Key(name) => {
                    let shown = escape_bounded(name, MAX_SHOWN_NAME);
                    match (crate::provider::is_name(name), text.is_empty()) {
                        (true, true) => text.push_str(&shown),
                        (true, false) => write!(text, ".{shown}")?,
                        (false, _) => write!(text, "[\"{shown}\"]")?,
                    }
                }
            }
            if text.len() > MAX_SHOWN_PATH {
                break;
            }
        }
        out.write_str(&escape_bounded(&text, MAX_SHOWN_PATH))
    }
}

/// Something wrong with one part of a value. It never repeats the value, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(path))]
pub struct Complaint {
    /// Where.
    pub path: Path,
    /// What is wrong there: no text of the value, only types and declared names.
    pub message: String,
}

fn place(path: &Path) -> String {
    if path.0.is_empty() { String::new() } else { format!("`{path}`: ") }
}
