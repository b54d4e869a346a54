//! A value on its way into a file: shared, never copied, never shown, wiped with its last holder.

use std::{fmt, sync::Arc};

use quartermaster_proto::mesh::value::{Json, ValueError};
use zeroize::Zeroizing;

/// The bytes of one value.
#[derive(Clone)]
pub struct Value {
    bytes: Arc<Zeroizing<Vec<u8>>>,
    is_json: bool,
}

impl Value {
    /// Bytes as the vault or a collection gives them.
    pub fn bytes(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self { bytes: Arc::new(bytes), is_json: false }
    }

    /// A stored value: a string's characters, of anything else the stored JSON text.
    ///
    /// # Errors
    /// The value is `null`.
    pub fn stored(value: &Json) -> Result<Self, ValueError> {
        let text = value.text()?.into_owned();
        Ok(Self { bytes: Arc::new(Zeroizing::new(text.into_bytes())), is_json: !value.is_string() })
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True when the bytes are the stored JSON text of something that is no string.
    pub const fn is_json(&self) -> bool {
        self.is_json
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.is_json == other.is_json && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Value([redacted])")
    }
}
