//! What a provider and a host agree on beyond the common protocol.

use crate::provider::{
    values::{Members, Number, Part, Value},
    wire::{HostCode, ProviderError, names},
};

use super::document::PROTOCOL;

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
    /// The extensions it has and allows, without `max_in_flight`, which it always has.
    pub extensions: Vec<String>,
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
    pub fn has(&self, name: &str) -> bool {
        if name == names::MAX_IN_FLIGHT {
            self.max_in_flight > 0
        } else {
            self.offered.iter().any(|one| one == name)
        }
    }
}

impl HostOffer {
    /// What is in force between this host and a provider that declares `extensions`.
    ///
    /// # Errors
    /// `host.unsupported_protocol`, naming the extensions that the provider needs and this host does not offer.
    pub fn agree(&self, extensions: &Extensions) -> Result<HostHello, ProviderError> {
        let ours = |name: &str| name == names::MAX_IN_FLIGHT || self.extensions.iter().any(|one| one == name);
        let missing: Vec<&str> =
            extensions.require.iter().map(String::as_str).filter(|name| !ours(name)).collect();
        if !missing.is_empty() {
            let message = format!(
                "the provider cannot do without {}; this host offers {}",
                missing.join(", "),
                self.extensions.join(", ")
            );
            return Err(ProviderError::new(HostCode::UnsupportedProtocol, message));
        }
        let mut agreed: Vec<String> = extensions.offered.iter().filter(|name| ours(name)).cloned().collect();
        agreed.extend(extensions.has(names::MAX_IN_FLIGHT).then(|| names::MAX_IN_FLIGHT.to_owned()));
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
    pub fn has(&self, name: &str) -> bool {
        self.extensions.iter().any(|one| one == name)
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
