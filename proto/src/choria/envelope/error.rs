//! Why an envelope was refused.

use std::fmt;

use crate::{choria::generation::Generation, json::JsonError, text::escape_bounded};

/// A layer of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The outermost layer, with the headers.
    Transport,
    /// The layer with signature or hash.
    Secure,
    /// The request or reply itself.
    Message,
}

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Transport => "transport",
            Self::Secure => "secure",
            Self::Message => "message",
        })
    }
}

/// Why an envelope could not be opened or made. Foreign text in it is escaped and bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A layer is not JSON of its shape, or over a limit.
    #[error("cannot read the {layer} layer")]
    Json {
        /// The layer.
        layer: Layer,
        /// What is wrong with it.
        #[source]
        source: JsonError,
    },
    /// A layer names a protocol that does not belong there.
    #[error("the {layer} layer has unknown protocol `{found}`")]
    Protocol {
        /// The layer.
        layer: Layer,
        /// The protocol it names, escaped and bounded.
        found: String,
    },
    /// A field is not base64.
    #[error("field `{field}` of the {layer} layer is not base64")]
    Base64 {
        /// The layer.
        layer: Layer,
        /// The field.
        field: &'static str,
    },
    /// A field breaks a rule of its layer's schema.
    #[error("field `{field}` of the {layer} layer {rule}")]
    Schema {
        /// The layer.
        layer: Layer,
        /// The field.
        field: &'static str,
        /// The rule, as the end of a sentence.
        rule: &'static str,
    },
    /// The hash of a reply is not the hash of its content.
    #[error("the hash of the reply does not fit its content")]
    Hash,
    /// A payload that is not UTF-8 cannot travel in protocol 1.
    #[error("protocol 1 carries text only and the payload is not UTF-8")]
    NotText,
    /// The proof is not of the generation's kind.
    #[error("a request of {generation:?} cannot carry {proof}")]
    ProofKind {
        /// The request's generation.
        generation: Generation,
        /// The kind of proof.
        proof: &'static str,
    },
}

impl WireError {
    pub(super) fn json(layer: Layer) -> impl Fn(JsonError) -> Self {
        move |source| Self::Json { layer, source }
    }

    pub(super) fn protocol(layer: Layer, found: &str) -> Self {
        Self::Protocol { layer, found: escape_bounded(found, 80) }
    }
}
