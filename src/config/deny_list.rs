//! `cert_deny_list`: names that no certificate request may carry.

use quartermaster_proto::choria::csr::deny_pattern;
use regex::Regex;

use super::fault::Faults;

/// Used when the file lists nothing (choria.md 12.2).
pub const DEFAULT_DENY_LIST: [&str; 4] =
    [r"\.privileged.mcollective$", r"\.privileged.choria$", r"\.mcollective$", r"\.choria$"];

/// Compiles the patterns, unanchored, without regard to case (host names have none), `/…/` stripped; the default list when there are none. One that does not compile is an error:
/// ignoring it, as the peer does, would let through what it was written against.
pub(super) fn compile(patterns: &[String], faults: &mut Faults) -> Vec<Regex> {
    let defaults;
    let patterns = if patterns.is_empty() {
        defaults = DEFAULT_DENY_LIST.map(str::to_owned);
        &defaults[..]
    } else {
        patterns
    };
    let mut compiled = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let key = format!("cert_deny_list[{index}]");
        let stripped = strip(pattern);
        match deny_pattern(&quoted_parts(stripped)) {
            Ok(regex) => {
                if regex.is_match("") && regex.is_match("a") {
                    let what = "the pattern matches every name, so every certificate request is refused";
                    faults.warning(&key, what, "remove it, or write what it is meant to match");
                }
                compiled.push(regex);
            }
            Err(error) => {
                let reason = error.source.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                faults.error(
                    &key,
                    format!("the pattern {stripped:?} does not compile: {reason}"),
                    "correct or remove it",
                );
            }
        }
    }
    compiled
}

/// `/…/` around a pattern is no part of it.
fn strip(pattern: &str) -> &str {
    if pattern.len() > 2 && pattern.starts_with('/') && pattern.ends_with('/') {
        pattern.trim_matches('/')
    } else {
        pattern
    }
}

/// The peer's patterns may quote with `\Q…\E`, which ours cannot.
fn quoted_parts(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once(r"\Q") {
        // An escaped backslash before a Q quotes nothing.
        let escaped = before.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
        out.push_str(before);
        if escaped {
            out.push_str(r"\Q");
            rest = after;
            continue;
        }
        let (literal, after) = after.split_once(r"\E").unwrap_or((after, ""));
        out.push_str(&regex::escape(literal));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denies(patterns: &[&str], name: &str) -> bool {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let mut faults = Faults::default();
        let list = compile(&patterns, &mut faults);
        assert!(faults.may_start(), "{:?}", faults.list());
        list.iter().any(|pattern| pattern.is_match(name))
    }

    fn refused(pattern: &str) {
        let mut faults = Faults::default();
        assert!(compile(&[pattern.to_owned()], &mut faults).is_empty());
        let [fault] = faults.list() else { panic!("{:?}", faults.list()) };
        assert!(!faults.may_start() && fault.what.contains("does not compile"), "{fault:?}");
    }

    #[rustfmt::skip]
    mod patterns {
        use super::*;
        #[test] fn the_default_list() {
            for name in ["ops.mcollective", "ops.choria", "x.privileged.choria"] { assert!(denies(&[], name), "{name}") }
            assert!(!denies(&[], "web1.example.net"));
        }
        #[test] fn slashes_are_stripped() { assert!(denies(&["/^adm/"], "admin.example.net")); assert!(!denies(&["/^adm/"], "x.adm")) }
        #[test] fn they_know_no_case() { assert!(denies(&[], "Ops.CHORIA")); assert!(denies(&[r"\.Choria$"], "ops.choria")) }
        #[test] fn they_are_not_anchored() { assert!(denies(&["adm"], "x.admin.net")) }
        #[test] fn escaped_slashes_and_quoting() { assert!(denies(&[r"a\/b"], "a/b")); assert!(denies(&[r"^\Qa.b\E$"], "a.b")); assert!(!denies(&[r"^\Qa.b\E$"], "axb")) }
        #[test] fn a_listed_pattern_replaces_the_defaults() { assert!(!denies(&["x"], "ops.choria")) }
        #[test] fn one_that_does_not_compile_refuses() { refused("["); refused("(a"); refused("*") }
    }

    #[test]
    fn a_pattern_for_everything_is_warned_about() {
        let mut faults = Faults::default();
        compile(&[String::new()], &mut faults);
        assert!(faults.may_start() && faults.list()[0].what.contains("every name"));
    }
}
