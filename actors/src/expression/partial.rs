//! A value of which parts are not known yet.

use std::collections::BTreeMap;

use quartermaster_proto::provider::{Complaint, Field, Members, Path, Segment, Type, Value, validate};

use super::tree::Access;

/// A value, or as much of it as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partial {
    /// All of it.
    Known(Value),
    /// Only its type.
    Unknown(Type),
    /// A list of such, of which one at least is not known.
    List(Vec<Partial>),
    /// An object of such, of which one at least is not known.
    Object(BTreeMap<String, Partial>),
}

/// The type of a value: lists are tuples, objects are objects, null may be anything.
pub fn kind_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::List(items) => Type::Tuple(items.iter().map(kind_of).collect()),
        Value::Object(members) => {
            Type::Object(members.iter().map(|(name, value)| (name.clone(), field(kind_of(value)))).collect())
        }
    }
}

const fn field(ty: Type) -> Field {
    Field { ty, optional: false }
}

impl Partial {
    /// A list; known when all of it is.
    pub(crate) fn list(items: Vec<Self>) -> Self {
        let known: Option<Vec<Value>> = items.iter().map(|item| item.known().cloned()).collect();
        known.map_or(Self::List(items), |items| Self::Known(Value::List(items)))
    }

    /// An object; known when all of it is.
    pub(crate) fn object(members: BTreeMap<String, Self>) -> Self {
        let known: Option<Members> =
            members.iter().map(|(name, part)| Some((name.clone(), part.known()?.clone()))).collect();
        known.map_or(Self::Object(members), |members| Self::Known(Value::Object(members)))
    }

    /// The value, when all of it is known.
    pub const fn known(&self) -> Option<&Value> {
        if let Self::Known(value) = self { Some(value) } else { None }
    }

    /// Its type, as far as it can be told.
    pub fn ty(&self) -> Type {
        match self {
            Self::Known(value) => kind_of(value),
            Self::Unknown(ty) => ty.clone(),
            Self::List(items) => Type::Tuple(items.iter().map(Self::ty).collect()),
            Self::Object(members) => {
                Type::Object(members.iter().map(|(name, part)| (name.clone(), field(part.ty()))).collect())
            }
        }
    }

    /// The part that `access` leads to.
    pub(super) fn part(self, access: &Access) -> Result<Self, String> {
        match (self, access) {
            (Self::Known(Value::Object(mut members)), Access::Name(name)) => match members.remove(name) {
                Some(value) => Ok(Self::Known(value)),
                None => Err(no_such(name, members.keys())),
            },
            (Self::Object(mut members), Access::Name(name)) => match members.remove(name) {
                Some(part) => Ok(part),
                None => Err(no_such(name, members.keys())),
            },
            (Self::Known(Value::List(mut items)), Access::Index(index)) => {
                let length = items.len();
                if *index < length {
                    Ok(Self::Known(items.swap_remove(*index)))
                } else {
                    Err(short(*index, length))
                }
            }
            (Self::List(mut items), Access::Index(index)) => {
                let length = items.len();
                if *index < length { Ok(items.swap_remove(*index)) } else { Err(short(*index, length)) }
            }
            (Self::Unknown(ty), access) => part_of_type(ty, access).map(Self::Unknown),
            (other, Access::Name(name)) => Err(format!("`{name}` of {}", word(&other.ty()))),
            (other, Access::Index(index)) => Err(format!("[{index}] of {}", word(&other.ty()))),
        }
    }

