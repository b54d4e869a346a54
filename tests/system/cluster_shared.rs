//! Several instances that all work: every server is provisioned, none by two, whatever happens to the instances.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use quartermaster::emulate::FleetHandle;
use rustix::process::Signal;
use tempfile::TempDir;

use super::cluster_site::{Member, PATIENCE, members};
use super::fault_record;
use super::prove_site::Site;
use super::support::{BrokerOptions, eventually, eventually_within};

const SHARED: &str = "cluster: {mode: shared, ttl: 6s}\nin_flight: 24";

fn site() -> Option<(Site, TempDir)> {
    let site = Site::with(BrokerOptions::new().jetstream().extra("max_pending: 256MB"))?;
    Some((site, tempfile::tempdir().unwrap()))
}

/// Starts them all, and waits until each knows of every other: before that, one takes what would be another's.
async fn share(members: &mut [Member]) {
    let all = members.len();
    for member in &mut *members {
        member.start();
    }
    for member in members {
        member.becomes("sharing").await;
        let process = member.process();
        eventually("each knows of every other", || {
            process.status()["claims"]["members"].as_array().is_some_and(|known| known.len() == all)
        })
        .await;
    }
}

/// Who configured how many servers.
pub fn shares(fleet: &FleetHandle) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for server in fleet.report().servers.into_values() {
        for configured in server.record.configured {
            *shares.entry(configured.by).or_default() += 1;
        }
    }
    shares
}

/// Servers configured more than once, unless whoever did so was killed in between, at one of these times.
pub fn repeated(fleet: &FleetHandle, kills: &[(String, i64)]) -> Vec<String> {
    let killed = |by: &str, from: i64, to: i64| {
        kills.iter().any(|(who, at_ms)| who == by && (from - 1000..=to).contains(at_ms))
    };
    let mut unexplained = Vec::new();
    for (name, server) in fleet.report().servers {
        for (earlier, later) in server.record.repetitions() {
            if !killed(&earlier.by, earlier.sent_ms.min(earlier.at_ms), later.at_ms) {
                unexplained.push(format!("{name}: {earlier:?} {later:?}"));
            }
        }
    }
    unexplained
}

fn assert_even(shares: &BTreeMap<String, usize>, members: usize, percent: usize) {
    let total: usize = shares.values().sum();
    let even = total / members;
    let off = |share: &usize| share.abs_diff(even) > even * percent / 100;
    assert!(
        shares.len() == members && !shares.values().any(off),
        "more than {percent} % from {even}: {shares:?}"
    );
}

#[tokio::test]
async fn three_instances_share_three_thousand_servers_while_one_after_the_other_is_killed() {
    const SERVERS: usize = 3000;
    let Some((site, dir)) = site() else { return };
    let mut members = members(&site, &dir, 3, &format!("{SHARED}\nstate_dir: OWN.state"));
    share(&mut members).await;
    let fleet = site.servers("web", SERVERS, |_| ()).await;
    let mut kills = Vec::new();
    let end = Instant::now() + Duration::from_mins(8);
    while fleet.stats().provisioned < SERVERS as u64 {
        assert!(Instant::now() < end, "{:?} {:?}", fleet.stats(), fleet.unfinished(10));
        tokio::time::sleep(Duration::from_secs(4)).await;
        let next = kills.len() % members.len();
        members[next].kill();
        kills.push((members[next].identity.clone(), quartermaster::clock::now().nanos() / 1_000_000));
        members[next].start();
    }
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!(repeated(&fleet, &kills), Vec::<String>::new());
    let shares = shares(&fleet);
    println!("{} kills, {:?}, {shares:?}, {:?}", kills.len(), fleet.worked(), fleet.stats());
    assert_even(&shares, 3, 20);
    let mut journals = Vec::new();
    for (member, number) in members.iter_mut().zip(1..) {
        assert!(member.log().contains("Provisioning"), "{}", member.identity);
        // One that was started a moment ago may not listen to signals yet.
        member.becomes("sharing").await;
        member.process().signal(Signal::TERM);
        assert_eq!(member.process().wait(PATIENCE).await.code(), Some(0));
        journals.push(dir.path().join(format!("p{number}.own.state")));
    }
    // What they noted themselves, each in its own folder, explains every second `configure` as well.
    assert_eq!(fault_record::complaints(&journals, &fleet.report().servers), Vec::<String>::new());
}

