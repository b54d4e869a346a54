//! What a site denies or allows beyond the assignments: lines of `deny` or `allow`, an account, a name.

/// Why a file of rules is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the rules is not `deny` or `allow`, an account and a name")]
pub struct RulesError {
    /// The line, counted from 1.
    pub line: usize,
}

/// The rules of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    deny: Vec<Line>,
    allow: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    account: String,
    name: String,
}

impl Rules {
    /// Reads rules; `#` begins a comment, `*` in an account or a name stands for any characters.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let mut rules = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let rule =
                |account: &str, name: &str| Line { account: account.to_owned(), name: name.to_owned() };
            match words.as_slice() {
                [] => {}
                ["deny", account, name] => rules.deny.push(rule(account, name)),
                ["allow", account, name] => rules.allow.push(rule(account, name)),
                _ => return Err(RulesError { line: at + 1 }),
            }
        }
        Ok(rules)
    }

    pub(super) fn denies(&self, account: &str, name: &str) -> bool {
        self.deny.iter().any(|line| line.matches(account, name))
    }

    pub(super) fn allows(&self, account: &str, name: &str) -> bool {
        self.allow.iter().any(|line| line.matches(account, name))
    }
}

impl Line {
    fn matches(&self, account: &str, name: &str) -> bool {
        glob(&self.account, account) && glob(&self.name, name)
    }
}

/// True when `text` is the pattern with something for every `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, is_match) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("own/*", "own/a/b", true),
            ("own/*/pw", "own/a/pw", true),
            ("own/*/pw", "own/pw", false),
            ("*.web1", "provisioner.web1", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob(pattern, text), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn rules_are_lines_of_three_words() {
        let rules = Rules::parse("# site\n\ndeny provisioner.* own/x/* # not these\nallow a b\n").unwrap();
        assert!(rules.denies("provisioner.web1", "own/x/pw") && !rules.denies("engine.web1", "own/x/pw"));
        assert!(rules.allows("a", "b") && !rules.allows("a", "c"));
        for (text, line) in [("deny a", 1), ("\npermit a b", 2), ("deny a b c", 1)] {
            assert_eq!(Rules::parse(text), Err(RulesError { line }));
        }
    }
}
