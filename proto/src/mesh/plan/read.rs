//! Plans read: every fault with its place, every unknown member noted.

use std::collections::BTreeSet;

use super::{
    check,
    digest::{Digest, Reference},
    shape::{
        Assignment, Attributes, CollectionPlan, Contents, Credential, FilePlan, Format, ItemPlan, Managed,
        MarkerPlace, Mode, OnChange, Placement, Plan, Planned, ProvisionPlan, SecretPlan, Templates,
        WriteMode,
    },
};
use crate::{
    json::Limits,
    mesh::{fault::Fault, fields::Fields, key, kind::Kind, value::Json},
};

/// Places of members that nobody knows.
type Unknown = Vec<String>;

/// Reads an entry of the mirror.
///
/// Answers the assignment, and the places of the plan's members that are not known, for the log. A plan that cannot be read
/// leaves the assignment standing.
///
/// # Errors
/// The entry is no assignment: not JSON, or of another machine or module than its key says.
pub fn read_assignment(key: &str, value: &[u8]) -> Result<(Assignment, Vec<String>), Fault> {
    let [node, module] =
        key::parts(key).ok_or_else(|| Fault::new("", "the key is not a machine's and a module's token"))?;
    let mut fields = Fields::read(value, &Limits::FRAME)?;
    for (member, expected) in [("node", &node), ("module", &module)] {
        if fields.text(member)?.as_ref() != Some(expected) {
            return Err(fields.fault(member, "does not equal the key"));
        }
        check::name(expected).map_err(|what| fields.fault(member, what))?;
    }
    let serial = fields.count("serial")?.unwrap_or_default();
    let mut unknown = Unknown::new();
    let place = fields.at("provisioning");
    let planned = match fields.take("provisioning") {
        None => Planned::Nothing,
        Some(value) => match Fields::of(value, place).and_then(|fields| plan(fields, &mut unknown)) {
            Ok(plan) => Planned::Plan(Box::new(plan)),
            Err(fault) => Planned::Unreadable(fault),
        },
    };
    Ok((Assignment { node, module, serial, planned }, unknown))
}

/// A module's file: a plan without what belongs to one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFile {
    /// Where its templates lie, if it says so.
    pub reference: Option<Reference>,
    /// What they hash to, if it says so.
    pub digest: Option<Digest>,
    /// Placement values, if it has some for every machine.
    pub placement: Placement,
    /// What it declares.
    pub contents: Contents,
}

/// Reads a module's file, and the places of members that are not known.
///
/// # Errors
/// The first fault with its place.
pub fn read_module_file(text: &[u8]) -> Result<(ModuleFile, Vec<String>), Fault> {
    let mut fields = Fields::read(text, &Limits::FRAME)?;
    let mut unknown = Unknown::new();
    let (reference, digest) = templates(&mut fields, &mut unknown)?;
    let placement = placement(&mut fields, &mut unknown)?;
    let contents = contents(&mut fields, &mut unknown)?;
    fields.note_unknown(&mut unknown);
    Ok((ModuleFile { reference, digest, placement, contents }, unknown))
}

fn plan(mut fields: Fields<'_>, unknown: &mut Unknown) -> Result<Plan, Fault> {
    let templates = match templates(&mut fields, unknown)? {
        (Some(reference), Some(digest)) => Templates { reference, digest },
        (None, _) => return Err(fields.fault("templates.reference", "is missing")),
        (_, None) => return Err(fields.fault("templates.digest", "is missing")),
    };
    let placement = placement(&mut fields, unknown)?;
    let contents = contents(&mut fields, unknown)?;
    fields.note_unknown(unknown);
    Ok(Plan { templates, placement, contents })
}

fn templates(
    fields: &mut Fields<'_>,
    unknown: &mut Unknown,
) -> Result<(Option<Reference>, Option<Digest>), Fault> {
    let Some(mut inner) = fields.object("templates")? else { return Ok((None, None)) };
    let reference = inner.text("reference")?.map(|text| text.parse());
    let reference = reference.transpose().map_err(|what| inner.fault("reference", what))?;
    let digest = inner.text("digest")?.map(|text| text.parse());
    let digest = digest.transpose().map_err(|what| inner.fault("digest", what))?;
    inner.note_unknown(unknown);
    Ok((reference, digest))
}

fn placement(fields: &mut Fields<'_>, unknown: &mut Unknown) -> Result<Placement, Fault> {
    let Some(mut inner) = fields.object("placement")? else { return Ok(Placement::new()) };
    let mut placement = Placement::new();
    for kind in Kind::PLACEMENT {
        if let Some(values) = inner.object(kind.as_str())? {
            placement.insert(kind, values.rest().map(|(name, value)| (name, Json::from(value))).collect());
        }
    }
    inner.note_unknown(unknown);
    Ok(placement)
}

