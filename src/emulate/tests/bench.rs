//! One server, and a provisioner's side to ask it from.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::choria::envelope::{
    Proof, Request, open_reply, open_request, request_body, seal_request, v1_id,
};
use quartermaster_proto::choria::filter::Filter;
use quartermaster_proto::choria::{Generation, Identity, ksuid::Ksuid, rpc};
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};

use crate::emulate::fault::FaultPlan;
use crate::emulate::fleet::FleetSettings;
use crate::emulate::network::Network;
use crate::emulate::server::{Action, Note, Server};

pub const NAME: &str = "web1.example.net";
pub const NOW: i64 = 1_795_976_740;

/// The bench.
pub struct Bench {
    pub server: Server,
    pub generation: Generation,
    pub now: WallClock,
    asked: u8,
    pub caller: &'static str,
    /// Everything the last call led to.
    pub actions: Vec<Action>,
}

impl Bench {
    pub fn new(generation: Generation, upgradable: bool, faults: &str) -> Self {
        Self::seeded(1, generation, upgradable, faults)
    }

    pub fn seeded(seed: u64, generation: Generation, upgradable: bool, faults: &str) -> Self {
        let network = Network::generate(1, "s3cret", generation, upgradable).unwrap();
        let mut settings = FleetSettings::new(network, "nats://localhost:4222", 1);
        settings.seed = seed;
        let faults = FaultPlan::parse(faults).unwrap().draw(settings.seed, NAME);
        let mut server = Server::new(Identity::parse(NAME).unwrap(), Arc::new(settings.profile()), faults);
        let now = WallClock::from_seconds(NOW);
        let actions = server.start(now);
        Self { server, generation, now, asked: 0, caller: "choria=provisioner", actions }
    }

    pub fn v1() -> Self {
        Self::new(Generation::V1, true, "")
    }

    pub fn faulty(faults: &str) -> Self {
        Self::new(Generation::V1, true, faults)
    }

    pub fn request(&mut self, agent: &str, payload: &[u8]) -> Request {
        self.asked += 1;
        let id = match self.generation {
            Generation::V1 => v1_id([self.asked; 16]),
            Generation::V2 => Ksuid::new(NOW, [self.asked; 16]).to_string(),
        };
        Request {
            id,
            sender: "provisioner.example.net".to_owned(),
            caller: self.caller.to_owned(),
            collective: "provisioning".to_owned(),
            agent: agent.to_owned(),
            ttl: 60,
            time: self.now,
            filter: Filter::for_agent(agent),
            payload: payload.to_vec().into(),
        }
    }

    /// Sends a request and gives the frames that come back.
    pub fn send(&mut self, request: &Request) -> Vec<Vec<u8>> {
        let body = request_body(self.generation, request).unwrap();
        let proof = match self.generation {
            Generation::V1 => Proof::Insecure,
            Generation::V2 => Proof::V2 { signature: vec![7; 64], caller_jwt: "a.b.c".to_owned() },
        };
        let frame =
            seal_request(self.generation, &body, &proof, "provisioning.reply.x.y", "p", None).unwrap();
        self.actions = self.server.receive(&open_request(&frame).unwrap(), self.now);
        let replies = self.actions.iter().filter_map(|action| match action {
            Action::Publish { subject, payload, .. } if subject == "provisioning.reply.x.y" => {
                Some(payload.clone())
            }
            _ => None,
        });
        replies.collect()
    }

    /// Calls an action and gives status, text and outputs; none when nothing was answered.
    pub fn call(&mut self, agent: &str, action: &str, data: &Value) -> Option<(u64, String, Value)> {
        let payload = rpc::encode_request(agent, action, &data.to_string()).unwrap();
        let request = self.request(agent, &payload);
        let frames = self.send(&request);
        let reply = open_reply(frames.first()?).unwrap();
        assert_eq!(reply.reply.request, request.id);
        assert_eq!(reply.reply.sender, NAME);
        assert_eq!(reply.transport_sender, NAME);
        assert_eq!(reply.reply.agent, agent);
        let reply: Value = serde_json::from_slice(&reply.reply.payload).unwrap();
        assert_eq!(reply["action"], action);
        Some((
            reply["statuscode"].as_u64().unwrap(),
            reply["statusmsg"].as_str().unwrap().to_owned(),
            reply["data"].clone(),
        ))
    }

    pub fn provision(&mut self, action: &str, data: Value) -> Option<(u64, String, Value)> {
        let mut data = data;
        if data.get("token").is_none() {
            data["token"] = json!("s3cret");
        }
        self.call("choria_provision", action, &data)
    }

    pub fn done(&mut self, action: &str, data: Value) -> Value {
        let (code, text, outputs) = self.provision(action, data).expect("no reply");
        assert_eq!((code, text.as_str()), (0, "OK"), "{action}");
        outputs
    }

    pub fn refused(&mut self, action: &str, data: Value, expected: &str) {
        let (code, text, outputs) = self.provision(action, data).expect("no reply");
        assert_eq!((code, text.as_str(), outputs), (1, expected, json!({})), "{action}");
    }

    pub fn configure(&mut self, config: &Value) -> Value {
        self.done("configure", json!({"config": config.to_string()}))
    }

    pub fn wake(&mut self, seconds: i64) {
        self.now = self.now.plus_seconds(seconds);
        self.actions = self.server.wake(self.now);
    }

    pub fn delay(&self) -> Option<Duration> {
        self.actions
            .iter()
            .find_map(|action| if let Action::Wake(delay) = action { Some(*delay) } else { None })
    }

    /// Subjects of everything published, in order.
    pub fn published(&self) -> Vec<&str> {
        let subjects = self.actions.iter().filter_map(|action| match action {
            Action::Publish { subject, .. } => {
                Some(subject.strip_prefix("choria.lifecycle.event.").unwrap_or("reply"))
            }
            _ => None,
        });
        subjects.collect()
    }

    pub fn noted(&self, note: Note) -> bool {
        self.actions.contains(&Action::Note(note))
    }
}

/// A configuration that ends provisioning.
pub fn plain_config() -> Value {
    json!({"plugin.choria.server.provision": "false", "plugin.security.provider": "file", "collectives": "mcollective,eu"})
}