    /// Converts what is known to `ty` and sees whether the rest can be of it.
    ///
    /// # Errors
    /// Every complaint with its path. None repeats a value.
    pub fn check(self, ty: &Type) -> Result<Self, Vec<Complaint>> {
        match (self, ty) {
            (Self::Known(value), ty) => validate(ty, &value).map(Self::Known),
            (Self::Unknown(from), ty) => {
                let mut complaints = Vec::new();
                convertible(&mut Path::default(), &from, ty, &mut complaints);
                if complaints.is_empty() { Ok(Self::Unknown(ty.clone())) } else { Err(complaints) }
            }
            (parts, Type::Any) => Ok(parts),
            (Self::List(items), Type::List(item) | Type::Set(item)) => each(
                items
                    .into_iter()
                    .enumerate()
                    .map(|(index, part)| (Segment::Index(index), part, item.as_ref())),
            )
            .map(|parts| Self::list(parts.into_iter().map(|(_, part)| part).collect())),
            (Self::List(items), Type::Tuple(types)) if types.len() == items.len() => each(
                items
                    .into_iter()
                    .zip(types)
                    .enumerate()
                    .map(|(index, (part, ty))| (Segment::Index(index), part, ty)),
            )
            .map(|parts| Self::list(parts.into_iter().map(|(_, part)| part).collect())),
            (Self::Object(members), Type::Map(item)) => {
                each(members.into_iter().map(|(name, part)| (Segment::Key(name), part, item.as_ref())))
                    .map(named)
            }
            (Self::Object(members), Type::Object(fields)) => Self::fields(members, fields),
            (other, ty) => Err(vec![mismatch(&Path::default(), &other.ty(), ty)]),
        }
    }

    fn fields(
        members: BTreeMap<String, Self>,
        fields: &BTreeMap<String, Field>,
    ) -> Result<Self, Vec<Complaint>> {
        let mut complaints = Vec::new();
        for name in members.keys().filter(|name| !fields.contains_key(*name)) {
            complaints.push(Complaint { path: Path::of(name), message: no_such(name, fields.keys()) });
        }
        let missing = fields.iter().filter(|(name, field)| !field.optional && !members.contains_key(*name));
        complaints.extend(missing.map(|(name, field)| Complaint {
            path: Path::of(name),
            message: format!("{} needed, nothing found", word(&field.ty)),
        }));
        let known = members.into_iter().filter_map(|(name, part)| {
            let ty = &fields.get(&name)?.ty;
            Some((Segment::Key(name), part, ty))
        });
        match each(known) {
            Ok(parts) if complaints.is_empty() => Ok(named(parts)),
            Ok(_) => Err(complaints),
            Err(more) => Err(complaints.into_iter().chain(more).collect()),
        }
    }

    /// The paths of what is not known, below `path`.
    pub fn unknown(&self, path: &Path) -> Vec<Path> {
        let below = |segment: Segment, part: &Self| {
            let mut path = path.clone();
            path.0.push(segment);
            part.unknown(&path)
        };
        match self {
            Self::Known(_) => Vec::new(),
            Self::Unknown(_) => vec![path.clone()],
            Self::List(items) => items
                .iter()
                .enumerate()
                .flat_map(|(index, part)| below(Segment::Index(index), part))
                .collect(),
            Self::Object(members) => {
                members.iter().flat_map(|(name, part)| below(Segment::Key(name.clone()), part)).collect()
            }
        }
    }

    /// The value with null in the place of everything that is not known.
    pub fn with_nulls(&self) -> Value {
        match self {
            Self::Known(value) => value.clone(),
            Self::Unknown(_) => Value::Null,
            Self::List(items) => items.iter().map(Self::with_nulls).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, part)| (name.clone(), part.with_nulls())).collect()
            }
        }
    }
}

fn named(parts: Vec<(Segment, Partial)>) -> Partial {
    let each = parts.into_iter().filter_map(|(segment, part)| match segment {
        Segment::Key(name) => Some((name, part)),
        Segment::Index(_) => None,
    });
    Partial::object(each.collect())
}

/// Every part checked, with its place put before each complaint.
fn each<'t>(
    parts: impl Iterator<Item = (Segment, Partial, &'t Type)>,
) -> Result<Vec<(Segment, Partial)>, Vec<Complaint>> {
    let (mut checked, mut complaints) = (Vec::new(), Vec::new());
    for (segment, part, ty) in parts {
        match part.check(ty) {
            Ok(part) => checked.push((segment, part)),
            Err(found) => complaints.extend(found.into_iter().map(|mut complaint| {
                complaint.path.0.insert(0, segment.clone());
                complaint
            })),
        }
    }
    if complaints.is_empty() { Ok(checked) } else { Err(complaints) }
}

