//! Crowds: full queues, replayed and hostile events, servers that live for a moment, two provisioners at once.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, PrepareSettings, prepare,
};
use serde_json::json;

use super::support::{Broker, BrokerOptions, Daemon, append, eventually, replace};

const LIMIT: Duration = Duration::from_mins(2);
const STARTUP: &str = "choria.lifecycle.event.startup.provision_mode_server";

/// A plain network with the files of its provisioner; each helper run leaves a line.
struct Site {
    broker: Broker,
    dir: tempfile::TempDir,
    files: NetworkFiles,
}

impl Site {
    fn open(additions: &str) -> Option<Self> {
        let broker = BrokerOptions::new().start()?;
        let dir = tempfile::tempdir().unwrap();
        let files = Self::files(&broker, dir.path(), dir.path(), additions);
        Some(Self { broker, dir, files })
    }

    /// Files of one more provisioner of the same network.
    fn files(broker: &Broker, dir: &Path, runs: &Path, additions: &str) -> NetworkFiles {
        let broker = format!("127.0.0.1:{}", broker.port());
        let settings = PrepareSettings { broker, seed: Some(9), ..PrepareSettings::default() };
        let files = prepare(dir, &settings).unwrap().plain;
        append(&files.config, additions);
        let noted = format!("echo \"$identity\" >> {}\nprintf '%s\\n' \"{{", runs.join("runs").display());
        replace(&files.helper, "printf '%s\\n' \"{", &noted);
        files
    }

    async fn fleet(&self, servers: usize, identity_format: &str, faults: &str) -> FleetHandle {
        let mut settings =
            FleetSettings::new(Network::load(&self.files.dir).unwrap(), self.broker.url(), servers);
        settings.tls = false;
        identity_format.clone_into(&mut settings.identity_format);
        settings.restart_delay = Some(Duration::from_millis(50));
        settings.faults = FaultPlan::parse(faults).unwrap();
        Fleet::start(settings).await.unwrap()
    }

    async fn client(&self) -> async_nats::Client {
        async_nats::connect(self.broker.url()).await.unwrap()
    }

    /// How often the helper was asked.
    fn runs(&self) -> usize {
        std::fs::read_to_string(self.dir.path().join("runs")).unwrap_or_default().lines().count()
    }

    /// Everything published before this has been seen by the provisioner when this returns: a last server, announced after
    /// it, is provisioned.
    async fn caught_up(&self) {
        let last = self.fleet(1, "last{}.example.net", "").await;
        last.wait_until_all_provisioned(LIMIT).await.unwrap();
        last.stop().await;
    }
}

fn announcement(identity: &str) -> Vec<u8> {
    let event = json!({
        "protocol": "io.choria.lifecycle.v1.startup", "id": identity, "identity": identity,
        "component": "provision_mode_server", "timestamp": 1_795_976_868, "version": "0.30.0",
    });
    event.to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_a_full_queue_turned_away_are_taken_later_and_replayed_events_start_nothing() {
    // Ten find a place, the others wait for the next discovery, a minute later.
    const SERVERS: usize = 20;
    let Some(site) = Site::open("queue: 5\nin_flight: 5\n") else { return };
    let client = site.client().await;
    let mut heard = client.subscribe(STARTUP).await.unwrap();
    client.flush().await.unwrap();
    let mut daemon = Daemon::start(&site.files);
    eventually("the provisioner is connected", || site.broker.connections() == 2).await;
    let fleet = site.fleet(SERVERS, "node{}.example.net", "").await;
    let mut events = Vec::new();
    while events.len() < SERVERS {
        events.push(heard.next().await.unwrap().payload);
    }
    fleet.wait_until_all_provisioned(LIMIT).await.unwrap();
    for _ in 0..50 {
        for event in &events {
            client.publish(STARTUP, event.clone()).await.unwrap();
        }
    }
    client.flush().await.unwrap();
    site.caught_up().await;
    daemon.assert_alive();
    assert_eq!((fleet.stats().configures, fleet.stats().repeated_configures), (SERVERS as u64, 0));
    assert_eq!(site.runs(), SERVERS + 1, "the helper was asked once for each server");
    assert!(daemon.stderr().contains("Dropped a sighting, the queue lane is full"), "nobody was turned away");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_lived_for_a_moment_do_not_starve_the_living() {
    let Some(site) = Site::open("") else { return };
    let mut daemon = Daemon::start(&site.files);
    let dead = site.fleet(300, "dead{}.example.net", "vanish=all").await;
    dead.wait_until(LIMIT, |stats| stats.vanished == 300).await.unwrap();
    let living = site.fleet(20, "node{}.example.net", "").await;
    living.wait_until_all_provisioned(LIMIT).await.unwrap();
    daemon.assert_alive();
    assert_eq!(site.runs(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_events_and_hostile_ones_costs_nobody_a_place() {
    let Some(site) = Site::open("") else { return };
    let mut daemon = Daemon::start(&site.files);
    let client = site.client().await;
    let hostile: [Vec<u8>; 7] = [
        b"no json".to_vec(),
        Vec::new(),
        announcement(&"x".repeat(200_000)),
        announcement("evil\r\nlevel=fatal injected\u{1b}[31m"),
        announcement("provisioning.>"),
        announcement(""),
        format!("{}{}", "[".repeat(30_000), "]".repeat(30_000)).into_bytes(),
    ];
    let fleet = site.fleet(50, "node{}.example.net", "").await;
    for round in 0..5_000_usize {
        // Announcements of servers that are there, among those of nobody.
        let event = match hostile.get(round % 20) {
            Some(event) => event.clone(),
            None => announcement(&format!("node{}.example.net", round % 50 + 1)),
        };
        client.publish(STARTUP, event.into()).await.unwrap();
    }
    client.flush().await.unwrap();
    fleet.wait_until_all_provisioned(LIMIT).await.unwrap();
    site.caught_up().await;
    daemon.assert_alive();
    assert_eq!(fleet.stats().configures, 50);
    let log = daemon.stderr();
    assert!(!log.contains('\u{1b}'), "a control character in the log");
    assert!(log.lines().all(|line| line.starts_with('{')), "a line was injected");
    assert!(log.len() < 4 << 20, "the flood filled the log: {} bytes", log.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_provisioners_share_a_fleet_through_the_locks_of_its_servers() {
    const SERVERS: usize = 60;
    let Some(site) = Site::open("") else { return };
    let second = site.dir.path().join("second");
    let files = Site::files(&site.broker, &second, site.dir.path(), "");
    replace(&files.choria_config, "provisioner.example.net", "provisioner2.example.net");
    let mut daemons = [Daemon::start(&site.files), Daemon::start(&files)];
    eventually("both are connected", || site.broker.connections() == 2).await;
    let fleet = site.fleet(SERVERS, "node{}.example.net", "").await;
    let stats = fleet.wait_until_all_provisioned(LIMIT).await.unwrap();
    assert_eq!((stats.configures, stats.repeated_configures), (SERVERS as u64, 0));
    assert!(stats.lock_refusals > 0, "they met at no server");
    assert_eq!(site.runs(), SERVERS, "no helper run is wasted on a server that somebody else has");
    for daemon in &mut daemons {
        daemon.assert_alive();
    }
}
