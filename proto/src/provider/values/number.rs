//! Decimal numbers of any size, digit for digit.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

/// Most zeros that an exponent may stand for: `1e4096` is read, more would let a short text become an endless one.
const MAX_ZEROS: i64 = 4_096;

/// A decimal number as text without exponent, every digit kept as it was written; it never passes through a float.
///
/// Two numbers are equal when their values are: `1.50` is kept as `1.50` and equals `1.5`.
///
/// ```
/// use quartermaster_proto::provider::Number;
/// let number: Number = "9223372036854775808.10".parse().unwrap();
/// assert_eq!(number.to_string(), "9223372036854775808.10");
/// assert_eq!(number.normal(), "9223372036854775808.1");
/// assert_eq!("25e-1".parse::<Number>().unwrap().to_string(), "2.5");
/// ```
#[derive(Clone)]
pub struct Number(Box<str>);

/// Why a text is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text does not follow the grammar of JSON numbers.
    #[error("not a decimal number")]
    Syntax,
    /// The exponent stands for more zeros than are ever written out.
    #[error("an exponent that stands for more than {MAX_ZEROS} zeros")]
    Exponent,
    /// Infinity and not-a-number have no decimal form.
    #[error("infinity and not-a-number cannot be written")]
    NotFinite,
}

/// The parts of a number's text.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: Option<&'a str>,
}

/// Cuts leading digits off `text`.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Splits a text by the grammar of JSON numbers.
fn parts(text: &str) -> Option<Parts<'_>> {
    let unsigned = text.strip_prefix('-');
    let (whole, mut rest) = digits(unsigned.unwrap_or(text));
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = digits(after);
        if fraction.is_empty() {
            return None;
        }
    }
    let mut exponent = None;
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let (found, left) = digits(after.strip_prefix(['+', '-']).unwrap_or(after));
        if found.is_empty() || !left.is_empty() {
            return None;
        }
        exponent = Some(after.strip_prefix('+').unwrap_or(after));
    } else if !rest.is_empty() {
        return None;
    }
    Some(Parts { negative: unsigned.is_some(), whole, fraction, exponent })
}

/// Moves the decimal point of `whole.fraction` by `exponent` places.
fn expand(parts: &Parts<'_>, exponent: &str) -> Result<String, NumberError> {
    let all = [parts.whole, parts.fraction].concat();
    if all.bytes().all(|digit| digit == b'0') {
        return Ok("0".to_owned());
    }
    let exponent: i64 = exponent.parse().map_err(|_| NumberError::Exponent)?;
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let point = length(parts.whole).saturating_add(exponent);
    let missing = if point <= 0 { point.saturating_neg() } else { point.saturating_sub(length(&all)).max(0) };
    if missing > MAX_ZEROS {
        return Err(NumberError::Exponent);
    }
    let zeros = "0".repeat(usize::try_from(missing).unwrap_or_default());
    let plain = if point <= 0 {
        format!("0.{zeros}{all}")
    } else if let Some((whole, fraction)) =
        usize::try_from(point).ok().and_then(|at| all.split_at_checked(at))
    {
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    } else {
        format!("{all}{zeros}")
    };
    let kept = plain.trim_start_matches('0');
    let sign = if parts.negative { "-" } else { "" };
    let zero = if kept.is_empty() || kept.starts_with('.') { "0" } else { "" };
    Ok(format!("{sign}{zero}{kept}"))
}

impl Number {
    /// The number without needless zeros and with no minus before zero: the same text for every equal number.
    pub fn normal(&self) -> Cow<'_, str> {
        let mut text = &*self.0;
        if text.contains('.') {
            text = text.trim_end_matches('0').trim_end_matches('.');
        }
        if text == "-0" { Cow::Borrowed("0") } else { Cow::Borrowed(text) }
    }

    /// The number as written, in plain decimals.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number when it is whole and fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.normal().parse().ok()
    }

    /// The number when it is whole, not negative, and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.normal().parse().ok()
    }
}

impl FromStr for Number {
    type Err = NumberError;

    /// Reads a JSON number; an exponent is written out.
    fn from_str(text: &str) -> Result<Self, NumberError> {
        let parts = parts(text).ok_or(NumberError::Syntax)?;
        match parts.exponent {
            None => Ok(Self(text.into())),
            Some(exponent) => expand(&parts, exponent).map(|plain| Self(plain.into())),
        }
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self(number.to_string().into())
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl TryFrom<f64> for Number {
    type Error = NumberError;

    /// The shortest decimal that reads back as the same float.
    fn try_from(number: f64) -> Result<Self, NumberError> {
        if number.is_finite() { Ok(Self(number.to_string().into())) } else { Err(NumberError::NotFinite) }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.normal() == other.normal()
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.normal().hash(state);
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Numbers can be secret (a PIN), so only their length shows.
impl fmt::Debug for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Number({} characters)", self.0.len())
    }
}
