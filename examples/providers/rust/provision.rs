//! The site's helper as a provider: decides what each server becomes. `helper_protocol: provider` runs it; docs/helpers.md.

use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;

use quartermaster_proto::provider::kit::{Provider, run};
use quartermaster_proto::provider::{ErrorCode, Execute, Executed, Members, ProviderError, Value};

const SCHEMA: &str = r#"{"name":"site-helper","version":"1.0.0","protocol":"1",
"config":{"brokers":{"type":"string","default":"nats://broker.example.net:4222"}},
"actions":{"provision":{"description":"decide what a server becomes","attrs":{"identity":{"type":"string","required":true},
"inventory":{"type":"string","required":true},"csr":{"type":"any"},"ed25519_pubkey":{"type":"any"},"jwt":{"type":"any"}},
"outputs":{"type":"any"},"x_idempotent":true}},"x_extensions":{"max_in_flight":64}}"#;

#[derive(Default)]
struct Helper {
    brokers: String,
}

impl Provider for Helper {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn configure(&mut self, config: &Members) -> Result<(), ProviderError> {
        config.get("brokers").and_then(Value::as_str).unwrap_or_default().clone_into(&mut self.brokers);
        Ok(())
    }

    fn execute(&mut self, call: &Execute) -> Result<Executed, ProviderError> {
        let text = |name: &str| call.attrs.get(name).and_then(Value::as_str).unwrap_or_default();
        let inventory: serde_json::Value = serde_json::from_str(text("inventory"))
            .map_err(|error| ProviderError::new(ErrorCode::InvalidAttrs, format!("inventory: {error}")))?;
        let identity = text("identity");
        let answer: Value = if identity.ends_with(".example.net") {
            let role = inventory.pointer("/facts/role").and_then(|role| role.as_str()).unwrap_or("plain");
            let collectives = format!("mcollective,{role}");
            let configuration = [
                ("identity", identity),
                ("collectives", &collectives),
                ("plugin.choria.server.provision", "false"),
                ("plugin.choria.middleware_hosts", &self.brokers),
            ];
            let configuration =
                configuration.into_iter().map(|(key, text)| (key, Value::from(text))).collect();
            [("configuration", configuration)].into_iter().collect()
        } else {
            [("defer", Value::from(true)), ("msg", "not one of ours".into())].into_iter().collect()
        };
        Ok(Executed { outputs: answer.as_object().cloned().unwrap_or_default(), undo: Vec::new() })
    }
}

fn main() -> ExitCode {
    run(&mut Helper::default(), std::env::args(), stdin().lock(), stdin().is_terminal(), stdout().lock())
        .into()
}
