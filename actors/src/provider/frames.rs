//! What a provider declares, joined with what was set here, and the frames that follow from both.

use quartermaster_proto::time::whole_ms;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::{
    self as wire, Attrs, CallContext, Cancel, Complaint, Configure, Declared as _, EncodeError, ErrorCode,
    Execute, Executed, Extension, HostHello, HostOffer, Invocation, Limits, Members, ProviderError, Request,
    Schema, Validate, Value, encode, encode_cancel,
};
use quartermaster_proto::provider::{CallId, HostCode};
use zeroize::Zeroizing;

use super::error::{CallError, Outcome};
use super::masks::Masks;
use super::messages::{Action, Ask, Call, Relayed};
use super::relay;
use super::settings::{ProviderSettings, Timeouts};

/// Nesting of a frame: types nest 64 deep, and frames have a few levels around values.
const MAX_DEPTH: usize = Limits::PROVIDER.max_depth;
/// Values in a frame: a small one must not become a large heap of them.
const MAX_ITEMS: usize = Limits::PROVIDER.max_items;
/// The extensions that this host has.
const OURS: [Extension; 6] = [
    Extension::CallContext,
    Extension::Cancel,
    Extension::Lookup,
    Extension::Ping,
    Extension::Progress,
    Extension::Validate,
];
/// A configuration attribute whose name holds one of these is treated as a secret although the schema does not say so: not every
/// provider knows how to.
const TELLING: [&str; 7] = ["password", "passwd", "secret", "token", "private_key", "api_key", "credential"];

type Bytes = Zeroizing<Vec<u8>>;

/// What is in force between us and one process.
#[derive(Debug, Clone)]
pub struct Terms {
    pub schema: Arc<Schema>,
    pub hello: Option<HostHello>,
    pub max_in_flight: usize,
    pub cancel: bool,
    pub ping: bool,
    pub progress: bool,
    context: bool,
    lookup: bool,
    validate: bool,
}

impl Terms {
    /// What is in force with a process that declares this.
    pub fn agree(schema: Arc<Schema>, settings: &ProviderSettings) -> Result<Self, CallError> {
        let offer = HostOffer {
            name: "quartermaster".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            extensions: OURS.to_vec(),
            max_in_flight: u32::try_from(settings.max_in_flight.get()).unwrap_or(u32::MAX),
            max_frame_bytes: settings.max_frame,
        };
        let hello = match &schema.extensions {
            Some(extensions) => Some(offer.agree(extensions).map_err(|error| refused(error, settings))?),
            None => None,
        };
        let has = |extension| hello.as_ref().is_some_and(|hello| hello.has(extension));
        Ok(Self {
            max_in_flight: hello
                .as_ref()
                .map_or(1, |hello| usize::try_from(hello.max_in_flight).unwrap_or(usize::MAX)),
            cancel: has(Extension::Cancel),
            ping: has(Extension::Ping),
            progress: has(Extension::Progress),
            context: has(Extension::CallContext),
            lookup: has(Extension::Lookup),
            validate: has(Extension::Validate),
            schema,
            hello,
        })
    }

    /// How long this call may take.
    pub fn limit(&self, call: &Call, settings: &ProviderSettings) -> Option<Duration> {
        let Timeouts { configure, execute, .. } = settings.timeouts;
        let own = match &call.ask {
            Ask::Execute(Action { action, .. }) | Ask::Relay(Relayed { action, .. }) => {
                self.schema.actions.get(action).map_or(execute, |action| {
                    action.timeout.map_or(execute, |limit| Some(limit).filter(|limit| !limit.is_zero()))
                })
            }
            Ask::Lookup(_) | Ask::Validate(..) => Some(configure),
        };
        call.timeout.map_or(own, |limit| Some(limit).filter(|limit| !limit.is_zero()))
    }
}

fn refused(mut error: ProviderError, settings: &ProviderSettings) -> CallError {
    error.message = format!("provider `{}`: {}", settings.name, error.message);
    CallError { outcome: Outcome::NotSent, error: Box::new(error), stderr: Vec::new() }
}

/// The bounds of a frame.
pub const fn limits(settings: &ProviderSettings) -> Limits {
    Limits { max_bytes: settings.max_frame, max_depth: MAX_DEPTH, max_items: MAX_ITEMS }
}

/// Frames without values of anybody's: they always fit.
fn plain(id: CallId, call: wire::Call) -> Bytes {
    let limits = Limits { max_bytes: usize::MAX, max_depth: MAX_DEPTH, max_items: MAX_ITEMS };
    encode(&Request { id, call }, &limits).unwrap_or_default()
}

pub fn describe(id: CallId) -> Bytes {
    plain(id, wire::Call::Describe)
}

pub fn shutdown(id: CallId) -> Bytes {
    plain(id, wire::Call::Shutdown)
}

pub fn ping(id: CallId) -> Bytes {
    plain(id, wire::Call::Ping)
}

pub fn cancel(id: CallId, reason: &str, grace: Duration) -> Bytes {
    let grace_ms = whole_ms(grace);
    let cancel = Cancel { id, reason: reason.to_owned(), grace_ms };
    let limits = Limits { max_bytes: usize::MAX, max_depth: MAX_DEPTH, max_items: MAX_ITEMS };
    encode_cancel(&cancel, &limits).unwrap_or_default()
}

