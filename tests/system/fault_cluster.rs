//! An operator pauses, drains and watches a cluster of three provisioners while brokers, servers, helpers and the provisioners
//! themselves are killed: every server ends provisioned, once.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use async_nats::jetstream::{self, kv};
use futures::StreamExt as _;
use quartermaster::emulate::{Fleet, FleetHandle, FleetSettings, Network, PrepareSettings, prepare};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fault_child::{ENDINGS, PARTS, Program, Provisioner};
use super::fault_record;
use super::fault_stage::{CALM, asked, server};
use super::support::proxy::{Proxy, Witness, now_ms};
use super::support::{Broker, BrokerOptions, append, eventually, replace};

const INSTANCES: usize = 3;
const ROUNDS: usize = 30;
const SERVERS: usize = 300;
/// How long the leader's key lives; a real bucket says a minute.
const TTL: Duration = Duration::from_secs(3);
/// What an instance knew dies with it for the others, and one that is struck may lose the lead: until it is its turn again,
/// they begin anew. By `end - reply`, in milliseconds.
const LOST: std::ops::RangeInclusive<i64> = -8_000..=2_000;

/// As a Choria broker has them: JetStream in an account of its own, and the two subjects of the election for provisioners.
const ACCOUNTS: &str = r#"
max_pending: 256MB
accounts {
  choria {
    jetstream: enabled
    users: [ { user: choria, password: choria } ]
    exports: [ { service: "$JS.API.>" }, { service: "$KV.>" } ]
  }
  provisioning {
    jetstream: enabled
    users: [ { user: provisioner, password: s3cret }, { user: node, password: n0de } ]
    imports: [
      { service: { account: choria, subject: "$JS.API.STREAM.INFO.KV_CHORIA_LEADER_ELECTION" }, to: "choria.streams.STREAM.INFO.KV_CHORIA_LEADER_ELECTION" }
      { service: { account: choria, subject: "$KV.CHORIA_LEADER_ELECTION.provisioner" }, to: "choria.streams.$KV.CHORIA_LEADER_ELECTION.provisioner" }
    ]
  }
}
"#;

/// How the instances share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One leads.
    Election,
    /// All work, each on the hosts that it claims.
    Shared,
}

impl Mode {
    const fn yaml(self) -> &'static str {
        match self {
            Self::Election => "leader_election: true",
            Self::Shared => "cluster: {mode: shared, ttl: 6s}\nin_flight: 24",
        }
    }
}

struct Instance {
    name: String,
    program: Program,
    dir: PathBuf,
    monitor: u16,
    process: Provisioner,
    /// Whether this life of it was told to drain.
    told_to_drain: bool,
    /// Its way to the broker, and the witness of what it was handed.
    _proxy: Proxy,
}

struct Cluster {
    mode: Mode,
    told: String,
    rng: StdRng,
    broker: Broker,
    witness: Witness,
    instances: Vec<Instance>,
    fleet: FleetHandle,
    operator: async_nats::Client,
    on: usize,
    /// When something ended that may have had a reply in its hands.
    ends: Vec<i64>,
    _dir: TempDir,
}

impl Cluster {
    async fn start(mode: Mode) -> Option<Self> {
        let seed: u64 = asked("QM_FAULT_SEED").unwrap_or_else(rand::random);
        let told = format!("cluster ({mode:?}) with QM_FAULT_SEED={seed}");
        eprintln!("{told}");
        let broker = BrokerOptions::new().jetstream().extra(ACCOUNTS).start()?;
        let login = |user: &str, password: &str| {
            async_nats::ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned())
                .retry_on_initial_connect()
                .reconnect_delay_callback(|_| Duration::from_millis(50))
        };
        let keeper = login("choria", "choria").connect(broker.url()).await.unwrap();
        let bucket = kv::Config {
            bucket: "CHORIA_LEADER_ELECTION".to_owned(),
            history: 1,
            max_age: TTL,
            storage: jetstream::stream::StorageType::File,
            ..kv::Config::default()
        };
        eventually("JetStream is there", || {
            keeper.connection_state() == async_nats::connection::State::Connected
        })
        .await;
        jetstream::new(keeper).create_key_value(bucket).await.unwrap();
        let operator = login("provisioner", "s3cret").connect(broker.url()).await.unwrap();

