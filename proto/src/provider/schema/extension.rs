//! What a provider and a host agree on beyond the common protocol.

use crate::provider::{
    values::{Members, Number, Part, Value},
    wire::{HostCode, ProviderError, names, shown},
};

use super::document::PROTOCOL;

/// An extension of the common protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extension {
    /// Calls carry whence they come.
    CallContext,
    /// An open call can be stopped.
    Cancel,
    /// It can be asked what became of a step.
    Lookup,
    /// Several calls may be open at a time.
    MaxInFlight,
    /// It can be asked whether it is alive.
    Ping,
    /// It tells how far a call is.
    Progress,
    /// The wish for an undo can carry options.
    UndoOptions,
    /// It can be asked whether an action would work.
    Validate,
}

impl Extension {
    /// Every extension that is known.
    pub const ALL: [Self; 8] = [
        Self::CallContext,
        Self::Cancel,
        Self::Lookup,
        Self::MaxInFlight,
        Self::Ping,
        Self::Progress,
        Self::UndoOptions,
        Self::Validate,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallContext => names::CALL_CONTEXT,
            Self::Cancel => names::CANCEL_EXTENSION,
            Self::Lookup => names::LOOKUP_EXTENSION,
            Self::MaxInFlight => names::MAX_IN_FLIGHT,
            Self::Ping => names::PING_EXTENSION,
            Self::Progress => names::PROGRESS_EXTENSION,
            Self::UndoOptions => names::UNDO_OPTIONS,
            Self::Validate => names::VALIDATE_EXTENSION,
        }
    }

    /// The extension of this name, if it is known.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.as_str() == name)
    }
}

/// What a provider declares in `x_extensions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Most calls it takes at a time; 0 when it does not say, which means 1.
    pub max_in_flight: u32,
    /// The extensions it has, by name, sorted: `cancel`, `ping`, …, and such as are not known here.
    pub offered: Vec<String>,
    /// Those it cannot do without.
    pub require: Vec<String>,
}

/// What a host can do and is willing to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOffer {
    /// The host's name.
    pub name: String,
    /// The host's version.
    pub version: String,
    /// The extensions it has and allows; it always has [`Extension::MaxInFlight`].
    pub extensions: Vec<Extension>,
    /// Most calls it has open at a time.
    pub max_in_flight: u32,
    /// Longest frame it takes and sends, in bytes.
    pub max_frame_bytes: usize,
}

/// What the host tells a provider in `configure`: which extensions are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostHello {
    /// The host's name.
    pub name: String,
    /// The host's version.
    pub version: String,
    /// The protocol that is spoken.
    pub protocol: String,
    /// The extensions in force, sorted.
    pub extensions: Vec<String>,
    /// Most calls that will be open at a time.
    pub max_in_flight: u32,
    /// Longest frame, in bytes.
    pub max_frame_bytes: u64,
}

impl Extensions {
    /// Whether this extension is declared.
    pub fn has(&self, extension: Extension) -> bool {
        match extension {
            Extension::MaxInFlight => self.max_in_flight > 0,
            other => self.offered.iter().any(|name| name == other.as_str()),
        }
    }
}

impl HostOffer {
    /// What is in force between this host and a provider that declares `extensions`.
    ///
    /// # Errors
    /// `host.unsupported_protocol`, naming the extensions that the provider needs and this host does not offer.
    pub fn agree(&self, extensions: &Extensions) -> Result<HostHello, ProviderError> {
        let ours = |name: &String| {
            Extension::from_name(name)
                .is_some_and(|known| known == Extension::MaxInFlight || self.extensions.contains(&known))
        };
        let missing: Vec<String> =
            extensions.require.iter().filter(|name| !ours(name)).map(|name| shown(name)).collect();
        if !missing.is_empty() {
            let offered: Vec<&str> = self.extensions.iter().map(|extension| extension.as_str()).collect();
            let message = format!(
                "the provider cannot do without {}; this host offers {}",
                missing.join(", "),
                if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") }
            );
            return Err(ProviderError::new(HostCode::UnsupportedProtocol, message));
        }
        let mut agreed: Vec<String> = extensions.offered.iter().filter(|name| ours(name)).cloned().collect();
        agreed.extend(extensions.has(Extension::MaxInFlight).then(|| names::MAX_IN_FLIGHT.to_owned()));
        agreed.sort();
        Ok(HostHello {
            name: self.name.clone(),
            version: self.version.clone(),
            protocol: PROTOCOL.to_owned(),
            extensions: agreed,
            max_in_flight: extensions.max_in_flight.clamp(1, self.max_in_flight.max(1)),
            max_frame_bytes: u64::try_from(self.max_frame_bytes).unwrap_or(u64::MAX),
        })
    }
}

impl HostHello {
    /// Whether this extension is in force.
    pub fn has(&self, extension: Extension) -> bool {
        self.extensions.iter().any(|name| name == extension.as_str())
    }

    pub(in crate::provider) fn to_part(&self) -> Part<'_> {
        Part::Fields(vec![
            (names::NAME, Part::Text(&self.name)),
            (names::VERSION, Part::Text(&self.version)),
            (names::PROTOCOL, Part::Text(&self.protocol)),
            (names::EXTENSIONS, Part::List(self.extensions.iter().map(|name| Part::Text(name)).collect())),
            (names::MAX_IN_FLIGHT, Part::Count(self.max_in_flight.into())),
            (names::MAX_FRAME_BYTES, Part::Count(self.max_frame_bytes)),
        ])
    }

    pub(in crate::provider) fn from_value(value: &Value) -> Option<Self> {
        let members = value.as_object()?;
        let text = |name| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name| members.get(name).and_then(Value::as_number).and_then(Number::as_u64);
        Some(Self {
            name: text(names::NAME),
            version: text(names::VERSION),
            protocol: members.get(names::PROTOCOL)?.as_str()?.to_owned(),
            extensions: strings(members, names::EXTENSIONS)?,
            max_in_flight: number(names::MAX_IN_FLIGHT).and_then(|most| most.try_into().ok()).unwrap_or(1),
            max_frame_bytes: number(names::MAX_FRAME_BYTES).unwrap_or(u64::MAX),
        })
    }
}

/// A list of texts that may be absent or null; `None` for any other shape.
pub(super) fn strings(members: &Members, name: &str) -> Option<Vec<String>> {
    match members.get(name) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(list) => list.as_list()?.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
    }
}
