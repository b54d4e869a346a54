//! The engine's socket: JSON Lines, one object a line, answers in order.

use std::fmt;

use base64::{Engine as _, display::Base64Display, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::{
    fault::Fault,
    fields::Fields,
    plan::Digest,
    report::{Action, ProgramReport},
};
use crate::json::{self, Limits, to_secret_bytes};

/// What is spoken.
pub const PROTOCOL: u64 = 1;
/// The bounds of one line: 64 MiB.
pub const LIMITS: Limits = Limits { max_bytes: 64 * 1024 * 1024, max_depth: 16, max_items: 200_000 };
/// Longest file, in bytes.
pub const MAX_FILE: usize = 8 * 1024 * 1024;

/// What the client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the answer.
    pub id: u64,
    /// What.
    pub op: Op,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// First on every connection.
    Hello {
        /// What the client speaks.
        protocol: u64,
    },
    /// Write these files of a module.
    Write(Write),
}

/// Files of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The module.
    pub module: String,
    /// Of the assignment's value, as it lies in the mirror.
    pub plan: Digest,
    /// The mirror's revision of it.
    pub revision: u64,
    /// The files.
    pub files: Vec<FillFile>,
}

/// One file and its content, which is wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct FillFile {
    /// Where; the engine's own copy of the plan must name it.
    pub path: String,
    /// The whole content: of an owned file all of it, of a managed one its part.
    pub content: Zeroizing<Vec<u8>>,
    /// The content's SHA-256, lower-case hexadecimal.
    pub sha256: String,
    /// It holds a secret.
    pub sensitive: bool,
}

impl fmt::Debug for FillFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FillFile({}, {} bytes, [redacted])", self.path, self.content.len())
    }
}

impl Request {
    /// The line, its line feed included; wiped when dropped.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut line = match &self.op {
            Op::Hello { protocol } => {
                to_secret_bytes(&HelloOut { id: self.id, op: "hello", protocol: *protocol })
            }
            Op::Write(write) => to_secret_bytes(&WriteOut {
                id: self.id,
                op: "write",
                module: &write.module,
                plan: write.plan.to_string(),
                revision: write.revision,
                files: &write.files,
            }),
        };
        // The buffer was made to measure: to grow it would leave a copy behind.
        let mut whole = Zeroizing::new(Vec::with_capacity(line.len() + 1));
        whole.append(&mut line);
        whole.push(b'\n');
        whole
    }

    /// Reads a line without its line feed.
    ///
    /// # Errors
    /// The fault, and the request's id where it can be told, so that the answer can carry it.
    pub fn read(line: &[u8]) -> Result<Self, (Option<u64>, Fault)> {
        let mut fields = Fields::read(line, &LIMITS).map_err(|fault| (None, fault))?;
        let id = match fields.count("id") {
            Ok(Some(id)) => id,
            Ok(None) => return Err((None, fields.fault("id", "is missing"))),
            Err(fault) => return Err((None, fault)),
        };
        read_op(fields).map(|op| Self { id, op }).map_err(|fault| (Some(id), fault))
    }
}

fn read_op(mut fields: Fields<'_>) -> Result<Op, Fault> {
    match fields.needed("op")?.as_str() {
        "hello" => {
            let protocol = fields.count("protocol")?.ok_or_else(|| fields.fault("protocol", "is missing"))?;
            Ok(Op::Hello { protocol })
        }
        "write" => {
            let module = fields.needed("module")?;
            let plan = fields.needed("plan")?.parse().map_err(|what| fields.fault("plan", what))?;
            let revision = fields.count("revision")?.ok_or_else(|| fields.fault("revision", "is missing"))?;
            let files = fields.list("files")?.into_iter().map(|(place, file)| read_file(file, place));
            Ok(Op::Write(Write { module, plan, revision, files: files.collect::<Result<_, _>>()? }))
        }
        _ => Err(fields.fault("op", "is neither `hello` nor `write`")),
    }
}

fn read_file(file: &RawValue, place: String) -> Result<FillFile, Fault> {
    let mut fields = Fields::of(file, place)?;
    let path = fields.needed("path")?;
    let sha256 = fields.needed("sha256")?;
    let sensitive = fields.flag("sensitive")?;
    let encoded = fields.take("content").map(RawValue::get);
    // Base64 needs no escapes in JSON, so the text is read where it lies and no copy of it is left behind.
    let encoded = encoded.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    let encoded = encoded.ok_or_else(|| fields.fault("content", "is no string"))?;
    if encoded.len() > MAX_FILE.div_ceil(3) * 4 {
        return Err(fields.fault("content", "is longer than a file may be"));
    }
    let mut content = Zeroizing::new(Vec::with_capacity(encoded.len() / 4 * 3 + 3));
    STANDARD
        .decode_vec(encoded, &mut content)
        .map_err(|_| fields.fault("content", "is no standard base64"))?;
    if content.len() > MAX_FILE {
        return Err(fields.fault("content", "is longer than a file may be"));
    }
    Ok(FillFile { path, content, sha256, sensitive })
}

