//! What a provider writes to standard error: lines of bounded length and rate, understood and made harmless (provider.md D12, F9).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quartermaster_proto::provider::{Level, Lines, LogReader, Overlong, Value};

use super::masks::Masks;
use crate::child::printable;

/// The most of one line; longer ones are split.
const MAX_LINE: usize = 64 * 1024;
/// The most lines a second that go to the log.
const MAX_RATE: u32 = 1_000;
const SECOND: Duration = Duration::from_secs(1);
/// So many of the last lines are kept for errors.
const TAIL: usize = 40;
/// The most of one kept line, in characters.
const TAIL_LINE: usize = 512;

/// A line that is an object may say with this member whom it is about.
const HOST: &str = "host";

/// One line, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// How weighty it is.
    pub level: Level,
    /// The text; masked and without anything that could forge a line.
    pub text: String,
    /// Whom or what it is about, when only one call was open on its process.
    pub about: Option<Arc<str>>,
    /// So many more lines were not logged; the text says so, too.
    pub dropped: u64,
}

/// Takes the bytes of one process's standard error and gives back lines. Pure.
#[derive(Debug)]
pub struct Stderr {
    lines: Lines,
    reader: LogReader,
    masks: Masks,
    tail: VecDeque<String>,
    second: Option<Instant>,
    in_second: u32,
    dropped: u64,
}

impl Stderr {
    /// The standard error of a process that has just started.
    pub fn new(masks: Masks) -> Self {
        Self {
            lines: Lines::new(MAX_LINE, Overlong::Split),
            reader: LogReader::default(),
            masks,
            tail: VecDeque::new(),
            second: None,
            in_second: 0,
            dropped: 0,
        }
    }

    /// Takes the next bytes; `say` is called with each line that is to be logged.
    pub fn push(&mut self, bytes: &[u8], now: Instant, say: &mut impl FnMut(Said)) {
        self.lines.push(bytes);
        while let Some(Ok(line)) = self.lines.next_line() {
            self.line(&line, now, say);
        }
    }

    /// When it is to be told what was not logged, though nothing more may come.
    pub fn due(&self) -> Option<Instant> {
        self.second.filter(|_| self.dropped > 0).and_then(|second| second.checked_add(SECOND))
    }

    /// Tells what was not logged, once its second is over.
    pub fn tick(&mut self, now: Instant, say: &mut impl FnMut(Said)) {
        if self.due().is_some_and(|due| now >= due) {
            self.own_up(say);
        }
    }

    /// Nothing more comes.
    pub fn finish(&mut self, now: Instant, say: &mut impl FnMut(Said)) {
        while let Some(Ok(line)) = self.lines.finish() {
            self.line(&line, now, say);
        }
        self.own_up(say);
    }

    /// The last lines, oldest first.
    pub fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }

    fn line(&mut self, line: &[u8], now: Instant, say: &mut impl FnMut(Said)) {
        let event = self.reader.read(line);
        let mut text = event.message;
        let about = event.fields.iter().find(|(name, _)| *name == HOST).and_then(|(_, value)| value.as_str());
        let about = about.map(|about| Arc::from(printable(self.masks.text(about).as_bytes())));
        for (name, value) in event.fields.iter().filter(|(name, _)| *name != HOST || about.is_none()) {
            let value = value.as_str().map_or_else(|| Value::to_json(value), str::to_owned);
            text = format!("{text} {name}={value}");
        }
        let text = printable(self.masks.text(&text).as_bytes());
        if text.is_empty() {
            return;
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(text.chars().take(TAIL_LINE).collect());
        let fresh = self.second.is_none_or(|second| now.saturating_duration_since(second) >= SECOND);
        if fresh {
            self.second = Some(now);
            self.in_second = 0;
            self.own_up(say);
        }
        self.in_second += 1;
        if self.in_second > MAX_RATE {
            self.dropped += 1;
        } else {
            say(Said { level: event.level, text, about, dropped: 0 });
        }
    }

    fn own_up(&mut self, say: &mut impl FnMut(Said)) {
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            let text = format!("… {dropped} more lines not logged");
            say(Said { level: Level::Warn, text, about: None, dropped });
        }
    }
}