#[tokio::test]
async fn without_trouble_no_server_is_configured_twice_and_no_helper_runs_twice() {
    const SERVERS: usize = 300;
    let Some((site, dir)) = site() else { return };
    let runs = site.path("runs");
    site.helper_also(&format!("echo \"$identity\" >> {}", runs.display()));
    let mut members = members(&site, &dir, 3, SHARED);
    share(&mut members).await;
    let fleet = site.servers("web", SERVERS, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!(repeated(&fleet, &[]), Vec::<String>::new());
    let mut helped: Vec<_> = fs::read_to_string(&runs).unwrap().lines().map(str::to_owned).collect();
    helped.sort_unstable();
    let before = helped.len();
    helped.dedup();
    assert_eq!((before, helped.len()), (SERVERS, SERVERS));
    assert_eq!(fleet.stats().lock_refusals, 0);
    // Three hundred are few: a machine that stalls for three seconds moves a dozen of them to whoever has room.
    assert_even(&shares(&fleet), 3, 50);
}

/// The instance that is at work on the one server there is: it says that it begins before it asks for the claim, so the claim
/// tells.
fn worker(members: &[Member]) -> Option<usize> {
    members.iter().position(|member| {
        member.process.as_ref().is_some_and(|process| process.status()["claims"]["held"] == 1)
    })
}

#[tokio::test]
async fn a_server_whose_instance_dies_is_another_ones_once_its_claim_has_expired() {
    let Some((site, dir)) = site() else { return };
    // The node keeps its lock for whoever called first, which has to pass as well.
    let stop = site.path("stop");
    site.helper_also(&format!("[ -e {0} ] || {{ touch {0}; sleep 600; }}", stop.display()));
    let mut members = members(&site, &dir, 2, SHARED);
    share(&mut members).await;
    let fleet = site.servers("web", 1, |settings| settings.lock_time = Duration::from_secs(2)).await;
    eventually("one of them works on it", || worker(&members).is_some()).await;
    let first = worker(&members).unwrap();
    eventually("its helper runs", || stop.exists()).await;
    members[first].kill();
    let other = &members[1 - first];
    let ended = fleet.wait_until_all_provisioned(PATIENCE).await;
    assert!(ended.is_ok(), "{ended:?}\n{}", other.log());
    let other = other.identity.clone();
    assert_eq!(shares(&fleet), BTreeMap::from([(other, 1)]));
}

#[tokio::test]
async fn an_instance_that_wakes_after_its_claim_expired_sends_nothing_more_about_the_server() {
    let Some((site, dir)) = site() else { return };
    let stop = site.path("stop");
    site.helper_also(&format!("[ -e {0} ] || {{ touch {0}; sleep 15; }}", stop.display()));
    let mut members = members(&site, &dir, 2, &format!("{SHARED}\nhelper_timeout: 60s"));
    share(&mut members).await;
    let fleet = site.servers("web", 1, |settings| settings.lock_time = Duration::from_secs(2)).await;
    eventually("its helper runs", || stop.exists()).await;
    eventually("one of them has the claim", || worker(&members).is_some()).await;
    let first = worker(&members).unwrap();
    members[first].process().signal(Signal::STOP);
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    let requests = fleet.stats().requests;
    members[first].process().signal(Signal::CONT);
    members[first].becomes("sharing").await;
    eventually_within(PATIENCE, "the claim is known to be lost", || {
        let log = members[first].log();
        log.contains("claim was lost") || log.contains("Interrupted") || log.contains("interrupted")
    })
    .await;
    assert_eq!(shares(&fleet), BTreeMap::from([(members[1 - first].identity.clone(), 1)]));
    assert_eq!(fleet.stats().requests, requests, "something was sent to the server");
}

#[tokio::test]
async fn a_stopped_instance_gives_its_servers_away_at_once() {
    let Some((site, dir)) = site() else { return };
    let mut members = members(&site, &dir, 2, "cluster: {mode: shared, ttl: 1h}");
    share(&mut members).await;
    members[0].process().signal(Signal::TERM);
    assert_eq!(members[0].process().wait(PATIENCE).await.code(), Some(0));
    eventually("the other one knows that it is alone", || {
        let status = members[1].process().status();
        status["claims"]["members"] == serde_json::json!(["p2.example.net"])
    })
    .await;
    let fleet = site.servers("web", 40, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!(shares(&fleet), BTreeMap::from([("p2.example.net".to_owned(), 40)]));
}

/// An account with JetStream in which nobody who comes without a password may make a bucket.
const FORBIDDEN: &str = r#"
accounts {
  shared {
    jetstream: enabled
    users: [
      { user: anybody, password: anybody, permissions: { publish: { deny: [ "$JS.API.STREAM.CREATE.>" ] } } }
      { user: admin, password: admin }
    ]
  }
}
no_auth_user: anybody
"#;

#[tokio::test]
async fn a_bucket_that_may_not_be_made_is_said_with_the_command_and_taken_up_once_somebody_made_it() {
    let Some(site) = Site::with(BrokerOptions::new().jetstream().extra(FORBIDDEN)) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut members = members(&site, &dir, 1, SHARED);
    members[0].start();
    let command = "nats kv add QUARTERMASTER_CLAIMS --history=1 --ttl=6s --replicas=1 --storage=file";
    eventually_within(PATIENCE, "it names the command", || {
        members[0]
            .readiness()
            .is_some_and(|(ready, says)| !ready && says["reasons"].to_string().contains(command))
    })
    .await;
    assert!(members[0].log().contains(command));

    let options = async_nats::ConnectOptions::with_user_and_password("admin".into(), "admin".into());
    let client = options.connect(site.broker.url()).await.unwrap();
    let config = async_nats::jetstream::kv::Config {
        bucket: "QUARTERMASTER_CLAIMS".to_owned(),
        history: 1,
        max_age: Duration::from_secs(6),
        ..Default::default()
    };
    async_nats::jetstream::new(client).create_key_value(config).await.unwrap();
    eventually_within(PATIENCE, "it is ready", || members[0].readiness().is_some_and(|(ready, _)| ready))
        .await;
    let fleet = site.servers("web", 10, super::cluster_election::with_login).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
}
