//! Claims over the login of control: where provisioning has no JetStream, another account or another broker keeps them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, jetstream};
use futures::{StreamExt as _, TryStreamExt as _};
use quartermaster::emulate::FleetHandle;
use serde_json::Value;

use super::cluster_election::with_login;
use super::cluster_shared::{repeated, shares};
use super::cluster_site::{Member, PATIENCE, members};
use super::control_creds::operated;
use super::prove_site::Site;
use super::support::{BrokerOptions, eventually, eventually_within};

const SERVERS: usize = 60;
const BUCKET: &str = "QUARTERMASTER_CLAIMS";

/// Accounts as in a stock Choria broker: the one that everybody gets into without a password has no JetStream.
const ACCOUNTS: &str = r"
accounts {
  choria {
    jetstream: enabled
    users: [ { user: control, password: control } ]
  }
  provisioning {
    users: [ { user: anybody, password: anybody } ]
  }
}
no_auth_user: anybody
max_pending: 256MB
";

/// A host's claim as somebody wrote it, or tried to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    host: String,
    by: String,
    state: String,
}

fn said(key: &str, value: &[u8]) -> Option<Said> {
    let host = key.strip_prefix("host.")?.to_owned();
    let value: Value = serde_json::from_slice(value).ok()?;
    let text = |field: &str| value[field].as_str().map(str::to_owned);
    Some(Said { host, by: text("by")?, state: text("state")? })
}

/// What is written to the bucket in this client's account from now on.
async fn listen(client: &Client) -> Arc<Mutex<BTreeSet<Said>>> {
    let prefix = format!("$KV.{BUCKET}.");
    let mut writes = client.subscribe(format!("{prefix}>")).await.unwrap();
    client.flush().await.unwrap();
    let heard = Arc::new(Mutex::new(BTreeSet::new()));
    let writes_down = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Some(message) = writes.next().await {
            let key = message.subject.strip_prefix(prefix.as_str());
            writes_down.lock().unwrap().extend(key.and_then(|key| said(key, &message.payload)));
        }
    });
    heard
}

/// What stands in the bucket: the claims of hosts, and the instances' own keys.
async fn stands(client: &Client) -> (BTreeSet<Said>, BTreeSet<String>) {
    let store = jetstream::new(client.clone()).get_key_value(BUCKET).await.unwrap();
    let keys: Vec<String> = store.keys().await.unwrap().try_collect().await.unwrap();
    let mut claims = BTreeSet::new();
    for key in &keys {
        let value = store.get(key).await.unwrap().unwrap_or_default();
        claims.extend(said(key, &value));
    }
    (claims, keys.into_iter().filter(|key| key.starts_with("member.")).collect())
}

/// For each configured server the claim that whoever configured it must have had, in this state.
fn owed(fleet: &FleetHandle, state: &str) -> BTreeSet<Said> {
    let servers = fleet.report().servers.into_iter();
    servers
        .flat_map(|(host, server)| {
            let claim = move |by| Said { host: host.clone(), by, state: state.to_owned() };
            server.record.configured.into_iter().map(move |configured| claim(configured.by))
        })
        .collect()
}

async fn share(members: &mut [Member]) {
    for member in members.iter_mut() {
        member.start();
    }
    for member in members.iter() {
        member.becomes("sharing").await;
        eventually_within(PATIENCE, &format!("{} is ready", member.identity), || is_ready(member)).await;
    }
}

fn is_ready(member: &Member) -> bool {
    member.readiness().is_some_and(|(ready, _)| ready)
}

fn assert_once(fleet: &FleetHandle, servers: usize) {
    let configures: Vec<_> =
        fleet.report().servers.into_values().map(|server| server.record.configures).collect();
    assert_eq!(configures, vec![1; servers]);
    assert_eq!(repeated(fleet, &[]), Vec::<String>::new());
}

