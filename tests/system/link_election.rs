//! One leader at a time, through the bucket and the subjects that a Choria broker opens to provisioners.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, kv};
use quartermaster_actors::control::{LeadingUntil, RunState, RunStateReceiver};
use quartermaster_actors::election::{ElectionHandle, ElectionState, ElectorSettings};
use quartermaster_actors::metrics::{Fact, Recorder};
use quartermaster_actors::supervise::{
    Ending, Force, Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy,
};
use tokio::sync::watch;

use super::support::link::{Link, TestCredentials, at};
use super::support::{Broker, BrokerOptions, eventually};

/// How long a value lives in the test's bucket; a real broker says a minute.
const TTL: Duration = Duration::from_secs(3);

/// Two accounts joined as in a Choria broker: nothing of JetStream is reachable but the two subjects of the election.
const ACCOUNTS: &str = r#"
accounts {
  choria {
    jetstream: enabled
    users: [ { user: choria, password: choria } ]
    exports: [ { service: "$JS.API.>" }, { service: "$KV.>" } ]
  }
  provisioning {
    users: [ { user: provisioner, password: s3cret } ]
    imports: [
      { service: { account: choria, subject: "$JS.API.STREAM.INFO.KV_CHORIA_LEADER_ELECTION" }, to: "choria.streams.STREAM.INFO.KV_CHORIA_LEADER_ELECTION" }
      { service: { account: choria, subject: "$KV.CHORIA_LEADER_ELECTION.provisioner" }, to: "choria.streams.$KV.CHORIA_LEADER_ELECTION.provisioner" }
    ]
  }
}
"#;

/// One instance: a link, the run state and an elector.
struct Member {
    link: Link,
    state: RunStateReceiver,
    election: ElectionHandle,
    facts: Arc<std::sync::Mutex<Vec<Fact>>>,
    overseer: OverseerHandle,
}

impl Member {
    async fn start(broker: &Broker, name: &str) -> Self {
        let credentials = TestCredentials::default();
        credentials.set_password("provisioner", "s3cret");
        let link = Link::start(credentials, |settings| settings.servers = at(&[broker]));
        link.ready().await;
        let (state, receiver) = watch::channel(RunState { leading: false, ..RunState::working() });
        let lead = Arc::new(move |leading| state.send_modify(|state| state.leading = leading));
        let (recorder, facts) = Recorder::tapped().unwrap();
        let until = LeadingUntil::new();
        let mut settings =
            ElectorSettings::peer(name, link.handle.clone(), receiver.clone(), lead, until, recorder);
        settings.scale = 0.1;
        settings.limit = Duration::from_secs(2);
        let election = ElectionHandle::new(settings);
        let policy = RestartPolicy::new(Duration::from_millis(10), Duration::from_secs(1), 0.0).unwrap();
        let owned = Owned::new(election.slot().clone(), policy, election.factory());
        let overseer = Overseer::launch(OverseerSettings::default(), vec![Box::new(owned)], Arc::new(|_| {}));
        Self { link, state: receiver, election, facts, overseer }
    }

    fn leads(&self) -> bool {
        self.state.borrow().leading
    }

    fn leader(&self) -> Option<String> {
        self.election.snapshot().leader.map(|leader| leader.name)
    }

    async fn stop(self) {
        self.overseer.stop(Duration::from_secs(5)).await;
        self.link.stop().await;
    }
}

async fn create_bucket(broker: &Broker) -> kv::Store {
    create_bucket_that_lives(broker, TTL).await
}

async fn create_bucket_that_lives(broker: &Broker, lives: Duration) -> kv::Store {
    let options =
        async_nats::ConnectOptions::with_user_and_password("choria".to_owned(), "choria".to_owned());
    let client = options.connect(broker.url()).await.unwrap();
    let config = kv::Config {
        bucket: "CHORIA_LEADER_ELECTION".to_owned(),
        storage: jetstream::stream::StorageType::File,
        max_age: lives,
        max_value_size: 1024,
        ..kv::Config::default()
    };
    jetstream::new(client).create_key_value(config).await.unwrap()
}

fn cluster() -> BrokerOptions {
    BrokerOptions::new().jetstream().extra(ACCOUNTS)
}

