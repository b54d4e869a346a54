//! A scripted provisioner: just enough to ask emulated servers things, one request at a time.

use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures::StreamExt as _;
use quartermaster_proto::choria::envelope::{
    OpenReply, Proof, Request, open_reply, request_body, seal_request, v1_id,
};
use quartermaster_proto::choria::filter::Filter;
use quartermaster_proto::choria::ksuid::Ksuid;
use quartermaster_proto::choria::{Generation, discovery, rpc, subject};
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};

pub const PATIENCE: Duration = Duration::from_mins(1);
const CALLER: &str = "choria=provisioner.example.net";

pub struct Scripted {
    client: Client,
    replies: Subscriber,
    pub events: Subscriber,
    generation: Generation,
}

impl Scripted {
    pub async fn connect(url: &str, generation: Generation) -> Self {
        let client = async_nats::connect(url).await.unwrap();
        let prefix = subject::reply_prefix("provisioning", CALLER);
        let replies = client.subscribe(format!("{prefix}.>")).await.unwrap();
        let events = client.subscribe("choria.lifecycle.event.>").await.unwrap();
        client.flush().await.unwrap();
        Self { client, replies, events, generation }
    }

    async fn send(&mut self, agent: &str, subject: String, payload: Vec<u8>) {
        let nanos = time::OffsetDateTime::now_utc().unix_timestamp_nanos();
        let now = WallClock::from_nanos(i64::try_from(nanos).unwrap());
        let random = rand::random::<[u8; 16]>();
        let id = match self.generation {
            Generation::V1 => v1_id(random),
            Generation::V2 => Ksuid::new(now.seconds(), random).to_string(),
        };
        let request = Request {
            id: id.clone(),
            sender: "provisioner.example.net".to_owned(),
            caller: CALLER.to_owned(),
            collective: "provisioning".to_owned(),
            agent: agent.to_owned(),
            ttl: 60,
            time: now,
            filter: Filter::for_agent(if agent == "discovery" { "choria_provision" } else { agent }),
            payload: payload.into(),
        };
        let body = request_body(self.generation, &request).unwrap();
        let proof = match self.generation {
            Generation::V1 => Proof::Insecure,
            Generation::V2 => Proof::V2 { signature: vec![1; 64], caller_jwt: "a.b.c".to_owned() },
        };
        let reply_to = subject::reply("provisioning", CALLER, &id);
        let frame =
            seal_request(self.generation, &body, &proof, &reply_to, "provisioner.example.net", None).unwrap();
        self.client.publish(subject, frame.into()).await.unwrap();
    }

    pub async fn raw_reply(&mut self) -> OpenReply {
        let message = tokio::time::timeout(PATIENCE, self.replies.next()).await.expect("no reply").unwrap();
        assert_eq!(message.reply, None, "the NATS reply field stays empty");
        open_reply(&message.payload).unwrap()
    }

    /// Who answers a broadcast discovery, `expected` many.
    pub async fn discover(&mut self, expected: usize) -> Vec<String> {
        let payload = discovery::ping_payload(self.generation);
        self.send("discovery", subject::broadcast("provisioning", "discovery"), payload).await;
        let mut found = Vec::new();
        while found.len() < expected {
            let reply = self.raw_reply().await;
            assert_eq!(reply.reply.payload, discovery::PONG);
            found.push(reply.reply.sender);
        }
        found.sort();
        found
    }

    /// Calls an action and gives the whole RPC reply.
    pub async fn call(&mut self, identity: &str, agent: &str, action: &str, mut data: Value) -> Value {
        if agent == "choria_provision" {
            data["token"] = json!("s3cret");
        }
        let payload = rpc::encode_request(agent, action, &data.to_string()).unwrap();
        self.send(agent, format!("provisioning.node.{identity}"), payload.to_vec()).await;
        let reply = self.raw_reply().await;
        assert_eq!(reply.reply.sender, identity);
        serde_json::from_slice(&reply.reply.payload).unwrap()
    }

    /// The whole cycle of one server.
    pub async fn provision(&mut self, identity: &str, config: &Value) {
        for (agent, action, data) in [
            ("choria_provision", "jwt", json!({})),
            ("choria_provision", "gen25519", json!({"nonce": "aa8e4ffe2376421cb8d843293f6c8197"})),
            ("rpcutil", "inventory", json!({})),
            ("choria_provision", "configure", json!({"config": config.to_string()})),
            ("choria_provision", "restart", json!({"splay": 1})),
        ] {
            let reply = self.call(identity, agent, action, data).await;
            assert_eq!(reply["statuscode"], 0, "{identity} {action}: {reply}");
        }
    }

    /// Waits for the startup events of that many servers: from then on they can be asked.
    pub async fn announced(&mut self, servers: usize) -> Vec<String> {
        let mut announced = Vec::new();
        for _ in 0..servers {
            let (subject, identity) = self.event().await;
            assert_eq!(subject, "startup.provision_mode_server");
            announced.push(identity);
        }
        announced.sort();
        announced
    }

    /// The next lifecycle event: its subject's last two words and the identity.
    pub async fn event(&mut self) -> (String, String) {
        let message = tokio::time::timeout(PATIENCE, self.events.next()).await.expect("no event").unwrap();
        let event = quartermaster_proto::choria::event::decode(&message.payload).unwrap();
        (message.subject.trim_start_matches("choria.lifecycle.event.").to_owned(), event.identity)
    }
}