fn part_of_type(ty: Type, access: &Access) -> Result<Type, String> {
    match (ty, access) {
        (Type::Any, _) => Ok(Type::Any),
        (Type::Object(mut fields), Access::Name(name)) => match fields.remove(name) {
            Some(field) => Ok(field.ty),
            None => Err(no_such(name, fields.keys())),
        },
        (Type::Map(item), Access::Name(_)) | (Type::List(item), Access::Index(_)) => Ok(*item),
        (Type::Tuple(mut items), Access::Index(index)) => {
            let length = items.len();
            if *index < length { Ok(items.swap_remove(*index)) } else { Err(short(*index, length)) }
        }
        (ty, Access::Name(name)) => Err(format!("`{name}` of {}", word(&ty))),
        (ty, Access::Index(index)) => Err(format!("[{index}] of {}", word(&ty))),
    }
}

/// Complains where a value of one type can never be converted to the other.
fn convertible(path: &mut Path, from: &Type, to: &Type, complaints: &mut Vec<Complaint>) {
    match (from, to) {
        (Type::Any, _)
        | (_, Type::Any)
        | (Type::String | Type::Number | Type::Bool, Type::String)
        | (Type::String | Type::Number, Type::Number)
        | (Type::String | Type::Bool, Type::Bool)
        | (Type::List(_) | Type::Set(_), Type::Tuple(_))
        | (Type::Map(_), Type::Object(_)) => {}
        (Type::List(from) | Type::Set(from), Type::List(to) | Type::Set(to)) => {
            inside(path, Segment::Index(0), from, to, complaints);
        }
        (Type::Map(from), Type::Map(to)) => inside(path, Segment::Key("*".to_owned()), from, to, complaints),
        (Type::Tuple(items), Type::List(to) | Type::Set(to)) => {
            for (index, from) in items.iter().enumerate() {
                inside(path, Segment::Index(index), from, to, complaints);
            }
        }
        (Type::Tuple(from), Type::Tuple(to)) if from.len() == to.len() => {
            for (index, (from, to)) in from.iter().zip(to).enumerate() {
                inside(path, Segment::Index(index), from, to, complaints);
            }
        }
        (Type::Object(fields), Type::Map(to)) => {
            for (name, from) in fields {
                inside(path, Segment::Key(name.clone()), &from.ty, to, complaints);
            }
        }
        (Type::Object(have), Type::Object(want)) => {
            for (name, field) in want {
                match have.get(name) {
                    Some(from) => inside(path, Segment::Key(name.clone()), &from.ty, &field.ty, complaints),
                    None if field.optional => {}
                    None => {
                        let mut path = path.clone();
                        path.0.push(Segment::Key(name.clone()));
                        let message = format!("{} needed, nothing found", word(&field.ty));
                        complaints.push(Complaint { path, message });
                    }
                }
            }
            if let Some(name) = have.keys().find(|name| !want.contains_key(*name)) {
                complaints.push(Complaint { path: path.clone(), message: no_such(name, want.keys()) });
            }
        }
        (from, to) => complaints.push(mismatch(path, from, to)),
    }
}

fn inside(path: &mut Path, segment: Segment, from: &Type, to: &Type, complaints: &mut Vec<Complaint>) {
    path.0.push(segment);
    convertible(path, from, to, complaints);
    path.0.pop();
}

fn mismatch(path: &Path, from: &Type, to: &Type) -> Complaint {
    Complaint { path: path.clone(), message: format!("{} needed, {} found", word(to), word(from)) }
}

fn no_such<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).take(20).collect();
    if known.is_empty() {
        format!("there is no `{name}`")
    } else {
        format!("there is no `{name}`; known: {}", known.join(", "))
    }
}

fn short(index: usize, length: usize) -> String {
    format!("there is no [{index}] in a list of {length}")
}

/// A type's outermost word, for a sentence.
fn word(ty: &Type) -> &'static str {
    match ty {
        Type::String => "a string",
        Type::Number => "a number",
        Type::Bool => "a bool",
        Type::Any => "a value",
        Type::List(_) => "a list",
        Type::Set(_) => "a set",
        Type::Map(_) => "a map",
        Type::Tuple(_) => "a tuple",
        Type::Object(_) => "an object",
    }
}
