//! The ways a hostile or broken server can answer wrongly, by name.

/// One way to answer wrongly. The name in [`TABLE`] is what `--fault malformed:NAME=…` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Malformation {
    /// gen25519: a public key of 31 bytes.
    PublicKeyShort,
    /// gen25519: a public key of 33 bytes.
    PublicKeyLong,
    /// gen25519: a public key that is no hexadecimal text.
    PublicKeyNotHex,
    /// gen25519: the signature of another nonce.
    SignatureWrong,
    /// gen25519: a signature of 63 bytes.
    SignatureShort,
    /// Every output has another JSON type than promised.
    WrongTypes,
    /// Every output is null.
    NullOutputs,
    /// Status 0 and no outputs at all.
    MissingOutputs,
    /// `data` is an array.
    DataNotObject,
    /// inventory without `version`.
    MissingVersion,
    /// gencsr: the text is no PEM.
    NonPemCsr,
    /// gencsr: PEM around bytes that are no CSR.
    CsrGarbage,
    /// gencsr: the common name of somebody else.
    CsrWrongName,
    /// gencsr: a privileged name as DNS alternative name.
    CsrPrivilegedName,
    /// gencsr: a request for a CA certificate.
    CsrCa,
    /// gencsr: the proof of possession does not verify.
    CsrBadProof,
    /// gencsr: the right to sign certificates, without saying CA.
    CsrCertSign,
    /// gencsr: a critical extension that nobody knows.
    CsrUnknownCritical,
    /// gencsr: a privileged DNS name in capitals.
    CsrPrivilegedUpper,
    /// gencsr: a privileged DNS name with a trailing dot.
    CsrPrivilegedDot,
    /// gencsr: a privileged DNS name that a NUL hides from readers of C strings.
    CsrPrivilegedNul,
    /// gencsr: a privileged name as host of an e-mail address.
    CsrPrivilegedEmail,
    /// gencsr: a privileged name as host of a URI.
    CsrPrivilegedUri,
    /// gencsr: a privileged name inside a directory name.
    CsrPrivilegedDirectory,
    /// gencsr: a privileged name inside an otherName.
    CsrPrivilegedOther,
    /// jwt: an X25519 key of 31 bytes.
    EcdhShort,
    /// jwt: the all-zero X25519 key, whose shared secret is zero.
    EcdhZero,
    /// jwt: an X25519 key that is no hexadecimal text.
    EcdhNotHex,
    /// jwt: the right claims with algorithm `none`.
    JwtAlgNone,
    /// jwt: the right claims signed with HS256, keyed with the text of the verification key.
    JwtHs256,
    /// jwt: the right claims with algorithm RS256, where the configured key is Ed25519.
    JwtRs256,
    /// jwt: expired an hour ago, otherwise right.
    JwtExpired,
    /// jwt: valid from tomorrow, otherwise right.
    JwtNotYetValid,
    /// jwt: a token for another purpose, signed by the right key.
    JwtWrongPurpose,
    /// jwt: the right claims signed by a stranger.
    JwtOtherKey,
    /// jwt: text that is no token.
    JwtGarbage,
    /// jwt: empty text.
    JwtEmpty,
    /// The transport's `headers` is null.
    HeadersNull,
    /// The transport has no `headers`.
    HeadersMissing,
    /// The hash of the reply is another one.
    BadHash,
    /// The reply names another server as its sender.
    WrongSender,
    /// The reply names another request.
    WrongRequest,
    /// The reply names another agent.
    WrongAgent,
    /// The reply comes in the other protocol generation.
    OtherGeneration,
    /// The payload is no JSON.
    NotJson,
    /// The transport ends in the middle.
    Truncated,
    /// The transport's data is no base64.
    BadBase64,
    /// No bytes at all.
    EmptyFrame,
    /// Arrays nested 100,000 deep.
    DeepJson,
    /// 400 KiB of filler in the outputs: close to what a broker lets through.
    Oversized,
    /// A status code nobody defined.
    UnknownStatus,
    /// A refusal whose text holds line breaks, control characters and 64 KiB of filler.
    HostileText,
}

