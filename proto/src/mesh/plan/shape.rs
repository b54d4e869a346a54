//! What a plan says.

use std::{collections::BTreeMap, fmt};

use super::digest::{Digest, Reference};
use crate::mesh::{fault::Fault, kind::Kind, value::Json};

/// One entry of the mirror: a module that belongs on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The machine.
    pub node: String,
    /// The module.
    pub module: String,
    /// Grows with each version the controller writes; 0 when it says none.
    pub serial: u64,
    /// What the machine's client is to fill, if anything.
    pub planned: Planned,
}

impl Assignment {
    /// The plan, where there is a good one.
    pub fn plan(&self) -> Option<&Plan> {
        if let Planned::Plan(plan) = &self.planned { Some(plan) } else { None }
    }
}

/// Whether an assignment carries a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planned {
    /// None: the module is assigned, but nothing of it is filled.
    Nothing,
    /// One that can be read.
    Plan(Box<Plan>),
    /// One that cannot; the module is assigned all the same.
    Unreadable(Fault),
}

/// What to fill, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The archive of its templates.
    pub templates: Templates,
    /// The placement values that templates name.
    pub placement: Placement,
    /// Everything that the module itself declares.
    pub contents: Contents,
}

/// Placement values: kind, then name.
pub type Placement = BTreeMap<Kind, BTreeMap<String, Json>>;

/// An archive of templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    /// Where it lies.
    pub reference: Reference,
    /// What it must hash to.
    pub digest: Digest,
}

/// What a module declares, the same on every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The files, in the order in which they are written.
    pub files: Vec<FilePlan>,
    /// The module's own secrets.
    pub secrets: Vec<SecretPlan>,
    /// What it requires of providers.
    pub provisions: Vec<ProvisionPlan>,
    /// What it provides itself.
    pub provides: Vec<String>,
    /// What it contributes to collections.
    pub items: Vec<ItemPlan>,
    /// The collections it collects.
    pub collections: Vec<CollectionPlan>,
}

/// One file that is filled from a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// Where, absolute.
    pub path: String,
    /// The template's name in the archive.
    pub template: String,
    /// Who owns the content once the program runs.
    pub write: WriteMode,
    /// Its Unix attributes.
    pub attributes: Attributes,
    /// How its program takes a change; none when it reads the file itself.
    pub on_change: Option<OnChange>,
    /// Its placeholders may carry filters.
    pub filters: bool,
}

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteMode {
    /// Whole, and put back when somebody changed it.
    Owned,
    /// Only when it is absent.
    Seed,
    /// Its own keys or block, the rest stays.
    Managed(Managed),
}

impl WriteMode {
    /// The word in a plan.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Owned => "owned",
            Self::Seed => "seed",
            Self::Managed(_) => "managed",
        }
    }
}

/// Which part of a managed file is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managed {
    /// How the file is read.
    pub format: Format,
    /// What begins a comment line; always there for [`Format::Block`].
    pub comment: Option<String>,
    /// What ends a comment line.
    pub comment_end: Option<String>,
    /// Where a block that is not there yet goes.
    pub place: MarkerPlace,
}

/// Where a block goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerPlace {
    /// Before the first line.
    Start,
    /// After the last line.
    End,
}

/// The format of a managed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines between two marker lines.
    Block,
    /// Keys in sections.
    Ini,
    /// Leaf keys.
    Toml,
    /// Leaves by path.
    Json,
    /// Top-level keys.
    Yaml,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Block, Self::Ini, Self::Toml, Self::Json, Self::Yaml];

    /// The word in a plan.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Ini => "ini",
            Self::Toml => "toml",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// Unix attributes; absent ones stay as they are, a new file gets root, root, 0644 (0600 when sensitive).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The user.
    pub owner: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// The permissions.
    pub mode: Option<Mode>,
}

/// Permissions, 0 to 0777.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(u16);

impl Mode {
    /// The mode of a sensitive file that declares none.
    pub const PRIVATE: Self = Self(0o600);

    /// Reads three or four octal digits; a fourth must be `0`, as no file that is filled runs as somebody else.
    pub fn parse(text: &str) -> Option<Self> {
        let is_octal = text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let bits = u16::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777)?;
        (is_octal && (text.len() == 3 || (text.len() == 4 && text.starts_with('0')))).then_some(Self(bits))
    }

    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// True when somebody beyond owner and group may do anything.
    pub const fn is_open_to_others(self) -> bool {
        self.0 & 0o007 != 0
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04o}", self.0)
    }
}

/// How a program takes a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnChange {
    /// This unit is restarted.
    Restart {
        /// The unit.
        unit: String,
        /// Also when it is stopped.
        start: bool,
    },
    /// This unit is reloaded.
    Reload {
        /// The unit.
        unit: String,
        /// A stopped one is started.
        start: bool,
    },
    /// This program is run with these arguments.
    Command(Vec<String>),
}

/// A secret of the module's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretPlan {
    /// Its name within the module.
    pub name: String,
    /// The file that holds nothing else, if there is one.
    pub path: Option<String>,
    /// Attributes of that file.
    pub attributes: Attributes,
    /// How its program takes a change.
    pub on_change: Option<OnChange>,
}

/// What a module requires of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvisionPlan {
    /// The provision.
    pub provision: String,
    /// The module that serves it.
    pub provider: String,
    /// The form of its credential.
    pub credential: Credential,
    /// Which of several, where the module has more than one.
    pub local: Option<String>,
    /// The name by which templates mean the credential; none when none is handed.
    pub name: Option<String>,
    /// The provider on this machine only; none means wherever it is assigned.
    pub at: Option<String>,
    /// The file that holds nothing but the credential, if there is one.
    pub path: Option<String>,
    /// Attributes of that file.
    pub attributes: Attributes,
    /// How its program takes a change.
    pub on_change: Option<OnChange>,
}

/// The form of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// Nothing is handed.
    None,
    /// The vault makes one that both ends read.
    Pair,
    /// The provider's software makes one and deposits it.
    Issued,
}

impl Credential {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Pair, Self::Issued];

    /// The word in a plan.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pair => "pair",
            Self::Issued => "issued",
        }
    }
}

/// What a module contributes to a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPlan {
    /// The collection.
    pub collection: String,
    /// The template's name in the archive.
    pub template: String,
}

/// A collection that a module collects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionPlan {
    /// The collection.
    pub collection: String,
    /// What begins the line that names a contributor; empty for no such line.
    pub comment: String,
    /// What ends that line.
    pub comment_end: Option<String>,
}
