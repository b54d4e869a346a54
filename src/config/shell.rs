//! Splitting the `helper` line as a POSIX shell would, without a shell.
//!
//! The peer's splitter differs from the usual crates in two ways that a site's file may depend on: `#` starts no comment, and a backslash at the very end
//! is an error. Hence our own.

/// Why a command line cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A `'` without its partner.
    #[error("the single quote (') opened at character {0} is never closed")]
    SingleQuote(usize),
    /// A `"` without its partner.
    #[error("the double quote (\") opened at character {0} is never closed")]
    DoubleQuote(usize),
    /// A `\` with nothing after it.
    #[error("it ends in a backslash with nothing after it")]
    Backslash,
}

/// Splits `line` into words: white space is space, tab and newline; quotes and backslashes as in POSIX; nothing is expanded.
///
/// # Errors
/// Names the quote that is not closed, by its place counted from 1.
pub fn split(line: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let open = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err(SplitError::SingleQuote(at.saturating_add(1))),
                        Some((_, '\'')) => break,
                        Some((_, inner)) => open.push(inner),
                    }
                }
            }
            '"' => {
                let open = word.get_or_insert_default();
                double_quoted(&mut chars, open).ok_or(SplitError::DoubleQuote(at.saturating_add(1)))?;
            }
            '\\' => match chars.next() {
                None => return Err(SplitError::Backslash),
                // A line continued by a backslash: nothing of it stays, and it starts no word.
                Some((_, '\n')) => {}
                Some((_, escaped)) => word.get_or_insert_default().push(escaped),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing quote; `None` when there is none.
fn double_quoted(chars: &mut impl Iterator<Item = (usize, char)>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()?.1 {
            '"' => return Some(()),
            '\\' => match chars.next()?.1 {
                '\n' => {}
                escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                other => {
                    word.push('\\');
                    word.push(other);
                }
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(line: &str, words: &[&str]) {
        assert_eq!(
            split(line).as_deref(),
            Ok(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{line}"
        );
    }

    #[rustfmt::skip]
    mod words {
        use super::*;
        #[test] fn plain() { check("/opt/h --site london", &["/opt/h", "--site", "london"]) }
        #[test] fn quoted_arguments() { check(r#"/opt/h --site "a b""#, &["/opt/h", "--site", "a b"]) }
        #[test] fn a_path_with_a_space() { check(r"/opt/my\ helper", &["/opt/my helper"]); check("'/opt/my helper' x", &["/opt/my helper", "x"]) }
        #[test] fn hash_starts_no_comment() { check("/opt/h #1 a", &["/opt/h", "#1", "a"]) }
        #[test] fn empty_words_stay() { check("/opt/h '' \"\"", &["/opt/h", "", ""]) }
        #[test] fn quotes_join_words() { check(r#"a'b'"c"d"#, &["abcd"]) }
        #[test] fn nothing_is_expanded() { check("h $HOME ~ *.sh `x` a;b", &["h", "$HOME", "~", "*.sh", "`x`", "a;b"]) }
        #[test] fn backslashes_in_double_quotes() { check(r#""\$\`\"\\\n""#, &["$`\"\\\\n"]) }
        #[test] fn backslashes_in_single_quotes_stay() { check(r"'a\b'", &[r"a\b"]) }
        #[test] fn a_continued_line() { check("/opt/h \\\n --x a\\\nb", &["/opt/h", "--x", "ab"]); check("\"a\\\nb\"", &["ab"]) }
        #[test] fn white_space_only() { check(" \t\n", &[]); check("", &[]) }
        #[test] fn carriage_returns_are_no_white_space() { check("a\rb", &["a\rb"]) }
        #[test] fn unbalanced_quotes() {
            assert_eq!(split("/opt/h 'a b"), Err(SplitError::SingleQuote(8)));
            assert_eq!(split("/opt/h \"a b"), Err(SplitError::DoubleQuote(8)));
            assert_eq!(split("/opt/h \"a\\"), Err(SplitError::DoubleQuote(8)));
        }
        #[test] fn a_last_backslash() { assert_eq!(split("/opt/h \\"), Err(SplitError::Backslash)) }
    }

    proptest! {
        #[test]
        fn quoting_and_splitting_is_a_round_trip(words in proptest::collection::vec("\\PC{0,12}", 0..6)) {
            let line: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&line.join(" ")), Ok(words));
        }

        #[test]
        fn without_comments_and_last_backslashes_it_agrees_with_the_usual_splitter(line in "[ab'\" \\\\$\n]{0,16}") {
            let usual = shell_words::split(&line).ok();
            let ours = split(&line);
            if ours != Err(SplitError::Backslash) && !line.contains("\\\n") {
                prop_assert_eq!(ours.ok(), usual);
            }
        }
    }
}
