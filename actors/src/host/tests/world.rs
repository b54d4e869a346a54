//! A made-up host, helper and vault for the plan to talk with.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ed25519_dalek::{Signer, SigningKey};
use quartermaster_proto::choria::csr::deny_pattern;
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::token::parse_provisioning;
use quartermaster_proto::helper::decode_reply;
use quartermaster_proto::provider::Members;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::host::messages::{Ending, Kept};
use crate::host::plan::Plan;
use crate::host::resume::Resume;
use crate::host::steps::{Features, STEPS, Step};
use crate::host::terms::{
    At, CallFailure, Effect, HelperFailure, Input, PlanSettings, SealedForHost, SiteSteps,
};
use crate::steps::{Ended, Left, Taken};

pub(super) const NONCE: &str = "f1b90c7379f64f9fa59ba0c62730bf5d";
pub(super) const ECDH: &str = "c25fab933b16b2a4589e2c2d297669b818c82881f2f9bfd08cb8fd298924a41b";
pub(super) const DECISION: &str =
    r#"{"configuration":{"identity":"web1.example.net","plugin.choria.server.provision":"false"}}"#;

/// How the made-up host answers one try of a step.
#[derive(Clone)]
pub(super) enum Says {
    Data(Value),
    Refuses(&'static str),
    Nothing,
    Unsent,
    TooLarge,
    Garbage,
}

pub(super) struct World {
    pub(super) features: Features,
    pub(super) repository: Option<String>,
    pub(super) optional: bool,
    pub(super) says: HashMap<Step, Vec<Says>>,
    pub(super) helper: Result<String, HelperFailure>,
    pub(super) kept: Option<Kept>,
    pub(super) resume: Option<Resume>,
    /// Paused from this step on: the step itself has begun.
    pub(super) pause_at: Option<Step>,
    pub(super) bar_at: Option<Step>,
    pub(super) conflict_at: Option<Step>,
    pub(super) late_key_at: Option<Step>,
    pub(super) late_keys_for_ever: bool,
    pub(super) token_ok: bool,
    /// How providers' steps of a place end; all done if it is not here.
    pub(super) steps_end: HashMap<Step, Ended>,
    /// An earlier cycle has left steps.
    pub(super) steps_open: bool,
    pub(super) left: Vec<Left>,
}

/// What happened, and how it ended.
pub(super) struct Story {
    pub(super) asked: Vec<String>,
    pub(super) waits: Vec<Duration>,
    pub(super) data: HashMap<Step, Value>,
    pub(super) ending: Ending,
    /// What the next cycle had to make good when `configure` went out.
    pub(super) unfinished: Option<Resume>,
    pub(super) reply_lost: bool,
}

pub(super) fn recorded(file: &str, action: &str) -> Value {
    let path = format!("{}/../proto/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| {
            quartermaster_proto::choria::envelope::open_reply(line["data"].as_str()?.as_bytes()).ok()
        })
        .filter_map(|open| serde_json::from_slice::<Value>(&open.reply.payload).ok())
        .find(|reply| reply["action"] == action)
        .unwrap_or_else(|| panic!("no reply of {action} in {file}"))["data"]
        .clone()
}

pub(super) fn all() -> Features {
    Features { pki: false, jwt: true, ed25519: true, upgrades: true, steps: false }
}

pub(super) fn world(features: Features) -> World {
    World {
        features,
        repository: Some("http://updates.example.net".to_owned()),
        optional: false,
        says: HashMap::new(),
        helper: Ok(DECISION.to_owned()),
        kept: None,
        resume: None,
        pause_at: None,
        bar_at: None,
        conflict_at: None,
        late_key_at: None,
        late_keys_for_ever: false,
        token_ok: true,
        steps_end: HashMap::new(),
        steps_open: false,
        left: Vec::new(),
    }
}

impl World {
    pub(super) fn on(mut self, step: Step, says: impl IntoIterator<Item = Says>) -> Self {
        self.says.insert(step, says.into_iter().collect());
        self
    }

    pub(super) fn helper(mut self, reply: &str) -> Self {
        self.helper = Ok(reply.to_owned());
        self
    }

    pub(super) fn usual(step: Step) -> Value {
        match step {
            Step::Jwt => json!({"jwt": recorded("v1-insecure.jsonl", "jwt")["jwt"], "ecdh_public": ECDH}),
            Step::Gen25519 => {
                let key = SigningKey::from_bytes(&[7; 32]);
                json!({
                    "public_key": hex::encode(key.verifying_key().as_bytes()),
                    "directory": "/etc/choria",
                    "signature": hex::encode(key.sign(NONCE.as_bytes()).to_bytes()),
                })
            }
            Step::Inventory => recorded("v1-insecure.jsonl", "inventory"),
            Step::Gencsr => recorded("v1-x509.jsonl", "gencsr"),
            _ => json!({"message": "done"}),
        }
    }