#[actix::test]
async fn one_of_two_leads_and_the_other_takes_over_when_it_is_gone() {
    let Some(broker) = cluster().start() else { return };
    let store = create_bucket(&broker).await;
    let first = Member::start(&broker, "p1.example.net").await;
    eventually("the first one leads", || first.leads()).await;
    let second = Member::start(&broker, "p2.example.net").await;
    assert_eq!(store.get("provisioner").await.unwrap().as_deref(), Some(b"p1.example.net".as_slice()));
    // Several lives of the value later nothing has changed.
    tokio::time::sleep(TTL * 2).await;
    assert!(first.leads() && !second.leads());
    first.stop().await;
    eventually("the second one leads", || second.leads()).await;
    assert_eq!(store.get("provisioner").await.unwrap().as_deref(), Some(b"p2.example.net".as_slice()));
}

#[actix::test]
async fn a_leader_that_stops_is_followed_at_once_and_others_know_it_by_name() {
    let Some(broker) = cluster().start() else { return };
    let store = create_bucket_that_lives(&broker, Duration::from_mins(1)).await;
    let first = Member::start(&broker, "p1.example.net").await;
    eventually("the first one leads", || first.leads()).await;
    let second = Member::start(&broker, "p2.example.net").await;
    for member in [&first, &second] {
        eventually("the leader is known", || member.leader().as_deref() == Some("p1.example.net")).await;
    }
    let written = store.entry("provisioner").await.unwrap().unwrap().revision;
    let stopped = std::time::Instant::now();
    assert!(first.election.hand_over(Duration::from_secs(5)).await);
    eventually("the first one leads no more", || !first.leads()).await;
    eventually("the second one leads", || second.leads()).await;
    assert!(stopped.elapsed() < Duration::from_secs(30), "long before the key expires");
    let entry = store.entry("provisioner").await.unwrap().unwrap();
    assert_eq!(entry.value.as_ref(), b"p2.example.net");
    assert!(entry.revision > written);
    eventually("the new leader is known", || second.leader().as_deref() == Some("p2.example.net")).await;
}

#[actix::test]
async fn a_leader_that_somebody_overwrites_stops_at_once() {
    let Some(broker) = cluster().start() else { return };
    let store = create_bucket(&broker).await;
    let member = Member::start(&broker, "p1.example.net").await;
    eventually("it leads", || member.leads()).await;
    store.put("provisioner", "intruder".into()).await.unwrap();
    eventually("it has stopped leading", || !member.leads()).await;
    let lost = |fact: &Fact| matches!(fact, Fact::LeadershipLost);
    assert!(member.facts.lock().unwrap().iter().any(lost));
    eventually("it leads again once the intruder's value has expired", || member.leads()).await;
}

#[actix::test]
async fn a_restart_of_the_broker_costs_leadership_only_for_a_moment() {
    let Some(mut broker) = cluster().start() else { return };
    create_bucket(&broker).await;
    let member = Member::start(&broker, "p1.example.net").await;
    eventually("it leads", || member.leads()).await;
    broker.stop();
    eventually("without a broker it does not lead", || !member.leads()).await;
    broker.restart();
    eventually("it leads again", || member.leads()).await;
}

#[actix::test]
async fn a_bucket_that_comes_late_is_taken_up() {
    let Some(broker) = cluster().start() else { return };
    let member = Member::start(&broker, "p1.example.net").await;
    eventually("it says what is missing", || {
        let trouble = member.election.snapshot().trouble;
        trouble.is_some_and(|trouble| trouble.contains("CHORIA_LEADER_ELECTION"))
    })
    .await;
    assert!(!member.leads());
    create_bucket(&broker).await;
    eventually("it leads", || member.leads()).await;
    let snapshot = member.election.snapshot();
    assert_eq!((snapshot.state, snapshot.trouble), (ElectionState::Leader, None));
}

#[actix::test]
async fn an_elector_that_dies_gives_leadership_up_and_its_next_life_wins_it_again() {
    let Some(broker) = cluster().start() else { return };
    create_bucket(&broker).await;
    let member = Member::start(&broker, "p1.example.net").await;
    eventually("it leads", || member.leads()).await;
    for ending in [Ending::Panic, Ending::Stop] {
        member.election.slot().addr().expect("it lives").do_send(Force(ending));
        eventually("leadership is given up", || !member.leads()).await;
        eventually("it leads again", || member.leads()).await;
    }
}
