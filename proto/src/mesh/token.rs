//! Names inside keys and subjects: any text as one token, one to one.

/// Longest name of a node, a module, a secret, a provision or a local, in bytes.
pub const MAX_NAME: usize = 255;

/// `text` as a token: `A-Z a-z 0-9 - _ /` stay, every other byte becomes `=` and two uppercase hexadecimal digits. The empty
/// text has no token; what is made of it is refused where keys are built.
///
/// ```
/// use quartermaster_proto::mesh::esc;
/// assert_eq!(esc("shell:zsh:normal"), "shell=3Azsh=3Anormal");
/// assert_eq!(esc("web1.example.com"), "web1=2Eexample=2Ecom");
/// ```
#[must_use]
pub fn esc(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.extend(['=', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

/// The text of a token; none unless [`esc`] writes exactly this token (lower-case digits, an escaped letter, a cut escape, an
/// empty token and bytes that are not UTF-8 are all refused), so that no text has two spellings.
#[must_use]
pub fn unesc(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'=' => {
                let value = nibble(rest.next()?)? << 4 | nibble(rest.next()?)?;
                if is_plain(value) {
                    return None;
                }
                bytes.push(value);
            }
            byte if is_plain(byte) => bytes.push(byte),
            _ => return None,
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/')
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// True for what may name a node, a module, a secret, a provision or a local: 1 to 255 bytes without `/` and control characters.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && !text.contains('/') && !text.contains(char::is_control)
}

/// True for what may stand in the name of a bucket, and so for a provider's module name: 1 to 200 of `A-Z a-z 0-9 _ -`.
#[must_use]
pub fn is_bucket_name(text: &str) -> bool {
    (1..=200).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_tokens_and_come_back() {
        for (text, token) in [
            ("shell:zsh:normal", "shell=3Azsh=3Anormal"),
            ("web1.example.com", "web1=2Eexample=2Ecom"),
            ("a=b", "a=3Db"),
            ("é", "=C3=A9"),
            ("own/forge/pw", "own/forge/pw"),
            ("a b*c>d\u{0}", "a=20b=2Ac=3Ed=00"),
            ("_-/Az09", "_-/Az09"),
        ] {
            assert_eq!(esc(text), token);
            assert_eq!(unesc(token).as_deref(), Some(text));
        }
    }

    #[test]
    fn every_byte_from_1_to_255_survives() {
        let all: String = (1..=255_u8).map(char::from).collect();
        let token = esc(&all);
        assert_eq!(unesc(&token), Some(all));
        assert!(token.split('=').skip(1).all(|part| {
            part.get(..2)
                .is_some_and(|two| two.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F')))
        }));
    }

    #[test]
    fn a_token_that_is_not_ours_is_refused() {
        for token in
            ["", "=", "=4", "=41", "=c3=a9", "=C3", "=FF", "a.b", "a b", "a=", "=3a", "é", "=G0", "==3D"]
        {
            assert_eq!(unesc(token), None, "{token}");
        }
    }

    #[test]
    fn names_hold_no_slash_and_no_control_character() {
        for name in ["web1.example.com", "é", "a b", "-"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a/b", "a\nb", "a\u{7f}", "\u{85}"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name(&"x".repeat(255)) && !is_name(&"x".repeat(256)));
    }

    #[test]
    fn a_bucket_name_is_plain() {
        assert!(is_bucket_name("mesh-config_resolved"));
        for name in ["", "a.b", "a b", "é"] {
            assert!(!is_bucket_name(name), "{name}");
        }
    }
}
