//! A provider that counts, as a program: `quartermaster provider check target/debug/examples/counter-provider`.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;

use quartermaster_proto::provider::kit::{Provider, run};
use quartermaster_proto::provider::{
    ErrorCode, Execute, Executed, Invocation, Members, Number, ProviderError, Value,
};

const SCHEMA: &str = r#"{"name":"counter","version":"1.0.0","protocol":"1","config":{"start":{"type":"number","default":0}},
"actions":{"add":{"description":"add to a counter","attrs":{"name":{"type":"string","required":true},"by":{"type":"number","default":1}},
"outputs":{"type":"object({value=number})"},"x_returns_undo":true}}}"#;

#[derive(Default)]
struct Counter {
    start: i64,
    counters: BTreeMap<String, i64>,
}

fn number(members: &Members, name: &str) -> Option<i64> {
    members.get(name).and_then(Value::as_number).and_then(Number::as_i64)
}

impl Provider for Counter {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn configure(&mut self, config: &Members) -> Result<(), ProviderError> {
        self.start = number(config, "start").unwrap_or_default();
        Ok(())
    }

    fn execute(&mut self, call: &Execute) -> Result<Executed, ProviderError> {
        let name = call.attrs.get("name").and_then(Value::as_str).unwrap_or_default();
        let by = number(&call.attrs, "by")
            .ok_or_else(|| ProviderError::new(ErrorCode::InvalidAttrs, "`by` should be a whole number"))?;
        let value = self.counters.entry(name.to_owned()).or_insert(self.start);
        *value += by;
        let back: Value = [("name", Value::from(name)), ("by", Value::from(-by))].into_iter().collect();
        let undo =
            Invocation { action: call.action.clone(), attrs: back.as_object().cloned().unwrap_or_default() };
        Ok(Executed { outputs: Members::from([("value".to_owned(), Value::from(*value))]), undo: vec![undo] })
    }
}

fn main() -> ExitCode {
    run(&mut Counter::default(), std::env::args(), stdin().lock(), stdin().is_terminal(), stdout().lock())
        .into()
}