#[tokio::test]
async fn claims_are_kept_in_the_account_of_control_where_that_of_provisioning_has_no_jetstream() {
    let Some(site) = Site::with(BrokerOptions::new().jetstream().extra(ACCOUNTS)) else { return };
    let dir = tempfile::tempdir().unwrap();
    let yaml = "control: {user: control, password: control}\n\
                cluster: {mode: shared, ttl: 5m, connection: control}\nin_flight: 16";
    let options = ConnectOptions::with_user_and_password("control".into(), "control".into());
    let control = options.connect(site.broker.url()).await.unwrap();
    let heard = listen(&control).await;
    let mut members = members(&site, &dir, 2, yaml);
    share(&mut members).await;
    let fleet = site.servers("web", SERVERS, with_login).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();

    assert_once(&fleet, SERVERS);
    let shares = shares(&fleet);
    println!("{shares:?}");
    assert_eq!(shares.len(), 2, "both work: {shares:?}");
    let committed = owed(&fleet, "committed");
    eventually("every claim was heard", || committed.is_subset(&heard.lock().unwrap())).await;
    let unclaimed: Vec<_> = committed.difference(&heard.lock().unwrap()).cloned().collect();
    assert_eq!((committed.len(), unclaimed), (SERVERS, Vec::new()), "configured without a claim");
    let mut stand = stands(&control).await;
    for _ in 0..300 {
        if stand.0 == owed(&fleet, "done") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        stand = stands(&control).await;
    }
    let own = ["member.p1.example.net", "member.p2.example.net"].map(str::to_owned);
    assert_eq!(stand, (owed(&fleet, "done"), BTreeSet::from(own)));
    // And nowhere else: nobody answers for JetStream in the account of provisioning.
    let provisioning = async_nats::connect(site.broker.url()).await.unwrap();
    assert!(jetstream::new(provisioning).get_key_value(BUCKET).await.is_err());
}

#[tokio::test]
async fn while_the_broker_of_control_is_away_no_server_is_configured_and_afterwards_each_is_once() {
    const LATE: usize = 10;
    let (lines, credentials) = operated();
    let Some(site) = Site::new() else { return };
    let Some(mut control) = BrokerOptions::new().jetstream().extra(&lines).start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = site.path("control.creds");
    fs::write(&file, &credentials).unwrap();
    let (go, begun) = (site.path("go"), site.path("begun"));
    site.helper_also(&format!(
        "echo x >> {}\nwhile [ ! -e {} ]; do sleep 0.1; done",
        begun.display(),
        go.display()
    ));
    let yaml = format!(
        "control: {{server: \"{}\", credentials: \"{}\"}}\n\
         cluster: {{mode: shared, ttl: 8s, connection: control}}\nin_flight: 16\nworkers: 16\nhelper_timeout: 60s",
        control.url(),
        file.display()
    );
    let mut members = members(&site, &dir, 2, &yaml);
    share(&mut members).await;
    let quickly = |settings: &mut quartermaster::emulate::FleetSettings| {
        settings.lock_time = Duration::from_secs(1);
    };
    let fleet = site.servers("web", SERVERS, quickly).await;
    eventually_within(PATIENCE, "both have begun with as many as they may", || {
        fs::read_to_string(&begun).unwrap_or_default().lines().count() == 2 * 16
    })
    .await;

    control.stop();
    fs::write(&go, "").unwrap();
    let late = site.servers("late", LATE, quickly).await;
    for member in &members {
        eventually(&format!("{} says what is missing", member.identity), || {
            let says = member.readiness();
            says.is_some_and(|(ready, says)| !ready && says["reasons"].to_string().contains(BUCKET))
        })
        .await;
    }
    // Longer than any claim lives.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((fleet.stats().configures, late.stats().configures), (0, 0), "configured without a claim");
    let begun_late = late.report().servers.into_values().filter(|one| one.record.first_request.is_some());
    assert_eq!(begun_late.count(), 0, "begun without a claim");

    // Helpers wait again until both instances have begun: else the one that is back first may do all before the other is.
    fs::remove_file(&go).unwrap();
    let begun_before = fs::read_to_string(&begun).unwrap_or_default().lines().count();
    control.restart();
    eventually_within(PATIENCE, "more have begun than one instance may", || {
        fs::read_to_string(&begun).unwrap_or_default().lines().count() > begun_before + 16
    })
    .await;
    fs::write(&go, "").unwrap();
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    late.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_once(&fleet, SERVERS);
    assert_once(&late, LATE);
    let mut shares: BTreeMap<String, usize> = shares(&fleet);
    println!("{shares:?}");
    for member in &members {
        assert!(shares.remove(&member.identity).is_some(), "{} did nothing", member.identity);
        eventually_within(PATIENCE, &format!("{} is ready", member.identity), || is_ready(member)).await;
    }
}
