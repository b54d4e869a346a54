//! Just enough reading of Rust to see which paths a file names.

/// A path like `tokio::process::Command`, and its line, counted from 1.
pub type Named = (usize, String);

/// The text with comments, string contents and test-only items blanked, line breaks kept.
pub fn shipped(text: &str) -> String {
    without_test_items(&without_comments_and_strings(text))
}

/// The text with comments and string contents blanked.
pub fn without_comments_and_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = skipped_at(rest, out.chars().next_back());
        if skipped > 0 {
            let (gone, after) = rest.split_at(skipped);
            out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// How many bytes of comment, string or character literal begin here.
fn skipped_at(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    let in_a_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r')).filter(|_| !in_a_word);
    if let Some(after) = raw {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if after[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = rest.len() - after.len() + hashes + 1;
            return rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
        }
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    // A character, not a lifetime.
    let mut chars = rest.chars();
    if chars.next() == Some('\'') {
        match (chars.next(), chars.next()) {
            (Some('\\'), _) => return quoted(rest, '\''),
            (Some(c), Some('\'')) => return 2 + c.len_utf8(),
            _ => {}
        }
    }
    0
}

fn quoted(rest: &str, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == end => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Blanks every item behind `#[cfg(test)]`, `#[cfg(feature = "testing")]` or either of the two; strings are blanked
/// already, so that a feature shows without its name.
fn without_test_items(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find("#[cfg(").map(|at| from + at) {
        let Some(close) = out[at..].find(")]").map(|close| at + close) else { break };
        let condition = out[at + 6..close].replace(' ', "");
        from = close + 2;
        if ["test", "feature=", "any(test,feature=)"].contains(&condition.as_str()) {
            let end = item_end(&out[from..]) + from;
            let blank: String = out[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
            out.replace_range(at..end, &blank);
            from = at + blank.len();
        }
    }
    out
}

/// The end of the item that begins here: its `;`, or its closing brace.
fn item_end(code: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Every path of two or more parts that the code names, `use` lists written out in full.
pub fn paths(code: &str) -> Vec<Named> {
    let mut named = Vec::new();
    let tokens = tokens(code);
    let mut at = 0;
    while let Some((_, token)) = tokens.get(at) {
        if token == "use" {
            at += 1;
            at = used(&tokens, at, "", &mut named);
        } else {
            at = plain(&tokens, at, &mut named);
        }
    }
    named
}

/// Words, `::`, and single characters, with their lines.
fn tokens(code: &str) -> Vec<(usize, String)> {
    let mut tokens: Vec<(usize, String)> = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = if word > 0 {
                word
            } else if rest.starts_with("::") {
                2
            } else {
                c.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            if !token.trim().is_empty() {
                tokens.push((number + 1, token.to_owned()));
            }
            rest = after;
        }
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Reads one tree of a `use`; answers where it ends.
fn used(tokens: &[(usize, String)], mut at: usize, prefix: &str, named: &mut Vec<Named>) -> usize {
    let mut path = prefix.to_owned();
    while let Some((line, token)) = tokens.get(at) {
        match token.as_str() {
            "::" if path.is_empty() => {}
            "::" => path.push_str("::"),
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|(_, token)| token != "}") {
                    at = used(tokens, at, &path, named);
                    at += usize::from(tokens.get(at).is_some_and(|(_, token)| token == ","));
                }
                return at + 1;
            }
            "as" => at += 1,
            "self" if !prefix.is_empty() => {
                path.truncate(path.len().saturating_sub(2));
                named.push((*line, path.clone()));
            }
            token if is_word(token) || token == "*" => {
                path.push_str(token);
                if tokens.get(at + 1).is_none_or(|(_, next)| next != "::") {
                    named.push((*line, path.clone()));
                }
            }
            _ => return at,
        }
        at += 1;
    }
    at
}

/// Reads one path outside a `use`; answers where to go on.
fn plain(tokens: &[(usize, String)], mut at: usize, named: &mut Vec<Named>) -> usize {
    let Some((line, first)) = tokens.get(at).filter(|(_, first)| is_word(first)) else { return at + 1 };
    let mut path = first.clone();
    while let (Some((_, colons)), Some((_, word))) = (tokens.get(at + 1), tokens.get(at + 2))
        && colons == "::"
        && is_word(word)
    {
        path.push_str("::");
        path.push_str(word);
        at += 2;
    }
    if path.contains("::") {
        named.push((*line, path));
    }
    at + 1
}

/// True when `path` is `prefix` or lies in it.
pub fn within(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