        let dir = tempfile::tempdir().unwrap();
        let witness = Witness::default();
        let mut instances = Vec::new();
        for number in 1..=INSTANCES {
            let proxy = Proxy::start(broker.port(), Some(witness.clone())).await;
            let settings = PrepareSettings {
                broker: format!("127.0.0.1:{}", proxy.port()),
                workers: Some(4),
                seed: Some(seed),
                ..PrepareSettings::default()
            };
            let own = dir.path().join(number.to_string());
            let files = prepare(&own, &settings).unwrap().plain;
            let monitor = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            append(
                &files.config,
                &format!(
                    "listen: 127.0.0.1:{monitor}\nstate_dir: {}\nretry: {{first: 300ms, cap: 1s}}\n{}\nbroker_provisioning_password: s3cret\n",
                    own.join("state").display(),
                    mode.yaml()
                ),
            );
            let name = format!("p{number}.example.net");
            replace(&files.choria_config, "provisioner.example.net", &name);
            // The last one is the program as it is shipped.
            let program = if number == INSTANCES { Program::Shipped } else { Program::Obeying };
            let process = Provisioner::start(program, &files.dir, monitor, &own.join("log"));
            instances.push(Instance {
                name,
                program,
                dir: files.dir,
                monitor,
                process,
                told_to_drain: false,
                _proxy: proxy,
            });
        }
        let network = Network::load(&instances[0].dir).unwrap();
        let mut fleet = FleetSettings::new(network, broker.url(), SERVERS);
        fleet.tls = false;
        fleet.user = Some(("node".to_owned(), "n0de".to_owned()));
        fleet.connections = 5;
        fleet.restart_delay = Some(Duration::from_millis(50));
        // The leader may change several times a minute; with the real two minutes each change would be waited out.
        fleet.lock_time = Duration::from_secs(1);
        fleet.powered_off = true;
        fleet.seed = seed;
        let fleet = Fleet::start(fleet).await.unwrap();
        let rng = StdRng::seed_from_u64(seed);
        Some(Self {
            mode,
            told,
            rng,
            broker,
            witness,
            instances,
            fleet,
            operator,
            on: 0,
            ends: Vec::new(),
            _dir: dir,
        })
    }

    /// Asks every instance, or one; the answers that come within a second.
    async fn ask(&self, verb: &str, instance: Option<&str>, body: Value) -> Vec<Value> {
        let subject = match instance {
            Some(name) => format!("quartermaster.{verb}.{name}"),
            None => format!("quartermaster.{verb}"),
        };
        let inbox = self.operator.new_inbox();
        let Ok(mut answers) = self.operator.subscribe(inbox.clone()).await else { return Vec::new() };
        let _ = self.operator.publish_with_reply(subject, inbox, body.to_string().into()).await;
        let mut heard = Vec::new();
        let most = if instance.is_some() { 1 } else { INSTANCES };
        let end = tokio::time::Instant::now() + Duration::from_secs(1);
        while let Ok(Some(answer)) = tokio::time::timeout_at(end, answers.next()).await {
            if let Ok(answer) = serde_json::from_slice(&answer.payload) {
                heard.push(answer);
            }
            if heard.len() == most {
                break;
            }
        }
        heard
    }

    /// Whether somebody works, or all do, as they say themselves.
    fn is_at_work(&self) -> bool {
        let shares = |one: &Instance| {
            let status = one.process.status().unwrap_or_default();
            status["claims"]["members"].as_array().is_some_and(|members| members.len() == INSTANCES)
        };
        match self.mode {
            Mode::Election => self.leader().is_some(),
            Mode::Shared => self.instances.iter().all(shares),
        }
    }

    /// The place of the instance that leads, as it says itself.
    fn leader(&self) -> Option<usize> {
        let leads = |one: &Instance| {
            one.process.status().is_some_and(|status| status["run_state"]["leading"] == true)
        };
        self.instances.iter().position(leads)
    }

    fn start_anew(&mut self, which: usize) {
        let one = &mut self.instances[which];
        one.process = Provisioner::start(one.program, &one.dir, one.monitor, &one.dir.join("../log"));
        one.told_to_drain = false;
    }

    fn kill(&mut self, which: usize) {
        self.ends.push(now_ms());
        self.instances[which].process.kill();
        self.start_anew(which);
    }

    async fn operator_drains(&mut self, which: usize) {
        let name = self.instances[which].name.clone();
        let why = json!({"who": "ann", "why": "a new version"});
        self.instances[which].told_to_drain = true;
        let answers = self.ask("drain", Some(&name), why).await;
        if !answers.iter().any(|answer| answer["run_state"]["draining"] == true) {
            // It or its controller was struck, or the broker is away: the operator tries another day.
            return;
        }
        let end = tokio::time::Instant::now() + CALM;
        let status = loop {
            if let Some(status) = self.instances[which].process.ended() {
                break status;
            }
            let process = &self.instances[which].process;
            assert!(
                tokio::time::Instant::now() < end,
                "{}: {name} drains for ever after {answers:?}, status {:?}, ends {:?}\n{}",
                self.told,
                process.status(),
                self.ends,
                process.tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        self.has_drained(which, status);
    }

    fn has_drained(&mut self, which: usize, status: ExitStatus) {
        let one = &self.instances[which];
        assert_eq!(
            (status.code(), one.told_to_drain),
            (Some(0), true),
            "{}: {}",
            self.told,
            one.process.tail()
        );
        self.ends.push(now_ms());
        self.start_anew(which);
    }

    /// One whose answer to a drain came too late for the operator, or not at all, has ended nevertheless.
    fn start_who_drained(&mut self) {
        for which in 0..self.instances.len() {
            if let Some(status) = self.instances[which].process.ended() {
                self.has_drained(which, status);
            }
        }
    }

    async fn operator_pauses(&mut self) {
        let why = json!({"who": "ann", "why": "a look around"});
        let paused = self.ask("pause", None, why.clone()).await;
        // One whose controller was struck a moment ago refuses, and the operator sees it.
        let mut obeyed = paused.iter().filter(|one| one["run_state"].is_object());
        assert!(obeyed.all(|one| one["run_state"]["paused"] != Value::Null), "{}: {paused:?}", self.told);
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.resume_all().await;
    }

    /// The ends of all their logs.
    fn tails(&self) -> String {
        self.instances.iter().map(|one| one.process.tail()).collect::<Vec<_>>().join("\n---\n")
    }

    /// An instance that was struck may not hear it, and its pause outlives a kill; so until every one says it works.
    async fn resume_all(&mut self) {
        let why = json!({"who": "ann", "why": "seen enough"});
        let end = tokio::time::Instant::now() + CALM;
        loop {
            self.start_who_drained();
            let answers = self.ask("resume", None, why.clone()).await;
            // An error has no run state.
            let works = |one: &Value| one["run_state"].is_object() && one["run_state"]["paused"].is_null();
            if answers.len() == INSTANCES && answers.iter().all(works) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "{}: not all resume: {answers:?}\n{}",
                self.told,
                self.tails()
            );
        }
    }

    async fn round(&mut self, round: usize) {
        self.start_who_drained();
        let leader = match self.mode {
            Mode::Election => self.leader(),
            Mode::Shared => Some(round % INSTANCES),
        };
        match round {
            // The leader is killed, or drained, often enough apart that another has led in between.
            6 | 18 => self.kill(leader.unwrap_or(0)),
            12 | 24 => self.operator_drains(leader.unwrap_or(0)).await,
            3 | 15 | 27 => self.operator_pauses().await,
            _ => {}
        }
        let any = self.rng.random_range(0..INSTANCES);
        match self.rng.random_range(0..8) {
            0 => {
                self.ends.push(now_ms());
                tokio::task::block_in_place(|| self.broker.restart());
            }
            1 | 2 => drop(self.instances[leader.unwrap_or(0)].process.kill_helpers(3)),
            3 if self.instances[any].process.obeys() => {
                let part = PARTS[self.rng.random_range(0..PARTS.len())];
                let ending = ENDINGS[self.rng.random_range(0..ENDINGS.len())];
                self.instances[any].process.strike(part, ending);
                self.ends.push(now_ms());
            }
            3 | 4 if Some(any) != leader => self.kill(any),
            _ => {
                for _ in 0..3 {
                    let victim = server(self.rng.random_range(1..=self.on));
                    let down = Duration::from_millis(self.rng.random_range(100..2000));
                    self.fleet.cut_power(&victim, Some(down));
                }
            }
        }
        // The operator watches: whoever answers says who it is and how things stand.
        for status in self.ask("status", None, json!({})).await {
            // One that has just been started may have nobody to ask yet, and says so.
            let is_up = status["fleet"]["in_flight"].is_u64();
            assert!(is_up || status["error"]["code"] == "busy", "{}: {status}", self.told);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_and_a_cluster_provision_every_server_once_while_everything_is_killed() {
    everything_is_killed(Mode::Election).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_and_instances_that_all_work_provision_every_server_once_while_everything_is_killed() {
    everything_is_killed(Mode::Shared).await;
}

async fn everything_is_killed(mode: Mode) {
    let Some(mut cluster) = Cluster::start(mode).await else { return };
    let end = tokio::time::Instant::now() + CALM;
    while !cluster.is_at_work() {
        assert!(tokio::time::Instant::now() < end, "nobody works: {}", cluster.instances[0].process.tail());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for round in 0..ROUNDS {
        for _ in 0..SERVERS / ROUNDS {
            cluster.on += 1;
            let name = server(cluster.on);
            eventually("the order is taken", || cluster.fleet.power_on(&name)).await;
        }
        cluster.round(round).await;
    }
    cluster.resume_all().await;
    if let Err(error) = cluster.fleet.wait_until_all_provisioned(CALM).await {
        panic!("{}: {error}\n{}", cluster.told, cluster.tails());
    }
    let report = cluster.fleet.report();
    let mut wrong = Vec::new();
    for (name, server) in &report.servers {
        for (earlier, later) in server.record.repetitions() {
            let lost = cluster
                .witness
                .delivered(&earlier.request)
                .is_none_or(|reply| cluster.ends.iter().any(|end| LOST.contains(&(end - reply))));
            if !lost {
                wrong.push(format!("{name} at {} and {}", earlier.at_ms, later.at_ms));
            }
        }
    }
    eprintln!("{}: {:?}", cluster.told, report.totals);
    assert!(wrong.is_empty(), "{}: {wrong:?}, ends {:?}", cluster.told, cluster.ends);
    let mut journals = Vec::new();
    for one in &mut cluster.instances {
        // What an attempt ends with is on the disk a moment later.
        let ended = one.process.stop().await;
        assert_eq!(ended.code(), Some(0), "{}: {}", cluster.told, one.process.tail());
        journals.push(one.dir.join("../state"));
    }
    let wrong = fault_record::complaints(&journals, &report.servers);
    assert!(wrong.is_empty(), "{}: {}", cluster.told, wrong.join("\n"));
    cluster.fleet.stop().await;
}