/// Every malformation with the name it is asked for by.
pub const TABLE: &[(&str, Malformation)] = &[
    ("public_key_short", Malformation::PublicKeyShort),
    ("public_key_long", Malformation::PublicKeyLong),
    ("public_key_not_hex", Malformation::PublicKeyNotHex),
    ("signature_wrong", Malformation::SignatureWrong),
    ("signature_short", Malformation::SignatureShort),
    ("wrong_types", Malformation::WrongTypes),
    ("null_outputs", Malformation::NullOutputs),
    ("missing_outputs", Malformation::MissingOutputs),
    ("data_not_object", Malformation::DataNotObject),
    ("missing_version", Malformation::MissingVersion),
    ("non_pem_csr", Malformation::NonPemCsr),
    ("csr_garbage", Malformation::CsrGarbage),
    ("csr_wrong_name", Malformation::CsrWrongName),
    ("csr_privileged_name", Malformation::CsrPrivilegedName),
    ("csr_ca", Malformation::CsrCa),
    ("csr_bad_proof", Malformation::CsrBadProof),
    ("csr_cert_sign", Malformation::CsrCertSign),
    ("csr_unknown_critical", Malformation::CsrUnknownCritical),
    ("csr_privileged_upper", Malformation::CsrPrivilegedUpper),
    ("csr_privileged_dot", Malformation::CsrPrivilegedDot),
    ("csr_privileged_nul", Malformation::CsrPrivilegedNul),
    ("csr_privileged_email", Malformation::CsrPrivilegedEmail),
    ("csr_privileged_uri", Malformation::CsrPrivilegedUri),
    ("csr_privileged_directory", Malformation::CsrPrivilegedDirectory),
    ("csr_privileged_other", Malformation::CsrPrivilegedOther),
    ("ecdh_short", Malformation::EcdhShort),
    ("ecdh_zero", Malformation::EcdhZero),
    ("ecdh_not_hex", Malformation::EcdhNotHex),
    ("jwt_alg_none", Malformation::JwtAlgNone),
    ("jwt_hs256", Malformation::JwtHs256),
    ("jwt_rs256", Malformation::JwtRs256),
    ("jwt_expired", Malformation::JwtExpired),
    ("jwt_not_yet_valid", Malformation::JwtNotYetValid),
    ("jwt_wrong_purpose", Malformation::JwtWrongPurpose),
    ("jwt_other_key", Malformation::JwtOtherKey),
    ("jwt_garbage", Malformation::JwtGarbage),
    ("jwt_empty", Malformation::JwtEmpty),
    ("headers_null", Malformation::HeadersNull),
    ("headers_missing", Malformation::HeadersMissing),
    ("bad_hash", Malformation::BadHash),
    ("wrong_sender", Malformation::WrongSender),
    ("wrong_request", Malformation::WrongRequest),
    ("wrong_agent", Malformation::WrongAgent),
    ("other_generation", Malformation::OtherGeneration),
    ("not_json", Malformation::NotJson),
    ("truncated", Malformation::Truncated),
    ("bad_base64", Malformation::BadBase64),
    ("empty_frame", Malformation::EmptyFrame),
    ("deep_json", Malformation::DeepJson),
    ("oversized", Malformation::Oversized),
    ("unknown_status", Malformation::UnknownStatus),
    ("hostile_text", Malformation::HostileText),
];

impl Malformation {
    /// The malformation of that name.
    pub fn parse(name: &str) -> Option<Self> {
        TABLE.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// The name in [`TABLE`].
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|(_, kind)| *kind == self).map_or("unknown", |(name, _)| *name)
    }

    /// The only action whose reply can show it; none when every reply can.
    pub fn action(self) -> Option<&'static str> {
        match self {
            Self::PublicKeyShort
            | Self::PublicKeyLong
            | Self::PublicKeyNotHex
            | Self::SignatureWrong
            | Self::SignatureShort => Some("gen25519"),
            Self::MissingVersion => Some("inventory"),
            Self::NonPemCsr
            | Self::CsrGarbage
            | Self::CsrWrongName
            | Self::CsrPrivilegedName
            | Self::CsrCa
            | Self::CsrBadProof
            | Self::CsrCertSign
            | Self::CsrUnknownCritical
            | Self::CsrPrivilegedUpper
            | Self::CsrPrivilegedDot
            | Self::CsrPrivilegedNul
            | Self::CsrPrivilegedEmail
            | Self::CsrPrivilegedUri
            | Self::CsrPrivilegedDirectory
            | Self::CsrPrivilegedOther => Some("gencsr"),
            Self::EcdhShort
            | Self::EcdhZero
            | Self::EcdhNotHex
            | Self::JwtAlgNone
            | Self::JwtHs256
            | Self::JwtRs256
            | Self::JwtExpired
            | Self::JwtNotYetValid
            | Self::JwtWrongPurpose
            | Self::JwtOtherKey
            | Self::JwtGarbage
            | Self::JwtEmpty => Some("jwt"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again() {
        for (name, kind) in TABLE {
            assert_eq!(Malformation::parse(name), Some(*kind), "{name}");
            assert_eq!(kind.name(), *name);
        }
        assert_eq!(Malformation::parse("nonsense"), None);
    }

    #[test]
    fn every_name_is_documented() {
        let page = include_str!("../../docs/emulator.md");
        for (name, _) in TABLE {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let names: std::collections::BTreeSet<_> = TABLE.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), TABLE.len());
    }
}