/// Names, paths and collections that may stand only once.
#[derive(Default)]
struct Seen {
    paths: BTreeSet<String>,
    secrets: BTreeSet<String>,
    provisions: BTreeSet<(String, Option<String>)>,
}

impl Seen {
    fn path(&mut self, fields: &Fields<'_>, path: &str) -> Result<(), Fault> {
        if self.paths.insert(path.to_owned()) { Ok(()) } else { Err(fields.fault("path", "is there twice")) }
    }

    fn secret(&mut self, fields: &Fields<'_>, name: &str) -> Result<(), Fault> {
        let is_new = self.secrets.insert(name.to_owned());
        if is_new { Ok(()) } else { Err(fields.fault("name", "is the name of another secret of this plan")) }
    }
}

fn contents(fields: &mut Fields<'_>, unknown: &mut Unknown) -> Result<Contents, Fault> {
    let mut seen = Seen::default();
    let files = each(fields, "files", unknown, |inner, unknown| file(inner, unknown, &mut seen))?;
    let secrets = each(fields, "secrets", unknown, |inner, unknown| secret(inner, unknown, &mut seen))?;
    let provisions =
        each(fields, "provisions", unknown, |inner, unknown| provision(inner, unknown, &mut seen))?;
    let mut provides = Vec::new();
    for (place, name) in fields.texts("provides")? {
        check::name(&name).map_err(|what| Fault::new(place, what))?;
        provides.push(name);
    }
    let mut once = BTreeSet::new();
    let items = each(fields, "items", unknown, |inner, _| {
        let item = ItemPlan {
            collection: inner.needed_checked("collection", check::line)?,
            template: inner.needed_checked("template", check::line)?,
        };
        if once.insert(item.collection.clone()) {
            Ok(item)
        } else {
            Err(inner.fault("collection", "is there twice"))
        }
    })?;
    once.clear();
    let collections = each(fields, "collections", unknown, |inner, _| {
        let found = CollectionPlan {
            collection: inner.needed_checked("collection", check::line)?,
            comment: inner.needed_checked("comment", check::comment)?,
            comment_end: inner.checked("comment-end", check::comment)?.filter(|end| !end.is_empty()),
        };
        if once.insert(found.collection.clone()) {
            Ok(found)
        } else {
            Err(inner.fault("collection", "is there twice"))
        }
    })?;
    Ok(Contents { files, secrets, provisions, provides, items, collections })
}

/// Reads each object of a list.
fn each<T>(
    fields: &mut Fields<'_>,
    member: &str,
    unknown: &mut Unknown,
    mut read: impl FnMut(&mut Fields<'_>, &mut Unknown) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    for (place, item) in fields.list(member)? {
        let mut inner = Fields::of(item, place)?;
        found.push(read(&mut inner, unknown)?);
        inner.note_unknown(unknown);
    }
    Ok(found)
}

fn file(fields: &mut Fields<'_>, unknown: &mut Unknown, seen: &mut Seen) -> Result<FilePlan, Fault> {
    let path = fields.needed_checked("path", check::path)?;
    seen.path(fields, &path)?;
    let template = fields.needed_checked("template", check::line)?;
    let mode = fields.needed("owner-at-runtime")?;
    let managed = fields.object("managed")?;
    let write = match (mode.as_str(), managed) {
        ("owned", None) => WriteMode::Owned,
        ("seed", None) => WriteMode::Seed,
        ("managed", Some(inner)) => WriteMode::Managed(managed_part(inner, unknown)?),
        ("managed", None) => return Err(fields.fault("managed", "is missing")),
        ("owned" | "seed", Some(_)) => {
            return Err(fields.fault("managed", "belongs to files whose owner-at-runtime is `managed`"));
        }
        _ => return Err(fields.fault("owner-at-runtime", "is none of owned, seed and managed")),
    };
    Ok(FilePlan {
        path,
        template,
        write,
        attributes: attributes(fields)?,
        on_change: on_change(fields, unknown)?,
        filters: fields.flag("filters")?,
    })
}

