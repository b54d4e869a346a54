//! Events and spans of `tracing` become lines.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::LogFormat;
use super::escape::{json_text, plain_text};
use super::journald::front;
use super::sink::Sink;
use crate::config::LogLevel;

const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// Writes every event as one line.
pub struct LogLayer {
    format: LogFormat,
    level: Level,
    sink: Arc<dyn Sink>,
    now: fn() -> OffsetDateTime,
    is_journal: bool,
    host: Option<String>,
}

impl LogLayer {
    /// Lines in `format` to `sink`, events below `level` left out.
    pub fn new(format: LogFormat, level: LogLevel, sink: Arc<dyn Sink>) -> Self {
        let level = match level {
            LogLevel::Debug => Level::DEBUG,
            LogLevel::Info => Level::INFO,
            LogLevel::Warn => Level::WARN,
            LogLevel::Error => Level::ERROR,
        };
        Self { format, level, sink, now: OffsetDateTime::now_utc, is_journal: false, host: None }
    }

    /// Whether lines go to the journal: each with its priority in front, and as text without the time, which the journal has.
    #[must_use]
    pub const fn to_journal(mut self, is_journal: bool) -> Self {
        self.is_journal = is_journal;
        self
    }

    /// The host that a line is about where it says nothing else.
    #[must_use]
    pub fn of_host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }

    #[cfg(test)]
    pub(super) fn at(mut self, now: fn() -> OffsetDateTime) -> Self {
        self.now = now;
        self
    }

    /// Libraries speak about their own insides, credentials among them at their lowest levels: from them only what matters at
    /// ours. The NATS client reports every attempt to connect as an error; the link says the same at a bounded rate.
    fn wants(&self, target: &str, level: Level) -> bool {
        let limit = if target.starts_with("quartermaster") {
            self.level
        } else if target == "async_nats::connector" && self.level < Level::DEBUG {
            return false;
        } else if self.level >= Level::DEBUG {
            Level::INFO
        } else {
            self.level.min(Level::WARN)
        };
        level <= limit
    }

    fn write(&self, level: Level, target: &str, fields: &Fields) {
        let time = (self.now)().format(TIME).unwrap_or_default();
        let component = fields.get("component").unwrap_or_else(|| component_of(target));
        let line = match self.format {
            LogFormat::Json => json_line(&time, level, component, fields),
            LogFormat::Text if self.is_journal => text_line("", level, component, fields),
            LogFormat::Text => text_line(&format!("{time} "), level, component, fields),
        };
        let line = if self.is_journal { front(level).to_owned() + &line } else { line };
        // There is nobody left to tell when the log itself cannot be written; the work goes on.
        let _ = self.sink.line(&line);
    }
}

/// Fields of a span or event, in their order, a later value replacing an earlier one of the same name.
#[derive(Debug, Default, Clone)]
struct Fields(Vec<(String, Value)>);

#[derive(Debug, Clone)]
enum Value {
    Text(String),
    Bare(String),
}

impl Value {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Bare(text) => text,
        }
    }
}

impl Fields {
    fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.text())
    }

    /// What has no place of its own in a line.
    fn others(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .filter(|(name, _)| !["message", "component", "host"].contains(name) && !name.starts_with("log."))
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        let value =
            if value.is_finite() { Value::Bare(value.to_string()) } else { Value::Text(value.to_string()) };
        self.set(field.name(), value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::Bare(value.to_string()));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::Bare(value.to_string()));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::Bare(value.to_string()));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), Value::Text(value.to_owned()));
    }
    fn record_error(&mut self, field: &Field, error: &(dyn std::error::Error + 'static)) {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        self.set(field.name(), Value::Text(text));
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), Value::Text(format!("{value:?}")));
    }
}

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    fn enabled(&self, metadata: &Metadata<'_>, _ctx: Context<'_, S>) -> bool {
        metadata.is_span() || self.wants(metadata.target(), *metadata.level())
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let level = *event.metadata().level();
        // Records of the `log` crate carry their true target in a field.
        let target = own.get("log.target").unwrap_or_else(|| event.metadata().target()).to_owned();
        if !self.wants(&target, level) {
            return;
        }
        let mut fields = Fields::default();
        if let Some(host) = &self.host {
            fields.set("host", Value::Text(host.clone()));
        }
        for span in
            ctx.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                of_span.0.iter().for_each(|(name, value)| fields.set(name, value.clone()));
            }
        }
        own.0.into_iter().for_each(|(name, value)| fields.set(&name, value));
        self.write(level, &target, &fields);
    }
}

/// `quartermaster_actors::link::actor` is the link; a foreign crate is itself.
fn component_of(target: &str) -> &str {
    let mut parts = target.split("::");
    match (parts.next(), parts.next()) {
        (Some(ours), Some(module)) if ours.starts_with("quartermaster") => module,
        (Some(name), _) => name,
        _ => target,
    }
}

/// The peer's names of the levels.
const fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn json_line(time: &str, level: Level, component: &str, fields: &Fields) -> String {
    let mut line = format!(
        "{{\"time\":\"{time}\",\"level\":\"{}\",\"msg\":{},\"component\":{}",
        level_name(level),
        json_text(fields.get("message").unwrap_or_default()),
        json_text(component)
    );
    if let Some(host) = fields.get("host") {
        let _ = write!(line, ",\"host\":{}", json_text(host));
    }
    for (name, value) in fields.others() {
        // A field may not pass for one of the line's own keys.
        let own = ["time", "level", "msg"].contains(&name);
        let name = json_text(&if own { format!("field.{name}") } else { name.to_owned() });
        let _ = match value {
            Value::Bare(bare) => write!(line, ",{name}:{bare}"),
            Value::Text(text) => write!(line, ",{name}:{}", json_text(text)),
        };
    }
    line.push_str("}\n");
    line
}

fn text_line(time: &str, level: Level, component: &str, fields: &Fields) -> String {
    let message = plain_text(fields.get("message").unwrap_or_default(), false);
    let mut line =
        format!("{time}{:<7} {}: {message}", level_name(level).to_uppercase(), plain_text(component, false));
    if let Some(host) = fields.get("host").filter(|host| *host != component) {
        let _ = write!(line, " host={}", plain_text(host, true));
    }
    for (name, value) in fields.others() {
        let _ = write!(line, " {name}={}", plain_text(value.text(), true));
    }
    line.push('\n');
    line
}
