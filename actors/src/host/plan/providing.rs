//! What providers do for a host in its cycle, and that it is taken back when the cycle fails for good.

use std::collections::BTreeMap;

use quartermaster_proto::provider::{Limits, Members, Value};
use quartermaster_proto::text::escape_bounded;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::super::error::HostError;
use super::super::messages::Ending;
use super::super::steps::Step;
use super::super::terms::{At, Effect};
use super::{Plan, Stop};
use crate::steps::{Ended, Taken};

/// The bounds of what a host or a helper said, read once more.
const LIMITS: Limits = Limits { max_bytes: usize::MAX, max_depth: 80, max_items: 1_000_000 };
/// The longest list of what was not taken back, in bytes.
const MAX_LEFT: usize = 300;

impl Plan {
    /// The same, for a host of which an earlier cycle has left steps.
    #[must_use]
    pub const fn with_steps(mut self, open: bool) -> Self {
        self.steps_open = open;
        self
    }

    /// Steps of this place are to be done.
    pub(super) fn run_steps(&mut self) -> Effect {
        self.steps_open = true;
        let steps = &self.settings.steps;
        let specs = if self.step == Step::Before { &steps.before } else { &steps.after };
        // A cycle that goes on has what its earlier part kept.
        let roots = self.inventory.is_some().then(|| self.roots());
        Effect::RunSteps { step: self.step, specs: specs.clone(), roots }
    }

    pub(super) fn stepped(&mut self, ended: Ended, at: At) -> Result<Effect, Stop> {
        match ended {
            Ended::AllDone => self.enter_after(self.step, at),
            Ended::Stopped if self.committed => Err(HostError::Barred.into()),
            Ended::Stopped => Err(Stop(Ending::Interrupted)),
            Ended::Failed { step, error, unknown: false } => Err(HostError::Provided { step, error }.into()),
            Ended::Failed { step, error, unknown: true } => {
                Err(HostError::ProvidedUnknown { step, error }.into())
            }
        }
    }

    /// The cycle ends; what providers did is taken back first, unless the host is provisioned or the next cycle goes on with it.
    pub(super) fn end(&mut self, ending: Ending, at: At) -> Effect {
        let goes_on = self.reply_lost && self.committed && matches!(ending, Ending::Failed { .. });
        if !self.steps_open || goes_on || at.barred || ending == Ending::Provisioned {
            return Effect::Finish(ending);
        }
        self.steps_open = false;
        self.step = Step::TakeBack;
        self.tries = 1;
        let why = ending.error().map_or_else(|| ending.name().to_owned(), ToOwned::to_owned);
        self.ending = Some(ending);
        Effect::TakeBack { why }
    }

    /// An earlier cycle has left something to be taken back: that is all there is to do now.
    pub(super) fn take_back(&mut self, at: At) -> Effect {
        if at.barred {
            return Effect::Finish(Ending::Interrupted);
        }
        self.steps_open = true;
        self.committed = false;
        self.end(Ending::TakenBack, at)
    }

    /// What there was to be taken back was tried.
    pub(super) fn taken(&mut self, taken: &Taken) -> Effect {
        let ending = self.ending.take().unwrap_or(Ending::Interrupted);
        if taken.left.is_empty() || taken.stopped {
            // A walk that was told to stop goes on in the next cycle.
            let stopped = taken.stopped && ending == Ending::TakenBack;
            return Effect::Finish(if stopped { Ending::Interrupted } else { ending });
        }
        let left: Vec<String> = taken.left.iter().map(ToString::to_string).collect();
        let left = escape_bounded(&left.join("; "), MAX_LEFT);
        let first = ending.error().map(ToOwned::to_owned);
        let error = HostError::NotTakenBack { first, left, asks_operator: taken.asks_operator };
        let Stop(ending) = error.into();
        Effect::Finish(ending)
    }

    /// What steps may refer to.
    fn roots(&self) -> Members {
        [("server".to_owned(), self.server_root()), ("helper".to_owned(), self.helper_root())].into()
    }

    fn server_root(&self) -> Value {
        let inventory = self.inventory.as_ref();
        let raw = inventory.and_then(|inventory| Value::from_json(inventory.raw.get(), &LIMITS).ok());
        let facts = raw.as_ref().and_then(Value::as_object).and_then(|raw| raw.get("facts")).cloned();
        let claims = self.claims.as_ref().and_then(|claims| claims.helper_json().ok());
        let mut server = Members::new();
        let mut put = |name: &str, value: Value| server.insert(name.to_owned(), value);
        put("identity", self.identity.as_str().into());
        put("version", inventory.map_or("", |inventory| inventory.version.as_str()).into());
        put("facts", facts.unwrap_or_else(Value::empty));
        put("inventory", raw.unwrap_or_else(Value::empty));
        if let Some(csr) = &self.csr {
            put("csr", read(csr));
        }
        if let Some(pubkey) = &self.pubkey {
            put("ed25519_pubkey", read(pubkey));
        }
        if let Some(claims) = claims {
            put("jwt", Value::from_json(claims.get(), &LIMITS).unwrap_or_default());
        }
        Value::Object(server)
    }

    fn helper_root(&self) -> Value {
        let Some(reply) = self.decision.as_ref().map(|kept| kept.0.as_ref()) else { return Value::empty() };
        let map = |map: &BTreeMap<String, String>| -> Value {
            map.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect()
        };
        [
            ("defer", reply.defer.into()),
            ("shutdown", reply.shutdown.into()),
            ("msg", reply.msg.as_str().into()),
            ("key", reply.key.as_ref().map_or("", |key| key.expose_secret()).into()),
            ("certificate", reply.certificate.as_str().into()),
            ("ca", reply.ca.as_str().into()),
            ("ssldir", reply.ssldir.as_str().into()),
            ("configuration", map(&reply.configuration)),
            ("action_policies", map(&reply.action_policies)),
            ("opa_policies", map(&reply.opa_policies)),
            ("upgrade", reply.upgrade.as_str().into()),
        ]
        .into_iter()
        .collect()
    }
}

fn read(from: &impl Serialize) -> Value {
    let text = zeroize::Zeroizing::new(serde_json::to_string(from).unwrap_or_default());
    Value::from_json(&text, &LIMITS).unwrap_or_default()
}