#[derive(Serialize)]
struct HelloOut {
    id: u64,
    op: &'static str,
    protocol: u64,
}

#[derive(Serialize)]
struct WriteOut<'a> {
    id: u64,
    op: &'static str,
    module: &'a str,
    plan: String,
    revision: u64,
    files: &'a [FillFile],
}

impl Serialize for FillFile {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        FileOut {
            path: &self.path,
            content: Encoded(&self.content),
            sha256: &self.sha256,
            sensitive: self.sensitive,
        }
        .serialize(out)
    }
}

#[derive(Serialize)]
struct FileOut<'a> {
    path: &'a str,
    content: Encoded<'a>,
    sha256: &'a str,
    sensitive: bool,
}

/// Bytes that become base64 while they are written, without a copy between.
struct Encoded<'a>(&'a [u8]);

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// What the engine answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The request's.
    pub id: u64,
    /// The answer.
    pub body: Body,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// To `hello`.
    Hello(Hello),
    /// To `write`.
    Written(Written),
    /// The whole request failed.
    Failed(Failure<RequestCode>),
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What the engine speaks.
    pub protocol: u64,
    /// Its machine.
    pub node: String,
}

/// What became of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Each file, in the request's order.
    pub files: Vec<FileReply>,
    /// Each program that was told.
    #[serde(default)]
    pub programs: Vec<ProgramReport>,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReply {
    /// Where.
    pub path: String,
    /// What was done, when it went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Of the whole file as it now lies on the disk, lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Why not, when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub err: Option<Failure<FileCode>>,
}

/// Why a request or a file failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure<C> {
    /// What kind.
    pub code: C,
    /// In words.
    #[serde(default)]
    pub reason: String,
}

/// Kinds of failure of a whole request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestCode {
    /// It is none.
    BadRequest,
    /// The engine's copy of the mirror does not have the module.
    UnknownModule,
    /// The engine's copy is older than the request's.
    Behind,
    /// The request's plan is older than the engine's.
    Stale,
    /// Too long.
    TooLarge,
    /// One that is not known here.
    #[serde(other)]
    Other,
}

impl RequestCode {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::UnknownModule => "unknown-module",
            Self::Behind => "behind",
            Self::Stale => "stale",
            Self::TooLarge => "too-large",
            Self::Other => "other",
        }
    }
}

/// Kinds of failure of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileCode {
    /// The plan does not name it.
    NotDeclared,
    /// The content does not hash to what the request says.
    HashMismatch,
    /// Its path leads where nothing may be written.
    PathRefused,
    /// Another module holds the path.
    PathTaken,
    /// The target, or our part of it, cannot be read.
    ManagedDamaged,
    /// There is no such user or group.
    NoSuchUser,
    /// The disk is full.
    NoSpace,
    /// Anything else of the file system.
    Io,
    /// One that is not known here.
    #[serde(other)]
    Other,
}

impl FileCode {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotDeclared => "not-declared",
            Self::HashMismatch => "hash-mismatch",
            Self::PathRefused => "path-refused",
            Self::PathTaken => "path-taken",
            Self::ManagedDamaged => "managed-damaged",
            Self::NoSuchUser => "no-such-user",
            Self::NoSpace => "no-space",
            Self::Io => "io",
            Self::Other => "other",
        }
    }
}

impl Reply {
    /// The line, its line feed included.
    pub fn encode(&self) -> Vec<u8> {
        let id = self.id;
        let mut line = match &self.body {
            Body::Hello(hello) => to_secret_bytes(&OkOut { id, ok: hello }),
            Body::Written(written) => to_secret_bytes(&OkOut { id, ok: written }),
            Body::Failed(failure) => to_secret_bytes(&ErrOut { id, err: failure }),
        }
        .to_vec();
        line.push(b'\n');
        line
    }

    /// Reads a line without its line feed.
    ///
    /// # Errors
    /// Not exactly one of `ok` and `err`, or an `ok` of neither form.
    pub fn read(line: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::read(line, &LIMITS)?;
        let id = fields.count("id")?.ok_or_else(|| fields.fault("id", "is missing"))?;
        let body = match (fields.take("ok"), fields.take("err")) {
            (Some(ok), None) => {
                let is_hello = Fields::of(ok, "ok".to_owned())?.take("protocol").is_some();
                if is_hello { Body::Hello(member("ok", ok)?) } else { Body::Written(member("ok", ok)?) }
            }
            (None, Some(err)) => Body::Failed(member("err", err)?),
            _ => return Err(Fault::new("", "is not exactly one of ok and err")),
        };
        Ok(Self { id, body })
    }
}

fn member<'a, T: Deserialize<'a>>(place: &str, value: &'a RawValue) -> Result<T, Fault> {
    json::object(value.get().as_bytes(), &LIMITS).map_err(|error| Fault::json(place, &error))
}

#[derive(Serialize)]
struct OkOut<'a, T> {
    id: u64,
    ok: &'a T,
}

#[derive(Serialize)]
struct ErrOut<'a> {
    id: u64,
    err: &'a Failure<RequestCode>,
}

#[cfg(test)]
mod tests;
