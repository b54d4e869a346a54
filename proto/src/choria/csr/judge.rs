//! Deciding on a request.

use regex::{Regex, RegexBuilder};

use super::{CsrError, CsrFacts, CsrName, NameKind};
use crate::choria::identity::Identity;
use crate::choria::token::shown;

/// The most memory one compiled pattern may take, bytes.
const MAX_PATTERN_MEMORY: usize = 1 << 20;

/// A pattern of the deny list that does not compile.
#[derive(Debug, thiserror::Error)]
#[error("deny list pattern `{pattern}` is not a regular expression")]
pub struct DenyPatternError {
    /// The pattern, bounded and printable.
    pub pattern: String,
    /// What is wrong with it.
    #[source]
    pub source: regex::Error,
}

/// Compiles one pattern of `cert_deny_list`: unanchored, a surrounding pair of slashes taken off as the peer does, and
/// without regard to upper and lower case.
pub fn deny_pattern(pattern: &str) -> Result<Regex, DenyPatternError> {
    let bare = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).unwrap_or(pattern);
    RegexBuilder::new(bare)
        .case_insensitive(true)
        .size_limit(MAX_PATTERN_MEMORY)
        .build()
        .map_err(|source| DenyPatternError { pattern: shown(pattern), source })
}

/// The first pattern that denies `name`: as it stands, in lower and in upper case, with and without trailing dots.
pub fn denied_by<'a>(name: &str, deny: &'a [Regex]) -> Option<&'a Regex> {
    let bare = name.trim_end_matches('.');
    let forms =
        [name.to_owned(), name.to_lowercase(), bare.to_owned(), bare.to_lowercase(), bare.to_uppercase()];
    deny.iter().find(|pattern| forms.iter().any(|form| pattern.is_match(form)))
}

/// Decides whether a request may be handed to the helper: its one common name is the host's identity, no name of any kind is
/// on the deny list or could be read in two ways, and it asks neither for a CA's rights nor for an unknown critical extension.
///
/// # Errors
/// The first reason against it.
pub fn judge(facts: &CsrFacts, identity: &Identity, deny: &[Regex]) -> Result<(), CsrError> {
    let cn = match facts.common_names.as_slice() {
        [] => return Err(CsrError::NoCommonName),
        [one] => one,
        many => return Err(CsrError::ManyCommonNames { count: many.len() }),
    };
    let identity = identity.to_string();
    if *cn != identity {
        return Err(CsrError::CommonName { cn: shown(cn), identity: shown(&identity) });
    }
    for name in &facts.names {
        judge_name(name, deny)?;
    }
    if let Some(what) = facts.authority {
        return Err(CsrError::Authority { what });
    }
    match facts.extensions.iter().find(|extension| extension.critical && !extension.known) {
        Some(unknown) => Err(CsrError::UnknownCritical { oid: unknown.oid.clone() }),
        None => Ok(()),
    }
}

fn judge_name(name: &CsrName, deny: &[Regex]) -> Result<(), CsrError> {
    // The part before a NUL is what a C reader sees; it is named in the error like everything else, escaped.
    let visible = name.value.split('\0').next().unwrap_or_default();
    if let Some(pattern) = denied_by(&name.value, deny).or_else(|| denied_by(visible, deny)) {
        return Err(CsrError::Denied {
            name: shown(&name.value),
            pattern: shown(pattern.as_str()),
            kind: name.kind,
        });
    }
    let spaces_allowed = matches!(name.kind, NameKind::Subject | NameKind::Directory | NameKind::Other);
    let harmless =
        |c: char| c.is_ascii_graphic() || (spaces_allowed && (c == ' ' || !c.is_ascii() && !c.is_control()));
    if name.value.is_empty() || !name.value.chars().all(harmless) {
        return Err(CsrError::UnsafeName { name: shown(&name.value), kind: name.kind });
    }
    Ok(())
}
