//! Who owns the values of each kind, and where they are asked for.

use serde::Serialize;

use super::{fault::Fault, fields::Fields, key, kind::Kind, token::is_bucket_name};
use crate::json::{Limits, to_secret_bytes};

/// The provider's place in the name of a bucket.
const PROVIDER: &str = "<provider>";

/// One entry of the registry; its key is the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The kind.
    pub kind: Kind,
    /// Who owns its values, for people.
    pub owner: String,
    /// Where they are.
    pub source: Source,
}

/// Where the values of a kind are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In a bucket, whose name may hold `<provider>`.
    Bucket(String),
    /// In the plan's placement.
    Plan,
    /// With the vault.
    Vault(VaultSource),
}

/// How the vault is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultSource {
    /// Where it is asked, without the account.
    pub request: String,
    /// Where it says what changed, without the account.
    pub changed: String,
    /// The stream that keeps what it said.
    pub stream: String,
    /// The public half of the key that deposits are sealed to, standard base64; none until the vault is initialised.
    pub box_key: Option<String>,
}

impl Entry {
    /// The thirteen entries as they are first written.
    pub fn defaults(box_key: Option<&str>) -> Vec<Self> {
        Kind::ALL.into_iter().map(|kind| Self::default_of(kind, box_key)).collect()
    }

    fn default_of(kind: Kind, box_key: Option<&str>) -> Self {
        let bucket = |owner: &str, bucket: &str| (owner.to_owned(), Source::Bucket(bucket.to_owned()));
        let (owner, source) = match kind {
            Kind::Config => bucket("mesh-config", key::CONFIG),
            Kind::Bound => bucket(PROVIDER, &key::bound_bucket(PROVIDER)),
            Kind::Collected | Kind::Shell | Kind::Environment | Kind::Contribution => {
                bucket("mesh-provisioner", key::COLLECT)
            }
            Kind::Dir | Kind::Access | Kind::Port | Kind::Seat | Kind::Machine => {
                ("mesh-controller".to_owned(), Source::Plan)
            }
            Kind::Secret | Kind::Consumers => {
                let source = VaultSource {
                    request: key::VAULT_GET.to_owned(),
                    changed: key::SECRET_CHANGED.to_owned(),
                    stream: key::CHANGED_STREAM.to_owned(),
                    box_key: box_key.map(str::to_owned),
                };
                ("mesh-vault".to_owned(), Source::Vault(source))
            }
        };
        Self { kind, owner, source }
    }

    /// The bucket of this kind, where a provider's name belongs in it.
    pub fn bucket(&self, provider: &str) -> Option<String> {
        let Source::Bucket(bucket) = &self.source else { return None };
        Some(bucket.replace(PROVIDER, provider))
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// The key is no kind we know, the entry says another kind, or has another source than the kind can have. Key patterns are
    /// fixed text: an entry with another pattern would be misread, so it is refused.
    pub fn read(key: &str, value: &[u8]) -> Result<Self, Fault> {
        let kind = Kind::parse(key).ok_or_else(|| Fault::new("", "the key is no kind that is known"))?;
        let mut fields = Fields::read(value, &Limits::EVENT)?;
        if fields.needed("kind")? != kind.as_str() {
            return Err(fields.fault("kind", "does not equal the key"));
        }
        let owner = fields.needed("owner")?;
        let mut inner = fields.object("source")?.ok_or_else(|| fields.fault("source", "is missing"))?;
        let source = match Self::default_of(kind, None).source {
            Source::Plan => match inner.needed("plan")?.as_str() {
                "placement" => Source::Plan,
                _ => return Err(inner.fault("plan", "is not `placement`")),
            },
            Source::Bucket(_) => {
                let bucket = inner.needed("bucket")?;
                if !is_bucket_name(&bucket.replace(PROVIDER, "p")) {
                    return Err(inner.fault("bucket", "is no name of a bucket"));
                }
                if let Some(pattern) = inner.text("key")?
                    && Some(pattern.as_str()) != key_pattern(kind)
                {
                    return Err(inner.fault("key", "is not the pattern of this kind"));
                }
                Source::Bucket(bucket)
            }
            Source::Vault(_) => Source::Vault(VaultSource {
                request: inner.needed_checked("request", subject)?,
                changed: inner.needed_checked("changed", subject)?,
                stream: inner.needed_checked("stream", |text| {
                    if is_bucket_name(text) { Ok(()) } else { Err("is no name of a stream") }
                })?,
                box_key: inner.text("box-key")?,
            }),
        };
        Ok(Self { kind, owner, source })
    }

    /// The entry's value.
    pub fn encode(&self) -> Vec<u8> {
        let empty = SourceOut::default();
        let source = match &self.source {
            Source::Bucket(bucket) => {
                SourceOut { bucket: Some(bucket), key: key_pattern(self.kind), ..empty }
            }
            Source::Plan => SourceOut { plan: Some("placement"), ..empty },
            Source::Vault(vault) => SourceOut {
                request: Some(&vault.request),
                changed: Some(&vault.changed),
                stream: Some(&vault.stream),
                box_key: vault.box_key.as_deref(),
                ..empty
            },
        };
        to_secret_bytes(&EntryOut { kind: self.kind.as_str(), owner: &self.owner, source }).to_vec()
    }
}

/// The pattern of a kind's keys, for people.
const fn key_pattern(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Config => Some("<node>.<module>.<key>"),
        Kind::Bound => Some("<node>.<module>.<provision>[.<local>]"),
        Kind::Collected | Kind::Shell | Kind::Environment | Kind::Contribution => {
            Some("<node>.<collection>.<contributor>")
        }
        _ => None,
    }
}

