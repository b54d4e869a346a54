//! The long-lived helper of a measurement: answers the same for every server, at once, as `exec`'s small shell script does.

use std::io::{IsTerminal as _, stdin, stdout};
use std::path::Path;

use quartermaster_proto::provider::kit::{self, Provider};
use quartermaster_proto::provider::{ErrorCode, Execute, Executed, Members, ProviderError, Value};
use serde_json::Value as Json;

use super::sign;
use crate::exit::Exit;

const SCHEMA: &str = r#"{"name":"bench-helper","version":"1.0.0","protocol":"1","config":{},
"actions":{"provision":{"description":"decide what a server becomes","attrs":{"identity":{"type":"string","required":true},
"inventory":{"type":"string","required":true},"csr":{"type":"any"},"ed25519_pubkey":{"type":"any"},"jwt":{"type":"any"}},
"outputs":{"type":"any"},"x_idempotent":true}},"x_extensions":{"max_in_flight":64}}"#;

/// Serves standard input and output until the host goes. `rest` is what stood after `--`: `schema`, or nothing.
pub(super) fn serve(dir: &Path, rest: &[String]) -> Exit {
    let decision = std::fs::read_to_string(dir.join("decision.json")).unwrap_or_default();
    let mut helper = Helper { dir, decision: serde_json::from_str(&decision).unwrap_or_default() };
    let arguments = std::iter::once("bench".to_owned()).chain(rest.iter().cloned());
    let code = kit::run(&mut helper, arguments, stdin().lock(), stdin().is_terminal(), stdout().lock());
    if code == 0 { Exit::Success } else { Exit::Failure }
}

struct Helper<'a> {
    dir: &'a Path,
    /// The decision for everybody; null in an x509 network, where each has its own certificate.
    decision: Json,
}

impl Provider for Helper<'_> {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn configure(&mut self, _: &Members) -> Result<(), ProviderError> {
        Ok(())
    }

    fn execute(&mut self, call: &Execute) -> Result<Executed, ProviderError> {
        let decision = if self.decision.is_null() {
            let request: serde_json::Map<String, Json> = ["identity", "csr"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), json(call, name)?)))
                .collect();
            sign::decision(self.dir, &request.into())
                .map_err(|why| ProviderError::new(ErrorCode::Internal, why))?
        } else {
            self.decision.clone()
        };
        Ok(Executed { outputs: value(&decision).as_object().cloned().unwrap_or_default(), undo: Vec::new() })
    }
}

fn json(call: &Execute, name: &str) -> Option<Json> {
    serde_json::from_str(&call.attrs.get(name)?.to_json()).ok()
}

/// Decisions hold texts, booleans and objects.
fn value(json: &Json) -> Value {
    match json {
        Json::Bool(flag) => Value::from(*flag),
        Json::String(text) => Value::from(text.as_str()),
        Json::Object(members) => members.iter().map(|(name, json)| (name.clone(), value(json))).collect(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_answered_as_it_is() {
        let decision = serde_json::json!({"defer": false, "configuration": {"a": "b"}});
        assert_eq!(value(&decision).to_json(), r#"{"configuration":{"a":"b"},"defer":false}"#);
    }
}
