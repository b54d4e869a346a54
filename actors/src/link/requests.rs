//! Making the bytes of a request: encode, have it signed, wrap.

use quartermaster_proto::choria::filter::Filter;
use quartermaster_proto::choria::ksuid::Ksuid;
use quartermaster_proto::choria::{Generation, envelope, subject};
use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::credentials::Credentials;
use super::messages::CallError;
use super::settings::LinkSettings;

/// How long the keeper of the keys may take over one signature.
const SIGN_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// One request, still without its proof.
pub(super) struct Draft<'a> {
    pub(super) id: &'a str,
    pub(super) caller: &'a str,
    pub(super) agent: &'a str,
    pub(super) filter: Filter,
    pub(super) payload: Zeroizing<Vec<u8>>,
    pub(super) server: &'a str,
    pub(super) time: WallClock,
}

/// A fresh request id: 32 hexadecimal digits in protocol 1, a KSUID in protocol 2.
pub(super) fn request_id(generation: Generation, now: WallClock, random: [u8; 16]) -> String {
    match generation {
        Generation::V1 => envelope::v1_id(random),
        Generation::V2 => Ksuid::new(now.seconds(), random).to_string(),
    }
}

/// The bytes to publish.
pub(super) async fn seal(
    settings: &LinkSettings,
    credentials: &dyn Credentials,
    draft: Draft<'_>,
) -> Result<Vec<u8>, CallError> {
    let sign = |error: &dyn std::fmt::Display| CallError::Sign { reason: error.to_string() };
    let request = envelope::Request {
        id: draft.id.to_owned(),
        sender: settings.identity.clone(),
        caller: draft.caller.to_owned(),
        collective: settings.collective.clone(),
        agent: draft.agent.to_owned(),
        ttl: settings.ttl,
        time: draft.time,
        filter: draft.filter,
        payload: draft.payload,
    };
    let body = envelope::request_body(settings.generation, &request).map_err(|error| sign(&error))?;
    let signing = credentials.sign_request(body.clone());
    let proof = match tokio::time::timeout(SIGN_LIMIT, signing).await {
        Ok(signed) => signed.map_err(|error| sign(&error))?,
        Err(_) => return Err(sign(&format_args!("no signature within {SIGN_LIMIT:?}"))),
    };
    let reply_to = subject::reply(&settings.collective, draft.caller, draft.id);
    let hop = [draft.server, settings.identity.as_str(), draft.server];
    envelope::seal_request(settings.generation, &body, &proof, &reply_to, &settings.identity, Some(hop))
        .map_err(|error| sign(&error))
}
