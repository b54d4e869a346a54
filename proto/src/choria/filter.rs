//! Which hosts a request is for (choria.md 3.4).

use regex::RegexBuilder;
use serde::{Deserialize, Serialize};

/// The filter of a request. All five lists are always written: a server answers a protocol 1 request that lacks one with
/// silence. An empty list asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Conditions on facts; all must hold.
    pub fact: Vec<FactFilter>,
    /// Configuration classes, names or `/regex/`; all must be present.
    pub cf_class: Vec<String>,
    /// Agents, names or `/regex/`; all must be present.
    pub agent: Vec<String>,
    /// Identities, names or `/regex/`; one must match.
    pub identity: Vec<String>,
    /// Expressions; all must hold.
    pub compound: Vec<Vec<CompoundFilter>>,
}

/// One condition on a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactFilter {
    /// Path of the fact.
    pub fact: String,
    /// One of `>= <= < > != == =~`.
    pub operator: String,
    /// What to compare with.
    pub value: String,
}

/// One expression over agents, classes and facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompoundFilter {
    /// The expression's text.
    pub expr: String,
}

impl Filter {
    /// The filter of a request to hosts that run `agent`.
    pub fn for_agent(agent: &str) -> Self {
        Self { agent: vec![agent.to_owned()], ..Self::default() }
    }

    /// Whether a host with these agents and this identity, without facts and classes, is meant. A filter on facts, classes
    /// or expressions therefore never matches.
    pub fn matches(&self, agents: &[&str], identity: &str) -> bool {
        self.fact.is_empty()
            && self.cf_class.is_empty()
            && self.compound.is_empty()
            && self.agent.iter().all(|wanted| agents.iter().any(|agent| fits(wanted, agent)))
            && (self.identity.is_empty() || self.identity.iter().any(|wanted| fits(wanted, identity)))
    }
}

/// A name, or `/regex/` searched anywhere in the text. A pattern that does not compile fits nothing.
fn fits(wanted: &str, text: &str) -> bool {
    match wanted.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(pattern) => RegexBuilder::new(pattern)
            .size_limit(256 * 1024)
            .dfa_size_limit(256 * 1024)
            .build()
            .is_ok_and(|regex| regex.is_match(text)),
        None => wanted == text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: bool) {
        let filter: Filter = serde_json::from_str(json).unwrap();
        assert_eq!(filter.matches(&["discovery", "rpcutil"], "n1.example.net"), expected, "{json}");
    }

    fn agents(list: &str) -> String {
        format!(r#"{{"fact":[],"cf_class":[],"agent":{list},"identity":[],"compound":[]}}"#)
    }

    fn identities(list: &str) -> String {
        format!(r#"{{"fact":[],"cf_class":[],"agent":[],"identity":{list},"compound":[]}}"#)
    }

    #[test]
    fn an_empty_filter_means_everybody() {
        check(&agents("[]"), true);
        assert_eq!(serde_json::to_string(&Filter::default()).unwrap(), agents("[]"));
    }

    #[test]
    fn all_agents_must_be_there() {
        check(&agents(r#"["discovery"]"#), true);
        check(&agents(r#"["discovery","rpcutil"]"#), true);
        check(&agents(r#"["discovery","scout"]"#), false);
        check(&agents(r#"["/^rpc/","/cover/"]"#), true);
        check(&agents(r#"["/^util/"]"#), false);
    }

    #[test]
    fn one_identity_must_match() {
        check(&identities(r#"["n2.example.net","n1.example.net"]"#), true);
        check(&identities(r#"["n1"]"#), false);
        check(&identities(r#"["/n1/"]"#), true);
        check(&identities(r#"["/(/"]"#), false);
        check(&identities(r#"["/"]"#), false);
    }

    #[test]
    fn facts_classes_and_expressions_never_match_a_host_without_any() {
        check(
            r#"{"fact":[{"fact":"a","operator":"==","value":"b"}],"cf_class":[],"agent":[],"identity":[],"compound":[]}"#,
            false,
        );
        check(r#"{"fact":[],"cf_class":["role::web"],"agent":[],"identity":[],"compound":[]}"#, false);
        check(r#"{"fact":[],"cf_class":[],"agent":[],"identity":[],"compound":[[{"expr":"true"}]]}"#, false);
    }
}