    pub(super) fn answer(&mut self, step: Step) -> Input {
        let queue = self.says.entry(step).or_default();
        let says = if queue.is_empty() { Says::Data(Self::usual(step)) } else { queue.remove(0) };
        let body = |code: u8, text: &str, data: Value| {
            Ok(json!({"action": step.name(), "statuscode": code, "statusmsg": text, "data": data})
                .to_string()
                .into())
        };
        Input::Replied(match says {
            Says::Data(data) => body(0, "OK", data),
            Says::Refuses(text) => body(1, text, json!({})),
            Says::Garbage => Ok(b"{\"action\"".to_vec()),
            Says::Nothing => Err(CallFailure {
                reason: "no reply within 22s".into(),
                again: true,
                silent: true,
                sent: true,
            }),
            Says::TooLarge => Err(CallFailure {
                reason: "2 MiB over the limit of 1 MiB".into(),
                again: false,
                silent: false,
                sent: false,
            }),
            Says::Unsent => Err(CallFailure {
                reason: "there is no connection to the broker".into(),
                again: true,
                silent: false,
                sent: false,
            }),
        })
    }

    pub(super) fn play(mut self) -> Story {
        let settings = PlanSettings {
            steps: SiteSteps::default(),
            features: self.features,
            token: SecretString::from("s3cret"),
            deny: vec![deny_pattern(r"\.privileged\.choria$").unwrap()],
            upgrades_repository: self.repository.take(),
            upgrades_optional: self.optional,
        };
        let identity = Identity::parse("web1.example.net").unwrap();
        let mut plan = Plan::new(Arc::new(settings), identity, NONCE.to_owned(), self.kept.take())
            .resuming(self.resume.take())
            .with_steps(self.steps_open);
        let mut now = Instant::now();
        let mut story = Story {
            asked: vec![],
            waits: vec![],
            data: HashMap::new(),
            ending: Ending::Interrupted,
            unfinished: None,
            reply_lost: false,
        };
        let mut input = Input::Begin;
        let mut late_keys = 0;
        loop {
            if self.late_key_at == Some(plan.step()) && (late_keys == 0 || self.late_keys_for_ever) {
                late_keys += 1;
            }
            let after = |step: Option<Step>| {
                let reached = STEPS.iter().position(|spec| Some(spec.step) == step);
                let current = STEPS.iter().position(|spec| spec.step == plan.step());
                reached.is_some() && reached <= current
            };
            let at = At {
                now,
                luck: 0.5,
                paused: after(self.pause_at),
                barred: after(self.bar_at),
                conflict: after(self.conflict_at),
                late_keys,
            };
            match plan.handle(input, at) {
                Effect::Call { step, agent, action, data } => {
                    story.asked.push(format!("{agent}#{action}"));
                    story.data.insert(step, serde_json::from_str(&data).unwrap());
                    if step == Step::Configure {
                        story.unfinished = plan.unfinished();
                    }
                    input = self.answer(step);
                }
                Effect::VerifyToken { jwt } => {
                    story.asked.push("verify".into());
                    let claims = parse_provisioning(&jwt).map(Box::new).map_err(|error| error.to_string());
                    input = Input::Verified(if self.token_ok { claims } else { Err("expired".into()) });
                }
                Effect::RunHelper { input: stdin } => {
                    story.asked.push("helper".into());
                    story.data.insert(Step::Helper, serde_json::from_slice(&stdin).unwrap());
                    let reply = self.helper.clone();
                    input =
                        Input::Decided(reply.map(|text| Box::new(decode_reply(text.as_bytes()).unwrap())));
                }
                Effect::IssueToken(order) => {
                    story.asked.push(format!(
                        "issue for {} in {}",
                        order.identity,
                        order.collectives.join("+")
                    ));
                    input = Input::Issued(Ok(SecretString::from("server.jwt.text")));
                }
                Effect::SealKey { host_public, .. } => {
                    story.asked.push(format!("seal for {}", &host_public[..4]));
                    input =
                        Input::Sealed(Ok(SealedForHost { pem: "sealed".into(), ecdh_public: "ours".into() }));
                }
                Effect::RunSteps { step, roots, .. } => {
                    story.asked.push(step.name().into());
                    story.data.insert(step, as_json(roots));
                    input = Input::Stepped(self.steps_end.get(&step).cloned().unwrap_or(Ended::AllDone));
                }
                Effect::TakeBack { why } => {
                    story.asked.push(format!("take back: {why}"));
                    let left = self.left.clone();
                    let asks_operator = left.iter().any(Left::asks_operator);
                    input = Input::TakenBack(Taken { undone: 1, left, asks_operator, stopped: false });
                }
                Effect::WakeAt(when) => {
                    story.waits.push(when - now);
                    now = when;
                    input = Input::Due;
                }
                Effect::Finish(ending) => {
                    story.ending = ending;
                    story.reply_lost = plan.reply_lost();
                    return story;
                }
            }
        }
    }
}

fn as_json(roots: Option<Members>) -> Value {
    roots.map_or(Value::Null, |roots| {
        let json = quartermaster_proto::provider::Value::Object(roots).to_json();
        serde_json::from_str(&json).unwrap()
    })
}

pub(super) fn plain() -> Features {
    Features::default()
}

pub(super) fn pki() -> Features {
    Features { pki: true, jwt: true, ..Features::default() }
}

pub(super) fn cause(story: &Story) -> &'static str {
    match &story.ending {
        Ending::Failed { cause, .. } => cause,
        other => panic!("did not fail: {other:?}"),
    }
}

pub(super) fn error(story: &Story) -> &str {
    match &story.ending {
        Ending::Failed { error, .. } => error,
        other => panic!("did not fail: {other:?}"),
    }
}
