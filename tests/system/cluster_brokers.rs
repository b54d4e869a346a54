//! Three brokers that keep the buckets together, one of which dies.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use tempfile::TempDir;

use super::cluster_election::{ACCOUNTS, make_bucket, with_login};
use super::cluster_shared::{repeated, shares};
use super::cluster_site::{Member, PATIENCE, members};
use super::prove_site::Site;
use super::support::{Broker, BrokerOptions, eventually_within};

/// A site at the first of three brokers, and the other two.
fn site(extra: &str) -> Option<(Site, Vec<Broker>, TempDir)> {
    let listeners: Vec<_> = (0..3).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
    drop(listeners);
    let routes: Vec<_> = ports.iter().map(|port| format!("nats-route://127.0.0.1:{port}")).collect();
    let options = |number: usize| {
        let port = ports[number];
        let cluster = format!(
            "server_name: n{number}\ncluster {{ name: c, listen: \"127.0.0.1:{port}\", routes: [{}] }}",
            routes.join(", ")
        );
        BrokerOptions::new().jetstream().extra(extra).extra(&cluster)
    };
    let site = Site::with(options(0))?;
    let others = vec![options(1).start()?, options(2).start()?];
    Some((site, others, tempfile::tempdir().unwrap()))
}

/// Members that know all three brokers.
fn prepare(site: &Site, others: &[Broker], dir: &TempDir, count: usize, yaml: &str) -> Vec<Member> {
    let all: Vec<_> = std::iter::once(site.broker.url()).chain(others.iter().map(Broker::url)).collect();
    let mut members = members(site, dir, count, yaml);
    for member in &mut members {
        member.connect_to(&all);
    }
    members
}

fn urls(site: &Site, others: &[Broker]) -> Vec<String> {
    others.iter().map(Broker::url).chain([site.broker.url()]).collect()
}

/// What the key of the election says, asked through this broker.
async fn key_through(url: &str) -> Option<String> {
    let options = async_nats::ConnectOptions::with_user_and_password("choria".into(), "choria".into());
    let client = options.connect(url).await.ok()?;
    // While the brokers elect a leader of their own, they may not know it.
    let store = jetstream::new(client).get_key_value("CHORIA_LEADER_ELECTION").await.ok()?;
    let value = store.get("provisioner").await.ok()??;
    Some(String::from_utf8_lossy(&value).into_owned())
}

#[tokio::test]
async fn a_standby_leads_after_its_leader_died_though_three_brokers_keep_the_key() {
    const TTL: Duration = Duration::from_secs(6);
    let Some((site, mut others, dir)) = site(ACCOUNTS) else { return };
    make_bucket(&site.broker, TTL, 3).await;
    let mut members = prepare(&site, &others, &dir, 2, "leader_election: true");
    members[0].start();
    members[0].becomes("leading").await;
    members[1].start();
    members[1].becomes("standby").await;
    for url in urls(&site, &others) {
        eventually_key(&url, "p1.example.net").await;
    }

    members[0].kill();
    let died = Instant::now();
    members[1].becomes("leading").await;
    // The key's life, the longest wait of a candidate, two writes, and a busy machine.
    assert!(died.elapsed() < TTL + Duration::from_secs(8 + 2 + 10), "{:?}", died.elapsed());
    for url in urls(&site, &others) {
        eventually_key(&url, "p2.example.net").await;
    }
    let age = || {
        let series = members[1].process.as_ref().unwrap().series();
        series.into_iter().find(|line| line.starts_with("quartermaster_election_leader_age_seconds"))
    };
    eventually_within(PATIENCE, "the gauge names the leader and its age", || {
        age().is_some_and(|line| line.contains("p2.example.net") && !line.ends_with(" 0"))
    })
    .await;

    // A broker dies: whoever leads in the end, servers are provisioned.
    let all = urls(&site, &others);
    let login = |settings: &mut quartermaster::emulate::FleetSettings| {
        with_login(settings);
        settings.brokers = all;
    };
    let fleet = site.servers("web", 60, login).await;
    fleet.wait_until(PATIENCE, |stats| stats.configures >= 5).await.unwrap();
    let killed = quartermaster::clock::now().nanos() / 1_000_000;
    others[0].stop();
    fleet.wait_until_all_provisioned(2 * PATIENCE).await.unwrap();
    assert_eq!(repeated(&fleet, &[("p2.example.net".to_owned(), killed)]), Vec::<String>::new());
    members[1].becomes("leading").await;
}

async fn eventually_key(url: &str, value: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let read = key_through(url).await;
        if read.as_deref() == Some(value) {
            return;
        }
        assert!(Instant::now() < end, "through {url} the key says {read:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn shared_work_goes_on_when_one_of_three_brokers_dies() {
    const SERVERS: usize = 300;
    let Some((site, mut others, dir)) = site("max_pending: 256MB") else { return };
    let yaml = "cluster: {mode: shared, ttl: 15s}\nin_flight: 24";
    let mut members = prepare(&site, &others, &dir, 3, yaml);
    for member in &mut members {
        member.start();
    }
    for member in &members {
        eventually_within(PATIENCE, "it shares the work", || {
            member.readiness().is_some_and(|(ready, says)| ready && says["role"] == "sharing")
        })
        .await;
    }
    let all = urls(&site, &others);
    let fleet = site.servers("web", SERVERS, |settings| settings.brokers = all).await;
    fleet.wait_until(PATIENCE, |stats| stats.configures >= 30).await.unwrap();
    let killed = quartermaster::clock::now().nanos() / 1_000_000;
    others[0].stop();
    fleet.wait_until_all_provisioned(2 * PATIENCE).await.unwrap();
    // Replies on their way through the broker that died are lost.
    let kills: Vec<_> = members.iter().map(|member| (member.identity.clone(), killed)).collect();
    assert_eq!(repeated(&fleet, &kills), Vec::<String>::new());
    let shares = shares(&fleet);
    println!("{shares:?}");
    assert_eq!(shares.len(), 3, "{shares:?}");
    let replicas = members[0].log().lines().find(|line| line.contains("Made the bucket")).map(str::to_owned);
    assert!(members.iter().any(|member| member.log().contains("replicas=3")), "{replicas:?}");
}