/// A subject without wildcards.
fn subject(text: &str) -> Result<(), &'static str> {
    let is_token = |token: &str| {
        !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>'))
    };
    if text.len() <= 255 && text.split('.').all(is_token) { Ok(()) } else { Err("is no plain subject") }
}

#[derive(Serialize)]
struct EntryOut<'a> {
    kind: &'static str,
    owner: &'a str,
    source: SourceOut<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct SourceOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    box_key: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_first_written_are_read_back() {
        let entries = Entry::defaults(Some("B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw="));
        assert_eq!(entries.len(), 13);
        for entry in entries {
            assert_eq!(Entry::read(entry.kind.as_str(), &entry.encode()), Ok(entry));
        }
    }

    #[test]
    fn an_entry_is_written_as_the_page_shows() {
        let shown = |kind| String::from_utf8(Entry::default_of(kind, Some("KEY")).encode()).unwrap();
        assert_eq!(
            shown(Kind::Config),
            r#"{"kind":"config","owner":"mesh-config","source":{"bucket":"mesh-config_resolved","key":"<node>.<module>.<key>"}}"#
        );
        assert_eq!(
            shown(Kind::Dir),
            r#"{"kind":"dir","owner":"mesh-controller","source":{"plan":"placement"}}"#
        );
        assert_eq!(
            shown(Kind::Secret),
            r#"{"kind":"secret","owner":"mesh-vault","source":{"request":"mesh-vault.get","changed":"mesh-vault.secret-changed","stream":"mesh-vault_changed","box-key":"KEY"}}"#
        );
        assert_eq!(
            shown(Kind::Bound),
            r#"{"kind":"bound","owner":"<provider>","source":{"bucket":"<provider>_bound","key":"<node>.<module>.<provision>[.<local>]"}}"#
        );
    }

    #[test]
    fn only_names_vary() {
        let check = |key: &str, value: &str, fault: &str| {
            let found = Entry::read(key, value.as_bytes()).map_err(|fault| fault.to_string());
            assert_eq!(found.map(drop), Err(fault.to_owned()));
        };
        let other = r#"{"kind":"config","owner":"x","source":{"bucket":"other","key":"<node>.<module>.<key>","new":1}}"#;
        let entry = Entry::read("config", other.as_bytes()).unwrap();
        assert_eq!(entry.bucket("").as_deref(), Some("other"));
        check("config", &other.replace("<key>", "<name>"), "source.key: is not the pattern of this kind");
        check("config", &other.replace("other", "a.b"), "source.bucket: is no name of a bucket");
        check("dir", other, "kind: does not equal the key");
        check("foo", other, "the key is no kind that is known");
        check("config", r#"{"kind":"config","owner":"x"}"#, "source: is missing");
        check(
            "dir",
            r#"{"kind":"dir","owner":"x","source":{"plan":"y"}}"#,
            "source.plan: is not `placement`",
        );
        let vault = r#"{"kind":"secret","owner":"v","source":{"request":"a.*","changed":"b","stream":"c"}}"#;
        check("secret", vault, "source.request: is no plain subject");
    }

    #[test]
    fn a_provider_has_its_bucket() {
        assert_eq!(
            Entry::default_of(Kind::Bound, None).bucket("postgres").as_deref(),
            Some("postgres_bound")
        );
    }
}
