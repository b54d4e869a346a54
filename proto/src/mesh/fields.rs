//! The members of one JSON object, taken one by one, each fault with its place.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::fault::Fault;
use crate::{
    json::{self, JsonError, Limits, Object, type_name},
    text::escape_bounded,
};

/// Longest name of a member repeated in a place, in characters.
const MAX_MEMBER: usize = 60;

/// What is left of an object. `null` counts as absent.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    place: String,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    /// Reads a whole document under limits.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Self, Fault> {
        json::object(bytes, limits)
            .map(|members| Self { place: String::new(), members })
            .map_err(|error| Fault::json("", &error))
    }

    /// Reads the object that stands at this place of a document whose limits were tested.
    pub fn of(value: &'a RawValue, place: String) -> Result<Self, Fault> {
        match type_name(value.get()) {
            "object" => {}
            found => return Err(Fault::new(place, format!("is a {found}, not an object"))),
        }
        match serde_json::from_str::<Object<_>>(value.get()) {
            Ok(Object(members)) => Ok(Self { place, members }),
            Err(error) => Err(Fault::json(&place, &JsonError::invalid(&error))),
        }
    }

    /// The place of a member.
    pub fn at(&self, member: &str) -> String {
        let member = escape_bounded(member, MAX_MEMBER);
        if self.place.is_empty() { member } else { format!("{}.{member}", self.place) }
    }

    /// A fault of a member.
    pub fn fault(&self, member: &str, what: impl Into<String>) -> Fault {
        Fault::new(self.at(member), what)
    }

    pub fn take(&mut self, member: &str) -> Option<&'a RawValue> {
        self.members.remove(member).filter(|value| type_name(value.get()) != "null")
    }

    pub fn text(&mut self, member: &str) -> Result<Option<String>, Fault> {
        let Some(value) = self.take(member) else { return Ok(None) };
        if type_name(value.get()) != "string" {
            return Err(self.fault(member, format!("is a {}, not a string", type_name(value.get()))));
        }
        match serde_json::from_str(value.get()) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.fault(member, "is no good string")),
        }
    }

    pub fn needed(&mut self, member: &str) -> Result<String, Fault> {
        self.text(member)?.ok_or_else(|| self.fault(member, "is missing"))
    }

    /// A text that passes `is_good`, which says what is wrong otherwise.
    pub fn checked(
        &mut self,
        member: &str,
        is_good: impl FnOnce(&str) -> Result<(), &'static str>,
    ) -> Result<Option<String>, Fault> {
        let Some(text) = self.text(member)? else { return Ok(None) };
        match is_good(&text) {
            Ok(()) => Ok(Some(text)),
            Err(what) => Err(self.fault(member, what)),
        }
    }

    pub fn needed_checked(
        &mut self,
        member: &str,
        is_good: impl FnOnce(&str) -> Result<(), &'static str>,
    ) -> Result<String, Fault> {
        self.checked(member, is_good)?.ok_or_else(|| self.fault(member, "is missing"))
    }

    /// `true` or `false`; absent is `false`.
    pub fn flag(&mut self, member: &str) -> Result<bool, Fault> {
        match self.take(member).map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(self.fault(member, format!("is a {}, not a bool", type_name(other)))),
        }
    }

    /// A whole number from 0 to 2^64-1.
    pub fn count(&mut self, member: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.take(member) else { return Ok(None) };
        match value.get().parse() {
            Ok(count) if type_name(value.get()) == "number" => Ok(Some(count)),
            _ => Err(self.fault(member, "is not a whole number from 0")),
        }
    }

    /// The items of a list with their places; absent is empty.
    pub fn list(&mut self, member: &str) -> Result<Vec<(String, &'a RawValue)>, Fault> {
        let Some(value) = self.take(member) else { return Ok(Vec::new()) };
        let place = self.at(member);
        if type_name(value.get()) != "list" {
            return Err(Fault::new(place, format!("is a {}, not a list", type_name(value.get()))));
        }
        match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
            Ok(items) => {
                Ok(items.into_iter().enumerate().map(|(at, item)| (format!("{place}[{at}]"), item)).collect())
            }
            Err(error) => Err(Fault::json(&place, &JsonError::invalid(&error))),
        }
    }

    /// A list of strings; absent is none.
    pub fn texts(&mut self, member: &str) -> Result<Vec<(String, String)>, Fault> {
        let items = self.list(member)?;
        items
            .into_iter()
            .map(|(place, item)| match serde_json::from_str::<String>(item.get()) {
                Ok(text) => Ok((place, text)),
                Err(_) => Err(Fault::new(place, format!("is a {}, not a string", type_name(item.get())))),
            })
            .collect()
    }

    /// The object at a member; absent is none.
    pub fn object(&mut self, member: &str) -> Result<Option<Fields<'a>>, Fault> {
        let place = self.at(member);
        self.take(member).map(|value| Fields::of(value, place)).transpose()
    }

    /// Everything that was not taken, `null` included.
    pub fn rest(self) -> impl Iterator<Item = (String, &'a RawValue)> {
        self.members.into_iter()
    }

    /// Notes the places of all members that were not taken.
    pub fn note_unknown(self, unknown: &mut Vec<String>) {
        let place = self.place;
        unknown.extend(self.members.into_keys().map(|member| {
            let member = escape_bounded(&member, MAX_MEMBER);
            if place.is_empty() { member } else { format!("{place}.{member}") }
        }));
    }
}
