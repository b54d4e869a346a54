//! One leader among several processes: handed over, taken over, frozen, and without a bucket.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, kv};
use futures::StreamExt as _;
use quartermaster::emulate::{FleetHandle, FleetSettings};
use quartermaster_proto::choria::envelope::open_request;
use rustix::process::Signal;
use tempfile::TempDir;

use super::cluster_shared::shares;
use super::cluster_site::{Member, PATIENCE, members};
use super::prove_site::Site;
use super::support::{Broker, BrokerOptions, eventually_within};

/// Accounts as in a Choria broker, into one of which everybody here gets without a password.
pub const ACCOUNTS: &str = r#"
accounts {
  choria {
    jetstream: enabled
    users: [ { user: choria, password: choria } ]
    exports: [ { service: "$JS.API.>" }, { service: "$KV.>" } ]
  }
  provisioning {
    users: [ { user: anybody, password: anybody } ]
    imports: [
      { service: { account: choria, subject: "$JS.API.STREAM.INFO.KV_CHORIA_LEADER_ELECTION" }, to: "choria.streams.STREAM.INFO.KV_CHORIA_LEADER_ELECTION" }
      { service: { account: choria, subject: "$KV.CHORIA_LEADER_ELECTION.provisioner" }, to: "choria.streams.$KV.CHORIA_LEADER_ELECTION.provisioner" }
    ]
  }
}
no_auth_user: anybody
max_pending: 256MB
"#;

/// The bucket as a Choria broker makes it, with values that live this long.
pub async fn make_bucket(broker: &Broker, lives: Duration, replicas: usize) {
    let options = async_nats::ConnectOptions::with_user_and_password("choria".into(), "choria".into());
    let client = options.connect(broker.url()).await.unwrap();
    let config = kv::Config {
        bucket: "CHORIA_LEADER_ELECTION".to_owned(),
        max_age: lives,
        max_value_size: 1024,
        num_replicas: replicas,
        ..kv::Config::default()
    };
    let end = Instant::now() + PATIENCE;
    // Brokers that have only just met need a moment to agree.
    while let Err(error) = jetstream::new(client.clone()).create_key_value(config.clone()).await {
        assert!(Instant::now() < end, "{error}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn site(lives: Duration) -> Option<(Site, TempDir)> {
    let site = Site::with(BrokerOptions::new().jetstream().extra(ACCOUNTS))?;
    make_bucket(&site.broker, lives, 1).await;
    Some((site, tempfile::tempdir().unwrap()))
}

/// Everybody who asks anything of servers, one or all, from now on.
async fn askers(broker: &Broker) -> Arc<Mutex<Vec<String>>> {
    let client = async_nats::connect(broker.url()).await.unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    for subject in ["provisioning.node.>", "provisioning.broadcast.>"] {
        let mut requests = client.subscribe(subject).await.unwrap();
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Some(message) = requests.next().await {
                let sender = open_request(&message.payload).map(|open| open.request.sender);
                heard.lock().unwrap().push(sender.unwrap_or_default());
            }
        });
    }
    client.flush().await.unwrap();
    heard
}

/// The login of the emulated servers, whose token this broker does not know.
pub fn with_login(settings: &mut FleetSettings) {
    settings.user = Some(("anybody".to_owned(), "anybody".to_owned()));
    settings.lock_time = Duration::from_secs(1);
}

async fn provisioned(fleet: &FleetHandle) {
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_frozen_leader_that_wakes_sends_nothing_and_no_server_is_configured_by_two() {
    const TTL: Duration = Duration::from_secs(4);
    const SERVERS: usize = 20;
    let Some((site, dir)) = site(TTL).await else { return };
    let (go, begun) = (site.path("go"), site.path("begun"));
    let wait = "while [ ! -e {go} ]; do sleep 0.1; done";
    let lines = format!("echo x >> {}\n{wait}", begun.display()).replace("{go}", &go.display().to_string());
    site.helper_also(&lines);
    let yaml = format!("leader_election: true\nhelper_timeout: 60s\nworkers: {SERVERS}");
    let mut members = members(&site, &dir, 2, &yaml);
    members[0].start();
    members[0].becomes("leading").await;
    members[1].start();
    members[1].becomes("standby").await;
    let fleet = site.servers("web", SERVERS, with_login).await;
    eventually_within(PATIENCE, "all are in flight, each with its helper", || {
        fs::read_to_string(&begun).unwrap_or_default().lines().count() == SERVERS
    })
    .await;

    members[0].process().signal(Signal::STOP);
    tokio::time::sleep(2 * TTL).await;
    members[1].becomes("leading").await;
    fs::write(&go, "").unwrap();
    provisioned(&fleet).await;
    let askers = askers(&site.broker).await;
    members[0].process().signal(Signal::CONT);
    members[0].becomes("standby").await;
    eventually_within(PATIENCE, "the cycles of the first one have ended", || {
        let fleet = &members[0].process().status()["fleet"];
        fleet["in_flight"] == 0 && fleet["queued"] == 0
    })
    .await;
    assert!(members[0].log().contains("Lost leadership"));
    let mine = members[0].identity.clone();
    assert!(!askers.lock().unwrap().contains(&mine), "{mine} has sent something");
    assert_eq!(shares(&fleet).into_iter().collect::<Vec<_>>(), [(members[1].identity.clone(), SERVERS)]);
    assert_eq!(fleet.stats().repeated_configures, 0);
}

#[tokio::test]
async fn a_leader_that_is_stopped_is_followed_within_seconds_by_a_standby_that_works() {
    let Some((site, dir)) = site(Duration::from_mins(1)).await else { return };
    let mut members = members(&site, &dir, 2, "leader_election: true");
    members[0].start();
    members[0].becomes("leading").await;
    members[1].start();
    members[1].becomes("standby").await;
    eventually_within(PATIENCE, "the standby names the leader", || {
        members[1]
            .readiness()
            .is_some_and(|(ready, says)| ready && says["leader"]["name"] == "p1.example.net")
    })
    .await;
    members[0].process().signal(Signal::TERM);
    assert_eq!(members[0].process().wait(PATIENCE).await.code(), Some(0));
    let stopped = Instant::now();
    let fleet = site.servers("web", 5, with_login).await;
    fleet.wait_until(PATIENCE, |stats| stats.configures > 0).await.unwrap();
    assert!(stopped.elapsed() < Duration::from_secs(30), "{:?}", stopped.elapsed());
    provisioned(&fleet).await;
}

#[tokio::test]
async fn a_missing_bucket_is_said_on_readyz_and_taken_up_once_it_is_there() {
    let Some(site) = Site::with(BrokerOptions::new().jetstream().extra(ACCOUNTS)) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut members = members(&site, &dir, 1, "leader_election: true");
    let member: &mut Member = &mut members[0];
    member.start();
    eventually_within(PATIENCE, "it says what is missing", || {
        let says = member.readiness();
        says.is_some_and(|(ready, says)| {
            !ready && says["reasons"].to_string().contains("CHORIA_LEADER_ELECTION")
        })
    })
    .await;
    assert!(
        member.log().contains("the election does not work: nobody answers for bucket CHORIA_LEADER_ELECTION")
    );
    make_bucket(&site.broker, Duration::from_secs(10), 1).await;
    member.becomes("leading").await;
    assert!(member.readiness().is_some_and(|(ready, says)| ready && says["leader"]["own"] == true));
}
