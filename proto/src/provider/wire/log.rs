//! What a provider writes to stderr, one line at a time.

use crate::{
    json::Limits,
    provider::values::{Members, Value, parse},
};

use super::names;

/// How weighty a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For following every move.
    Trace,
    /// For the author.
    Debug,
    /// What a line is that says nothing else.
    Info,
    /// Something odd.
    Warn,
    /// Something wrong.
    Error,
}

/// One line of stderr, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEvent {
    /// How weighty it is.
    pub level: Level,
    /// What it says, as it was written; escape it before it is shown.
    pub message: String,
    /// What else a structured line holds.
    pub fields: Members,
}

/// Reads the lines of one process: JSON objects with `level` and `msg`, prefixes such as `[WARN]`, the text of Go and Rust
/// panics, and everything else as it stands. Nothing is refused.
///
/// ```
/// use quartermaster_proto::provider::{Level, LogReader};
/// let mut log = LogReader::default();
/// let event = log.read(br#"{"level":"warn","msg":"slow zone","zone":"example.test"}"#);
/// assert_eq!((event.level, event.message.as_str()), (Level::Warn, "slow zone"));
/// assert_eq!(log.read(b"[ERROR] no route").message, "no route");
/// ```
#[derive(Debug, Default)]
pub struct LogReader {
    /// Inside the text of a panic: what follows is an error too, until a line says its own level.
    in_panic: bool,
}

/// Bounds of a structured line; what is over them is taken as plain text.
const LIMITS: Limits = Limits { max_bytes: 64 * 1024, max_depth: 16, max_items: 2_000 };

impl LogReader {
    /// Understands one line, without its end.
    pub fn read(&mut self, line: &[u8]) -> LogEvent {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\r', '\n']);
        if let Some(event) = structured(text).or_else(|| prefixed(text)) {
            self.in_panic = false;
            return event;
        }
        self.in_panic |= starts_panic(text);
        let level = if self.in_panic { Level::Error } else { Level::Info };
        LogEvent { level, message: text.to_owned(), fields: Members::new() }
    }
}

fn structured(text: &str) -> Option<LogEvent> {
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    let Value::Object(mut fields) = parse(text, &LIMITS).ok()?.value else { return None };
    let level = match fields.get(names::LEVEL)? {
        Value::String(name) => Level::from_name(name)?,
        // Some loggers count in tens: 30 is info, 40 is warn.
        Value::Number(number) => Level::from_tens(number.as_u64()?),
        _ => return None,
    };
    let message = fields.get(names::MSG)?.as_str()?.to_owned();
    fields.remove(names::LEVEL);
    fields.remove(names::MSG);
    Some(LogEvent { level, message, fields })
}

/// `[WARN] …`.
fn prefixed(text: &str) -> Option<LogEvent> {
    let (name, rest) = text.trim_ascii_start().strip_prefix('[')?.split_once(']')?;
    let level = Level::from_name(name.trim_ascii())?;
    Some(LogEvent { level, message: rest.trim_ascii_start().to_owned(), fields: Members::new() })
}

fn starts_panic(text: &str) -> bool {
    let rust = text.starts_with("thread '") && text.contains("panicked at");
    rust || ["panic: ", "fatal error: ", "runtime error: "].iter().any(|start| text.starts_with(start))
}

impl Level {
    fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "trace" => Some(Self::Trace),
            "debug" => Some(Self::Debug),
            "info" | "notice" => Some(Self::Info),
            "warn" | "warning" => Some(Self::Warn),
            "error" | "err" | "fatal" | "critical" | "panic" => Some(Self::Error),
            _ => None,
        }
    }

    const fn from_tens(number: u64) -> Self {
        match number {
            0..20 => Self::Trace,
            20..30 => Self::Debug,
            30..40 => Self::Info,
            40..50 => Self::Warn,
            _ => Self::Error,
        }
    }
}
