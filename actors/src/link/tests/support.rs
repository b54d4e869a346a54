use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use quartermaster_proto::choria::{Generation, Identity};
use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use crate::link::fake::{FakeBroker, FakeCredentials, FakeResolver};
use crate::link::{
    BrokerLink, Call, ConflictFlag, Credentials, LinkHandle, LinkParts, LinkSettings, ServerAddress, Servers,
};
use crate::metrics::Fact;
use crate::supervise::{Birth, ChildExited, ChildId, ExitNotice, Pulse};

pub const HOST: &str = "n1.example.net";

/// An owner that only hears of ends.
struct Owner;

impl Actor for Owner {
    type Context = Context<Self>;
}

impl Handler<ChildExited> for Owner {
    type Result = ();

    fn handle(&mut self, _: ChildExited, _: &mut Self::Context) {}
}

/// A link over a fake broker.
pub struct Rig {
    pub broker: FakeBroker,
    pub resolver: FakeResolver,
    pub link: LinkHandle,
    facts: Arc<Mutex<Vec<Fact>>>,
    owner: actix::Addr<Owner>,
}

impl Rig {
    pub fn start(change: impl FnOnce(&mut LinkSettings)) -> Self {
        Self::with_credentials(Arc::new(FakeCredentials::new("choria=test")), change)
    }

    pub fn with_credentials(
        credentials: Arc<dyn Credentials>,
        change: impl FnOnce(&mut LinkSettings),
    ) -> Self {
        let mut settings = LinkSettings::new(
            Servers::List(vec![ServerAddress::new("broker.example.net", 4222)]),
            "provisioner.example.net",
            Generation::V1,
        );
        change(&mut settings);
        let broker = FakeBroker::new();
        let resolver = FakeResolver::default();
        let facts = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&facts);
        let parts = LinkParts {
            credentials,
            broker: Arc::new(broker.clone()),
            resolver: Arc::new(resolver.clone()),
            clock: Arc::new(|| WallClock::from_seconds(1_795_976_869)),
            random: Arc::new(rand::random),
            random_u32: Arc::new(|| u32::MAX / 2),
            facts: Arc::new(move |fact| heard.lock().unwrap().push(fact)),
        };
        let rig =
            Self { broker, resolver, link: LinkHandle::new(settings, parts), facts, owner: Owner.start() };
        rig.live();
        rig
    }

    /// Begins a life, as the owner would.
    pub fn live(&self) -> actix::Addr<BrokerLink> {
        let factory = self.link.factory();
        let child = ChildId { name: "link", generation: 1 };
        let birth =
            Birth { notice: ExitNotice::new(child, self.owner.clone().recipient()), pulse: Pulse::new() };
        let addr = BrokerLink::create(move |ctx| factory(birth, ctx));
        self.link.slot().set(addr.clone());
        addr
    }

    pub async fn ready(&self) {
        assert!(self.link.ready(Duration::from_mins(10)).await, "the link connects");
    }

    pub fn facts(&self) -> Vec<Fact> {
        self.facts.lock().unwrap().clone()
    }

    /// What was said about the connection.
    pub fn said(&self) -> Vec<String> {
        let said = |fact| match fact {
            Fact::LinkChanged { detail, .. } => Some(detail),
            _ => None,
        };
        self.facts().into_iter().filter_map(said).collect()
    }
}

pub fn jwt_call(conflict: &ConflictFlag) -> Call {
    call_to(HOST, conflict)
}

pub fn call_to(host: &str, conflict: &ConflictFlag) -> Call {
    Call {
        identity: Identity::parse(host).unwrap(),
        agent: "choria_provision",
        action: "jwt",
        data: Zeroizing::new(r#"{"token":"t0ken"}"#.to_owned()),
        conflict: conflict.clone(),
    }
}