/// The configuration as the schema has it. Its secrets are covered from here on.
pub fn configure(
    id: CallId,
    terms: &Terms,
    settings: &ProviderSettings,
    masks: &Masks,
) -> Result<Bytes, CallError> {
    masks.cover_config(secrets(&terms.schema.config, &settings.config, true));
    let config = terms.schema.config.check(&settings.config).map_err(|complaints| {
        let message = format!("provider `{}`, config: {}", settings.name, listed(&complaints));
        CallError::refused(ErrorCode::InvalidConfig, message)
    })?;
    let config = terms.schema.config.for_wire(config, settings.compat.any_encoding);
    let call = wire::Call::Configure(Configure { config, host: terms.hello.clone() });
    encode(&Request { id, call }, &limits(settings)).map_err(|error| too_large(error, settings, "configure"))
}

/// A caller's call. Its secrets are covered from here on.
pub fn ask(
    id: CallId,
    call: &Call,
    terms: &Terms,
    limit: Option<Duration>,
    settings: &ProviderSettings,
    masks: &Masks,
) -> Result<Bytes, CallError> {
    let known = |known: bool| {
        if known {
            return Ok(());
        }
        let message = format!("provider `{}` does not know `{}`", settings.name, call.method());
        Err(CallError::refused(ErrorCode::UnknownMethod, message))
    };
    let context = |context: &Option<CallContext>| {
        context.clone().filter(|_| terms.context).map(|mut context| {
            context.deadline_ms = limit.map(whole_ms);
            context
        })
    };
    let execute = |action: &Action| {
        Ok::<_, CallError>(wire::Call::Execute(Execute {
            action: action.action.clone(),
            attrs: attributes(action, terms, settings, masks)?,
            undo: action.undo && settings.compat.undo,
            context: context(&action.context),
        }))
    };
    let asked = match &call.ask {
        Ask::Execute(action) => execute(action)?,
        Ask::Relay(relayed) => {
            let context = context(&relayed.context);
            let framed = relay::frame(id, relayed, context.as_ref(), &terms.schema, settings)?;
            match framed {
                relay::Framed::AsItStands(frame) => return Ok(frame),
                relay::Framed::Read(action) => execute(&action)?,
            }
        }
        Ask::Lookup(key) => {
            known(terms.lookup)?;
            wire::Call::Lookup { key: key.clone() }
        }
        Ask::Validate(action, unknown) => {
            known(terms.validate)?;
            cover(action, terms, masks);
            wire::Call::Validate(Validate {
                action: action.action.clone(),
                attrs: action.attrs.clone(),
                unknown: unknown.clone(),
            })
        }
    };
    encode(&Request { id, call: asked }, &limits(settings))
        .map_err(|error| too_large(error, settings, call.action().unwrap_or(call.method())))
}

/// The attributes of an action, as it declares them. One that is not declared is sent as it stands: an undo may name such, and the
/// provider knows best.
fn attributes(
    action: &Action,
    terms: &Terms,
    settings: &ProviderSettings,
    masks: &Masks,
) -> Result<Members, CallError> {
    let Some(declared) = terms.schema.actions.get(&action.action) else { return Ok(action.attrs.clone()) };
    cover(action, terms, masks);
    let attrs = declared.attrs.check(&action.attrs).map_err(|complaints| {
        let message = format!("provider `{}`, `{}`: {}", settings.name, action.action, listed(&complaints));
        CallError::refused(ErrorCode::InvalidAttrs, message)
    })?;
    Ok(declared.attrs.for_wire(attrs, settings.compat.any_encoding))
}

fn cover(action: &Action, terms: &Terms, masks: &Masks) {
    if let Some(declared) = terms.schema.actions.get(&action.action) {
        masks.cover_call(secrets(&declared.attrs, &action.attrs, false));
    }
}

/// What an undo must not show is covered like what an action must not.
pub fn cover_undo(undo: &[Invocation], terms: &Terms, masks: &Masks) {
    for call in undo {
        if let Some(declared) = terms.schema.actions.get(&call.action) {
            masks.cover_call(secrets(&declared.attrs, &call.attrs, false));
        }
    }
}

fn secrets<'a>(declared: &'a Attrs, given: &'a Members, by_name: bool) -> Vec<&'a Value> {
    let mut secrets = declared.sensitive(given);
    if by_name {
        let telling = |name: &str| TELLING.iter().any(|part| name.to_ascii_lowercase().contains(part));
        secrets.extend(given.iter().filter(|(name, _)| telling(name)).map(|(_, value)| value));
    }
    secrets
}

/// The outputs as they were meant, and what is wrong with them. Sensitive ones are covered from here on.
pub fn outputs(
    terms: &Terms,
    action: &str,
    mut done: Executed,
    settings: &ProviderSettings,
    masks: &Masks,
) -> (Executed, Option<String>) {
    let Some(declared) = terms.schema.actions.get(action) else { return (done, None) };
    done.outputs = declared.read_outputs(done.outputs, settings.compat.any_encoding);
    if declared.outputs.as_ref().is_some_and(|outputs| outputs.sensitive) {
        masks.cover_call(done.outputs.values());
    }
    let complaints = declared.check_outputs(&done.outputs).err();
    (done, complaints.map(|complaints| listed(&complaints)))
}

fn listed(complaints: &[Complaint]) -> String {
    complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

pub(super) fn too_large(error: EncodeError, settings: &ProviderSettings, what: &str) -> CallError {
    let message = format!("provider `{}`, `{what}`: {error}", settings.name);
    CallError::host(Outcome::NotSent, HostCode::FrameTooLarge, message)
}
