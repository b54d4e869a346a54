//! The log: text for people on a terminal, JSON lines for machines; nothing from the wire can forge a line.
//!
//! One event is one line and one write. Every value is escaped, bounded, and under its own key. What goes to the journal of systemd has
//! its priority in front, and no time of its own.

mod escape;
mod journald;
mod layer;
#[cfg(feature = "otel")]
mod otel;
mod setup;
mod sink;

pub use escape::{json_text, plain_text};
pub use journald::{fronted, leads_there};
pub use layer::LogLayer;
pub use setup::{LogFormat, Telemetry, TelemetryError, for_people, init, init_for};
pub use sink::{LogFile, Sink};

#[cfg(test)]
mod tests;
