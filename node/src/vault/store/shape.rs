//! What the store holds.

use std::fmt;

use zeroize::Zeroizing;

/// A secret's bytes; wiped when dropped, and shown by nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Zeroizing<Vec<u8>>);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value([redacted])")
    }
}

impl Value {
    /// A secret of these bytes.
    pub const fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// A value with the number of the change that stored it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The secret.
    pub value: Value,
    /// Its version: the store-wide number of the change.
    pub version: u64,
}

/// A name in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// Its version.
    pub version: u64,
}

/// Something to be said about a change: kept until the broker has acknowledged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Where it is said; a newer one for the same place replaces an older one.
    pub subject: String,
    /// What is said.
    pub payload: Vec<u8>,
}
