//! Why a request is refused.

use super::NameKind;

/// The longest request that is looked at, in bytes.
pub const MAX_CSR: usize = 64 * 1024;

/// Why a request is refused. Names in messages are bounded and printable.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CsrError {
    /// The text is too long.
    #[error("certificate request of {bytes} bytes is longer than {MAX_CSR}")]
    TooLong {
        /// Length, bytes.
        bytes: usize,
    },
    /// The text is not exactly one PEM block `CERTIFICATE REQUEST`.
    #[error("certificate request is not one PEM block `CERTIFICATE REQUEST`: {what}")]
    Pem {
        /// What is wrong.
        what: &'static str,
    },
    /// The content is no certificate request.
    #[error("certificate request cannot be decoded: {what}")]
    Der {
        /// The part that cannot be decoded.
        what: &'static str,
    },
    /// The sender has not shown that it owns the key.
    #[error("certificate request is not signed with the key it is for")]
    ProofOfPossession,
    /// There is no common name.
    #[error("certificate request has no common name")]
    NoCommonName,
    /// There is more than one common name.
    #[error("certificate request has {count} common names")]
    ManyCommonNames {
        /// How many.
        count: usize,
    },
    /// The common name is not the host's identity.
    #[error("common name {cn} does not match identity {identity}")]
    CommonName {
        /// The name asked for.
        cn: String,
        /// The host's identity.
        identity: String,
    },
    /// A name matches the deny list.
    #[error("{name} matches denied certificate pattern {pattern} ({kind})")]
    Denied {
        /// The name.
        name: String,
        /// The pattern that matched.
        pattern: String,
        /// What kind of name it is.
        kind: NameKind,
    },
    /// A name holds characters that one reader ends at and another does not.
    #[error("{kind} {name} holds a control character, white space or a character outside ASCII")]
    UnsafeName {
        /// The name.
        name: String,
        /// What kind of name it is.
        kind: NameKind,
    },
    /// A name is of a kind that cannot be judged.
    #[error("certificate request holds a {kind} that cannot be read")]
    UnreadableName {
        /// What kind of name it is.
        kind: NameKind,
    },
    /// The request asks for a CA certificate.
    #[error("certificate request asks for a certificate authority ({what})")]
    Authority {
        /// The extension that says so.
        what: &'static str,
    },
    /// A critical extension is not known here.
    #[error("certificate request holds the unknown critical extension {oid}")]
    UnknownCritical {
        /// The extension, dotted numbers.
        oid: String,
    },
    /// An extension cannot be decoded.
    #[error("certificate request holds the extension {oid} which cannot be decoded")]
    BrokenExtension {
        /// The extension, dotted numbers.
        oid: String,
    },
    /// The same extension stands there twice, or extensions stand in two places.
    #[error("certificate request asks for extensions more than once ({what})")]
    Repeated {
        /// The extension or attribute, dotted numbers.
        what: String,
    },
}
