//! Filters: what a file that asks for them may have done to a value.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

/// One filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// A JSON literal with its quotes; a stored value that is no string stays JSON. Also right for YAML.
    Json,
    /// A basic string of TOML with its quotes.
    Toml,
    /// One single-quoted word of a shell.
    Shell,
    /// Standard base64.
    Base64,
    /// The value as it is, if it is one line.
    Line,
}

/// Why a filter refuses a value. The value is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// `json` and `toml` need text.
    #[error("the value is not UTF-8")]
    NotText,
    /// `line` needs one line, `shell` a value without NUL.
    #[error("the value holds a character that it may not hold here (CR, LF or NUL)")]
    Forbidden,
}

impl Filter {
    const ALL: [(&'static str, Self); 5] = [
        ("json", Self::Json),
        ("toml", Self::Toml),
        ("shell", Self::Shell),
        ("base64", Self::Base64),
        ("line", Self::Line),
    ];

    /// The filter of this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == word).map(|(_, filter)| filter)
    }

    /// What becomes of these bytes; `is_json` when they are JSON that is no string.
    pub(super) fn apply(self, value: &[u8], is_json: bool) -> Result<Zeroizing<Vec<u8>>, FilterError> {
        let text = || std::str::from_utf8(value).map_err(|_| FilterError::NotText);
        match self {
            Self::Json if is_json => Ok(Zeroizing::new(value.to_vec())),
            Self::Json => text().map(|text| quoted(text, json_escape)),
            Self::Toml => text().map(|text| quoted(text, toml_escape)),
            Self::Shell => shell(value),
            Self::Base64 => {
                let mut out = Zeroizing::new(vec![0; value.len().div_ceil(3) * 4]);
                // The buffer is exactly as long as the text, so there is nothing that could fail.
                let _ = STANDARD.encode_slice(value, &mut out);
                Ok(out)
            }
            Self::Line if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) => {
                Err(FilterError::Forbidden)
            }
            Self::Line => Ok(Zeroizing::new(value.to_vec())),
        }
    }
}

/// The longest escape of either format is six bytes for one; so the buffer never grows and leaves no copy behind.
fn quoted(text: &str, escape: fn(char) -> Option<&'static str>) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 6 + 2));
    out.push(b'"');
    for character in text.chars() {
        if let Some(short) = escape(character) {
            out.extend_from_slice(short.as_bytes());
        } else if character < ' ' || character == '\u{7f}' {
            out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
        } else {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.push(b'"');
    out
}

fn json_escape(character: char) -> Option<&'static str> {
    match character {
        // YAML ends a line here, and JSON does not mind the escape.
        '\u{85}' => Some("\\u0085"),
        '\u{2028}' => Some("\\u2028"),
        '\u{2029}' => Some("\\u2029"),
        other => toml_escape(other),
    }
}

fn toml_escape(character: char) -> Option<&'static str> {
    match character {
        '"' => Some("\\\""),
        '\\' => Some("\\\\"),
        '\n' => Some("\\n"),
        '\r' => Some("\\r"),
        '\t' => Some("\\t"),
        _ => None,
    }
}

fn shell(value: &[u8]) -> Result<Zeroizing<Vec<u8>>, FilterError> {
    if value.contains(&0) {
        return Err(FilterError::Forbidden);
    }
    let mut out = Zeroizing::new(Vec::with_capacity(value.len() * 4 + 2));
    out.push(b'\'');
    for byte in value {
        if *byte == b'\'' {
            out.extend_from_slice(br"'\''");
        } else {
            out.push(*byte);
        }
    }
    out.push(b'\'');
    Ok(out)
}
