//! What a helper may ask of the server token.

use super::value::{HelperReplyError, Value};

/// The wishes of a helper for the host's server token (choria.md 6.3). What is absent is decided by us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerClaimsOrder {
    /// When the token should end, an absolute Unix second.
    pub exp: Option<i64>,
    /// The collectives the server belongs to; empty means not asked for.
    pub collectives: Vec<String>,
    /// The organisation.
    pub ou: Option<String>,
    /// Permissions; `Some` writes them into the token even when all are false.
    pub permissions: Option<PermissionsOrder>,
    /// Additional subjects the server may publish to.
    pub pub_subjects: Vec<String>,
}

/// Permissions of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PermissionsOrder {
    /// May use message submission.
    pub submission: bool,
    /// May use streams.
    pub streams: bool,
    /// May use governors.
    pub governor: bool,
    /// May host services.
    pub service_host: bool,
}

impl ServerClaimsOrder {
    pub(super) fn read(value: &Value<'_>) -> Result<Self, HelperReplyError> {
        let members = value.members()?;
        let member = |key| value.member(&members, key);
        Ok(Self {
            exp: member("exp").map(|exp| exp.seconds()).transpose()?,
            collectives: member("collectives").map_or(Ok(Vec::new()), |list| list.string_list())?,
            ou: member("ou").map(|ou| ou.string()).transpose()?.filter(|ou| !ou.is_empty()),
            permissions: member("permissions").map(|value| PermissionsOrder::read(&value)).transpose()?,
            pub_subjects: member("pub_subjects").map_or(Ok(Vec::new()), |list| list.string_list())?,
        })
    }
}

impl PermissionsOrder {
    fn read(value: &Value<'_>) -> Result<Self, HelperReplyError> {
        let members = value.members()?;
        let allowed = |key| value.member(&members, key).map_or(Ok(false), |allowed| allowed.bool());
        Ok(Self {
            submission: allowed("submission")?,
            streams: allowed("streams")?,
            governor: allowed("governor")?,
            service_host: allowed("service_host")?,
        })
    }
}