fn managed_part(mut fields: Fields<'_>, unknown: &mut Unknown) -> Result<Managed, Fault> {
    let word = fields.needed("format")?;
    let format = Format::ALL.into_iter().find(|format| format.as_str() == word);
    let format =
        format.ok_or_else(|| fields.fault("format", "is none of block, ini, toml, json and yaml"))?;
    let comment = fields.checked("comment", check::comment)?.filter(|comment| !comment.is_empty());
    if format == Format::Block && comment.is_none() {
        return Err(fields.fault("comment", "is missing"));
    }
    let place = match fields.text("at")?.as_deref() {
        None | Some("end") => MarkerPlace::End,
        Some("start") => MarkerPlace::Start,
        Some(_) => return Err(fields.fault("at", "is neither `start` nor `end`")),
    };
    let comment_end = fields.checked("comment-end", check::comment)?.filter(|end| !end.is_empty());
    fields.note_unknown(unknown);
    Ok(Managed { format, comment, comment_end, place })
}

fn attributes(fields: &mut Fields<'_>) -> Result<Attributes, Fault> {
    let owner = fields.checked("owner", check::account)?;
    let group = fields.checked("group", check::account)?;
    let mode = match fields.text("mode")? {
        None => None,
        Some(text) => {
            let mode = Mode::parse(&text);
            Some(mode.ok_or_else(|| fields.fault("mode", "is not three octal digits, such as 0640"))?)
        }
    };
    Ok(Attributes { owner, group, mode })
}

/// Attributes of a file that holds a secret and nothing else.
fn private_attributes(fields: &mut Fields<'_>) -> Result<Attributes, Fault> {
    let attributes = attributes(fields)?;
    match attributes.mode {
        Some(mode) if mode.is_open_to_others() => {
            Err(fields.fault("mode", "lets others read a file that holds a secret"))
        }
        _ => Ok(attributes),
    }
}

fn on_change(fields: &mut Fields<'_>, unknown: &mut Unknown) -> Result<Option<OnChange>, Fault> {
    let Some(mut inner) = fields.object("on-change")? else { return Ok(None) };
    let restart = inner.checked("restart", check::unit)?;
    let reload = inner.checked("reload", check::unit)?;
    let command: Vec<String> = inner.texts("command")?.into_iter().map(|(_, word)| word).collect();
    let start = inner.flag("start")?;
    let found = match (restart, reload, command.first()) {
        (Some(unit), None, None) => OnChange::Restart { unit, start },
        (None, Some(unit), None) => OnChange::Reload { unit, start },
        (None, None, Some(program)) => {
            check::path(program).map_err(|what| inner.fault("command[0]", what))?;
            if command.iter().any(|word| word.contains('\0')) {
                return Err(inner.fault("command", "holds a NUL"));
            }
            OnChange::Command(command)
        }
        _ => return Err(fields.fault("on-change", "is not exactly one of restart, reload and command")),
    };
    inner.note_unknown(unknown);
    Ok(Some(found))
}

fn secret(fields: &mut Fields<'_>, unknown: &mut Unknown, seen: &mut Seen) -> Result<SecretPlan, Fault> {
    let name = fields.needed_checked("name", check::name)?;
    seen.secret(fields, &name)?;
    let path = fields.checked("path", check::path)?;
    if let Some(path) = &path {
        seen.path(fields, path)?;
    }
    Ok(SecretPlan {
        name,
        path,
        attributes: private_attributes(fields)?,
        on_change: on_change(fields, unknown)?,
    })
}

fn provision(
    fields: &mut Fields<'_>,
    unknown: &mut Unknown,
    seen: &mut Seen,
) -> Result<ProvisionPlan, Fault> {
    let provision = fields.needed_checked("provision", check::name)?;
    let provider = fields.needed_checked("provider", check::provider)?;
    let word = fields.needed("credential")?;
    let credential = Credential::ALL.into_iter().find(|form| form.as_str() == word);
    let credential =
        credential.ok_or_else(|| fields.fault("credential", "is none of none, pair and issued"))?;
    let local = fields.checked("local", check::name)?;
    if !seen.provisions.insert((provision.clone(), local.clone())) {
        return Err(fields.fault("provision", "is there twice with the same local"));
    }
    let name = fields.checked("name", check::name)?;
    let path = fields.checked("path", check::path)?;
    if credential == Credential::None && (name.is_some() || path.is_some()) {
        let member = if name.is_some() { "name" } else { "path" };
        return Err(fields.fault(member, "asks for a credential, and the form is `none`"));
    }
    match (&name, &path) {
        (Some(name), _) => seen.secret(fields, name)?,
        (None, Some(_)) => return Err(fields.fault("name", "is missing, and there is a path for its value")),
        (None, None) => {}
    }
    if let Some(path) = &path {
        seen.path(fields, path)?;
    }
    Ok(ProvisionPlan {
        provision,
        provider,
        credential,
        local,
        name,
        at: fields.checked("at", check::name)?,
        path,
        attributes: private_attributes(fields)?,
        on_change: on_change(fields, unknown)?,
    })
}
