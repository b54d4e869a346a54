//! Lifecycle events in both encodings (choria.md 5).

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    json::{self, JsonError, Limits, Object},
    text::escape_bounded,
};

const PREFIX: &str = "io.choria.lifecycle";
const PROTOCOL: &str = "io.choria.lifecycle.v1.";

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A process started.
    Startup,
    /// A process stops.
    Shutdown,
    /// A host wrote the configuration it was given.
    Provisioned,
    /// A process is still there.
    Alive,
    /// A host replaced its own program.
    Upgraded,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Startup, Self::Shutdown, Self::Provisioned, Self::Alive, Self::Upgraded];

    /// The word in protocols and subjects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Shutdown => "shutdown",
            Self::Provisioned => "provisioned",
            Self::Alive => "alive",
            Self::Upgraded => "upgraded",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventFormat {
    /// Cloud Event 1.0 around the document: servers by default.
    CloudEvent,
    /// The document alone: the provisioner's own start, and servers set to the old format.
    Choria,
}

/// One lifecycle event. Its texts are a stranger's until checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// A version 4 UUID.
    pub id: String,
    /// Who it happened to.
    pub identity: String,
    /// Part of the software: `provision_mode_server`, `server`, `provisioner`, …
    pub component: String,
    /// When, in Unix seconds.
    pub timestamp: i64,
    /// Version of the software (startup, alive, upgraded).
    pub version: Option<String>,
    /// Version after an upgrade (upgraded).
    pub new_version: Option<String>,
}

/// Why a lifecycle event was refused. Foreign text in it is escaped and bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The event is not JSON of its shape, or over a limit.
    #[error("cannot read the event")]
    Json(#[source] JsonError),
    /// The event is in none of the two encodings.
    #[error("neither a lifecycle event nor a cloud event of that source")]
    Unsupported,
    /// The event is of an unknown kind.
    #[error("unknown event protocol `{found}`")]
    Kind {
        /// Its protocol, escaped and bounded.
        found: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    identity: Cow<'a, str>,
    #[serde(borrow)]
    component: Cow<'a, str>,
    timestamp: i64,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    new_version: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'static str,
    #[serde(rename = "type")]
    kind: &'a str,
    subject: &'a str,
    datacontenttype: &'static str,
    time: String,
    data: &'a Document<'a>,
}

/// What tells the encodings apart.
#[derive(Deserialize)]
struct Marks<'a> {
    #[serde(default, borrow)]
    protocol: Cow<'a, str>,
    #[serde(default, borrow)]
    specversion: Cow<'a, str>,
    #[serde(default, borrow)]
    source: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Enclosing<'a> {
    #[serde(borrow)]
    data: Object<Document<'a>>,
}

/// The bytes of an event.
pub fn encode(event: &Event, format: EventFormat) -> Vec<u8> {
    let protocol = format!("{PROTOCOL}{}", event.kind);
    let document = Document {
        protocol: protocol.as_str().into(),
        id: event.id.as_str().into(),
        identity: event.identity.as_str().into(),
        component: event.component.as_str().into(),
        timestamp: event.timestamp,
        version: event.version.as_deref().map(Cow::Borrowed),
        new_version: event.new_version.as_deref().map(Cow::Borrowed),
    };
    let mut bytes = match format {
        EventFormat::Choria => json::to_secret_bytes(&document),
        EventFormat::CloudEvent => json::to_secret_bytes(&CloudEvent {
            specversion: "1.0",
            id: &event.id,
            source: PREFIX,
            kind: &protocol,
            subject: &event.identity,
            datacontenttype: "application/json",
            time: rfc3339(event.timestamp),
            data: &document,
        }),
    };
    std::mem::take(&mut *bytes)
}

/// Reads an event in either encoding, at most [`Limits::EVENT`] large.
///
/// # Errors
/// [`EventError`]; nothing is allocated for an event over the limits.
pub fn decode(bytes: &[u8]) -> Result<Event, EventError> {
    let marks: Marks<'_> = json::object(bytes, &Limits::EVENT).map_err(EventError::Json)?;
    let document = if marks.protocol.starts_with(PREFIX) {
        json::object::<Document<'_>>(bytes, &Limits::EVENT).map_err(EventError::Json)?
    } else if marks.specversion == "1.0" && marks.source == PREFIX {
        json::object::<Enclosing<'_>>(bytes, &Limits::EVENT).map_err(EventError::Json)?.data.0
    } else {
        return Err(EventError::Unsupported);
    };
    let kind = document
        .protocol
        .strip_prefix(PROTOCOL)
        .and_then(|word| EventKind::ALL.into_iter().find(|kind| kind.as_str() == word))
        .ok_or_else(|| EventError::Kind { found: escape_bounded(&document.protocol, 80) })?;
    Ok(Event {
        kind,
        id: document.id.into_owned(),
        identity: document.identity.into_owned(),
        component: document.component.into_owned(),
        timestamp: document.timestamp,
        version: document.version.map(Cow::into_owned),
        new_version: document.new_version.map(Cow::into_owned),
    })
}

