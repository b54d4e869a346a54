//! What a template's bytes mean.
//!
//! ```text
//! run  = "$" , { "$" } , "{" , kind , ":" , name , { "|" , filter } , "}" ;   (filters only where the file says so)
//! kind = lower , { lower | digit | "-" } ;
//! name = first , { rest } ;   first = rest - ( " " | "-" | "=" | "+" | "?" ) ;
//! rest = UTF-8 character - ( "{" | "}" | "$" | control ) ;
//! ```
//! Of n dollars before the brace, odd: (n-1)/2 dollars and the value; even: n/2 dollars and the rest as written.

use quartermaster_proto::text::escape_bounded;

use super::filter::Filter;

/// Longest placeholder, in bytes; what is longer is text.
const MAX_PLACEHOLDER: usize = 4_096;

/// One template, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub(super) parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Copied.
    Text(Vec<u8>),
    /// Filled.
    Placeholder(Placeholder),
}

/// `${kind:name}`, with its filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The word before the first colon.
    pub kind: String,
    /// Everything after it.
    pub name: String,
    /// What is done to the value, from left to right.
    pub filters: Vec<Filter>,
    /// The line it begins on, from 1.
    pub line: usize,
}

/// A placeholder with a filter that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind} {}: unknown filter `{}`", escape_bounded(name, 80), escape_bounded(filter, 40))]
pub struct TemplateError {
    /// The line, from 1.
    pub line: usize,
    /// The placeholder's kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The filter.
    pub filter: String,
}

impl Template {
    /// Reads a template; with `filters`, a `|` in a placeholder begins one, otherwise it is part of the name.
    ///
    /// # Errors
    /// A filter that is not known; everything else is text.
    pub fn parse(bytes: &[u8], filters: bool) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut text = Vec::new();
        let mut line = 1;
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if byte != b'$' {
                line += usize::from(byte == b'\n');
                text.push(byte);
                rest = after;
                continue;
            }
            let dollars = rest.iter().take_while(|byte| **byte == b'$').count();
            let (run, after) = rest.split_at_checked(dollars).unwrap_or((rest, &[]));
            let Some((raw, after_it)) = inner(after) else {
                text.extend_from_slice(run);
                rest = after;
                continue;
            };
            text.extend(std::iter::repeat_n(b'$', dollars / 2));
            if dollars % 2 == 0 {
                text.extend_from_slice(after.get(..after.len() - after_it.len()).unwrap_or_default());
            } else {
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(Part::Placeholder(raw.checked(filters, line)?));
            }
            rest = after_it;
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { parts })
    }

    /// Its placeholders, in order, repeated as they are.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Placeholder(placeholder) => Some(placeholder),
            Part::Text(_) => None,
        })
    }
}

/// A placeholder before its filters are looked at.
struct Raw<'a> {
    kind: &'a str,
    name: &'a str,
}

impl Raw<'_> {
    fn checked(&self, filters: bool, line: usize) -> Result<Placeholder, TemplateError> {
        let kind = self.kind.to_owned();
        if !filters {
            return Ok(Placeholder { kind, name: self.name.to_owned(), filters: Vec::new(), line });
        }
        let mut words = self.name.split('|');
        let name = words.next().unwrap_or_default().to_owned();
        let mut filters = Vec::new();
        for word in words {
            match Filter::parse(word) {
                Some(filter) => filters.push(filter),
                None => return Err(TemplateError { line, kind, name, filter: word.to_owned() }),
            }
        }
        Ok(Placeholder { kind, name, filters, line })
    }
}

/// The placeholder whose brace opens here, and what follows its end; none when these bytes have another form.
fn inner(bytes: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let body = bytes.strip_prefix(b"{")?;
    let end = body.iter().take(MAX_PLACEHOLDER).position(|byte| *byte == b'}')?;
    let (body, after) = body.split_at_checked(end)?;
    let (kind, name) = std::str::from_utf8(body).ok()?.split_once(':')?;
    let is_rest = |c: char| !matches!(c, '{' | '}' | '$') && !c.is_control();
    let is_kind = kind.starts_with(|c: char| c.is_ascii_lowercase())
        && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    // A `|` that comes first would leave no name before the filters, so it is no name's beginning in either reading.
    let is_name = name.starts_with(|c| is_rest(c) && !matches!(c, ' ' | '-' | '=' | '+' | '?' | '|'))
        && name.chars().all(is_rest);
    (is_kind && is_name).then_some((Raw { kind, name }, after.get(1..)?))
}
