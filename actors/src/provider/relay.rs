//! Attributes that are JSON text already: sent on unread where the provider's declaration allows it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quartermaster_proto::provider::{
    ActionSchema, AnyEncoding, AttrSchema, CallContext, CallId, ErrorCode, Members, Relay, Schema, Type,
    Value, encode_relay,
};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::error::CallError;
use super::frames::{limits, too_large};
use super::messages::{Action, Relayed};
use super::settings::ProviderSettings;

/// What becomes of a relayed action.
pub enum Framed {
    /// Its frame.
    AsItStands(Zeroizing<Vec<u8>>),
    /// Its attributes, read, since they have to be converted or covered.
    Read(Action),
}

type Texts<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The frame of a relayed action, or the action itself.
pub fn frame(
    id: CallId,
    relayed: &Relayed,
    context: Option<&CallContext>,
    schema: &Schema,
    settings: &ProviderSettings,
) -> Result<Framed, CallError> {
    let Some(declared) = schema.actions.get(&relayed.action) else {
        let message = format!("provider `{}` has no action `{}`", settings.name, relayed.action);
        return Err(CallError::refused(ErrorCode::UnknownAction, message));
    };
    let refused = |what: &str| {
        let message = format!("provider `{}`, `{}`: {what}", settings.name, relayed.action);
        CallError::refused(ErrorCode::InvalidAttrs, message)
    };
    let texts: Texts<'_> =
        serde_json::from_slice(&relayed.attrs).map_err(|_| refused("the attributes are no JSON object"))?;
    if settings.compat.any_encoding == AnyEncoding::Plain
        && let Some(attrs) = as_they_stand(declared, &texts)
    {
        let relay = Relay { action: &relayed.action, attrs: &attrs, context };
        return encode_relay(id, &relay, &limits(settings))
            .map(Framed::AsItStands)
            .map_err(|error| too_large(error, settings, &relayed.action));
    }
    let mut attrs = Members::new();
    for (name, text) in texts.iter().filter(|(name, _)| declared.attrs.contains_key(name.as_ref())) {
        let value = Value::from_json(text.get(), &limits(settings))
            .map_err(|error| refused(&format!("{name}: {error}")))?;
        attrs.insert(name.clone().into_owned(), value);
    }
    let (action, context) = (relayed.action.clone(), relayed.context.clone());
    Ok(Framed::Read(Action { action, attrs, undo: false, context }))
}

/// The declared attributes, if each may be sent as it stands.
fn as_they_stand<'a>(declared: &'a ActionSchema, texts: &Texts<'a>) -> Option<Vec<(&'a str, &'a str)>> {
    let mut attrs = Vec::with_capacity(declared.attrs.len());
    for (name, attr) in &declared.attrs {
        match texts.get(name.as_str()).map(|text| text.get()).filter(|text| *text != "null") {
            Some(text) if takes(attr, text) => attrs.push((name.as_str(), text)),
            None if !attr.required && attr.default.is_none() => {}
            _ => return None,
        }
    }
    Some(attrs)
}

/// Whether an attribute takes this text without a look inside.
fn takes(attr: &AttrSchema, text: &str) -> bool {
    let fits = match attr.ty {
        Type::Any => true,
        Type::String => text.starts_with('"'),
        _ => false,
    };
    fits && !attr.sensitive && attr.choices.is_empty()
}