/// RFC 3339 in UTC; a second that no calendar holds is written as the epoch.
fn rfc3339(seconds: i64) -> String {
    OffsetDateTime::from_unix_timestamp(seconds)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
        .format(&Rfc3339)
        .unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let error = decode(text.as_bytes()).expect_err(text);
        match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        }
    }

    fn document(protocol: &str) -> String {
        format!(r#"{{"protocol":"{protocol}","id":"i","identity":"n1","component":"server","timestamp":7}}"#)
    }

    #[test]
    fn every_kind_is_read_in_both_encodings() {
        for kind in EventKind::ALL {
            let plain = document(&format!("io.choria.lifecycle.v1.{kind}"));
            let cloud = format!(r#"{{"data":{plain},"specversion":"1.0","source":"io.choria.lifecycle"}}"#);
            for text in [plain, cloud] {
                let event = decode(text.as_bytes()).unwrap();
                assert_eq!((event.kind, event.identity.as_str(), event.timestamp), (kind, "n1", 7));
                assert_eq!((event.version, event.new_version), (None, None));
            }
        }
    }

    #[test]
    fn an_upgrade_carries_both_versions() {
        let text = r#"{"protocol":"io.choria.lifecycle.v1.upgraded","id":"i","identity":"n1","component":"c","timestamp":7,"version":"1","new_version":"2"}"#;
        let event = decode(text.as_bytes()).unwrap();
        assert_eq!((event.version.as_deref(), event.new_version.as_deref()), (Some("1"), Some("2")));
        assert_eq!(String::from_utf8(encode(&event, EventFormat::Choria)).unwrap(), text);
    }

    #[test]
    fn other_documents_are_told_from_events() {
        for text in [
            "{}",
            &document("choria:lifecycle:startup:1"),
            r#"{"specversion":"1.0","source":"elsewhere","data":{}}"#,
            r#"{"specversion":"0.3","source":"io.choria.lifecycle","data":{}}"#,
        ] {
            assert_eq!(fault(text), "neither a lifecycle event nor a cloud event of that source", "{text}");
        }
    }

    #[test]
    fn unknown_kinds_are_refused_without_control_characters() {
        assert_eq!(
            fault(&document("io.choria.lifecycle.v1.x\\n\\u001b")),
            "unknown event protocol `io.choria.lifecycle.v1.x\\n\\u{1b}`"
        );
        assert_eq!(fault(&document("io.choria.lifecycle")), "unknown event protocol `io.choria.lifecycle`");
    }

    #[test]
    fn incomplete_events_are_refused() {
        let whole = document("io.choria.lifecycle.v1.startup");
        for field in ["id", "identity", "component", "timestamp"] {
            let text = whole.replace(&format!("\"{field}\":"), "\"x\":");
            assert!(
                fault(&text).starts_with(&format!("cannot read the event: missing field `{field}`")),
                "{text}"
            );
        }
        assert!(fault(&whole.replace('7', "7.5")).contains("invalid type floating"));
        assert!(fault(&whole.replace("\"n1\"", "null")).contains("invalid type null"));
        assert!(
            fault(r#"{"specversion":"1.0","source":"io.choria.lifecycle","data":[]}"#)
                .contains("expected an object")
        );
    }

    #[test]
    fn large_events_are_refused_unread() {
        let large = document(&"x".repeat(Limits::EVENT.max_bytes));
        assert!(fault(&large).contains("is over the limit of 65536"));
        assert!(fault(&"[".repeat(60_000)).contains("nested deeper than 16"));
        assert!(fault(&format!("[{}]", "0,".repeat(5_000))).contains("more than 2000 values"));
    }

    #[test]
    fn a_second_beyond_the_calendar_is_still_written() {
        for timestamp in [i64::MIN, i64::MAX] {
            assert_eq!(rfc3339(timestamp), "1970-01-01T00:00:00Z");
        }
        assert_eq!(rfc3339(1_795_976_737), "2026-11-29T18:25:37Z");
    }
}
