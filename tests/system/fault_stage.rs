//! One row of the fault matrix: brokers, relays, five hundred emulated servers, the provisioner as a process of its own, and
//! fifty rounds in which something breaks each time.
//!
//! `QM_FAULT_SEED`, `QM_FAULT_ROUNDS` and `QM_FAULT_SERVERS` repeat or change a run; a failure tells the seed.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, PrepareSettings, prepare,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use super::fault_child::{ENDINGS, Held, PARTS, Program, Provisioner};
use super::support::proxy::{Proxy, Witness, now_ms};
use super::support::{Broker, BrokerOptions, append, eventually};

/// How long a whole row may take to calm down.
pub const CALM: Duration = Duration::from_mins(3);
/// Connections that the servers of a row share.
pub const CONNECTIONS: usize = 5;
/// Servers that warm the provisioner up before the first round.
const WARM: usize = 20;
/// How many servers may be lost for good in a row.
const GONE: usize = 10;

/// What a row is like.
pub struct Row {
    pub name: &'static str,
    /// One broker, or two to choose from.
    pub brokers: Vec<BrokerOptions>,
    /// Protocol 2 with an organisation issuer over TLS; else protocol 1 in clear text.
    pub issuer: bool,
    /// Servers make keys and get tokens for them.
    pub keys: bool,
    /// Faults of the servers.
    pub faults: &'static str,
    /// User and password of the servers at the broker.
    pub user: Option<(String, String)>,
    /// Lines for the YAML file.
    pub yaml: &'static str,
    /// Lines for choria.cfg; `DIR` is where [`Stage::path`] leads.
    pub choria: &'static str,
    /// The first content of `ca.pem` there.
    pub authority: Option<String>,
    /// Shell lines that the helper runs before it answers, with `DIR` as well.
    pub helper: &'static str,
    /// Random kills of the broker, besides the row's own.
    pub kill_broker: bool,
    /// Its brokers freeze, and wake.
    pub freezes: bool,
    /// In how many of the first rounds the provisioner is the program as it is shipped; half of them where it is not said.
    pub shipped: Option<usize>,
}

impl Row {
    /// A row with one broker in a plain network, whose servers have no faults.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            brokers: vec![BrokerOptions::new().extra("max_pending: 256MB")],
            issuer: false,
            keys: true,
            faults: "",
            user: None,
            yaml: "",
            choria: "",
            authority: None,
            helper: "",
            kill_broker: true,
            freezes: false,
            shipped: None,
        }
    }
}

/// Something ended that may have cost a reply.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Unix milliseconds.
    pub at_ms: i64,
    pub cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A part of the provisioner that may have had the reply in its hands.
    Part,
    /// The whole provisioner.
    Process,
    /// The broker, or every connection to it.
    Broker,
}

/// A running row.
pub struct Stage {
    pub row: Row,
    pub seed: u64,
    pub rng: StdRng,
    pub rounds: usize,
    pub servers: usize,
    pub brokers: Vec<Broker>,
    pub proxies: Vec<Proxy>,
    pub witness: Witness,
    pub provisioner: Provisioner,
    pub fleet: FleetHandle,
    /// Servers that were taken away for good.
    pub gone: BTreeSet<String>,
    pub ends: Vec<End>,
    /// What the provisioner held on to, idle, before the first round.
    pub before: Held,
    monitor: u16,
    folder: PathBuf,
    round: usize,
    /// Which program the provisioner is at the moment.
    program: Program,
    /// The round since which it runs.
    pub started: usize,
    /// How often the whole provisioner was killed: the obeying one, and the one that is shipped.
    pub kills: [usize; 2],
    on: usize,
    dir: TempDir,
}

/// A number from the environment.
pub fn asked<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

impl Stage {
    /// Starts everything and lets twenty servers through; none when there is no broker to be had.
    pub async fn start(row: Row) -> Option<Self> {
        let seed = asked("QM_FAULT_SEED").unwrap_or_else(rand::random);
        let (rounds, servers) =
            (asked("QM_FAULT_ROUNDS").unwrap_or(50), asked("QM_FAULT_SERVERS").unwrap_or(500));
        eprintln!("{}: QM_FAULT_SEED={seed}, {rounds} rounds, {servers} servers", row.name);
        let mut brokers = Vec::new();
        for options in &row.brokers {
            brokers.push(options.clone().start()?);
        }
        let witness = Witness::default();
        let mut proxies = Vec::new();
        for broker in &brokers {
            proxies.push(Proxy::start(broker.port(), (!row.issuer).then(|| witness.clone())).await);
        }
        let dir = tempfile::tempdir().unwrap();
        let address = |port: u16| format!("127.0.0.1:{port}");
        let settings = PrepareSettings {
            broker: address(proxies[0].port()),
            workers: Some(4),
            ..PrepareSettings::default()
        };
        let prepared = prepare(dir.path(), &settings).unwrap();
        let files = if row.issuer { prepared.issuer } else { prepared.plain };
        let monitor = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        append(
            &files.config,
            &format!(
                "listen: 127.0.0.1:{monitor}\nstate_dir: {}\nretry: {{first: 300ms, cap: 1s}}\n{}\n",
                dir.path().join("state").display(),
                row.yaml
            ),
        );
        if !row.keys {
            super::support::replace(&files.config, "  ed25519: true\n", "");
        }
        let hosts: Vec<String> = proxies.iter().map(|proxy| address(proxy.port())).collect();
        super::support::replace(
            &files.choria_config,
            &format!("nats://{}", hosts[0]),
            &hosts.iter().map(|host| format!("nats://{host}")).collect::<Vec<_>>().join(","),
        );
        let text = std::fs::read_to_string(&files.helper).unwrap();
        let of_dir = |text: &str| text.replace("DIR", dir.path().to_str().unwrap());
        append(&files.choria_config, &format!("{}\n", of_dir(row.choria)));
        if let Some(authority) = &row.authority {
            std::fs::write(dir.path().join("ca.pem"), authority).unwrap();
        }
        let also = of_dir(row.helper);
        std::fs::write(&files.helper, text.replacen("printf", &format!("{also}\nprintf"), 1)).unwrap();
        let log = dir.path().join("log");
        let mut provisioner = Provisioner::start(Program::Obeying, &files.dir, monitor, &log);
        eventually("the provisioner is connected", || {
            provisioner.assert_alive();
            provisioner.is_connected()
        })
        .await;

        let mut fleet = FleetSettings::new(Network::load(&files.dir).unwrap(), "", servers + WARM);
        fleet.brokers = brokers.iter().map(Broker::url).collect();
        fleet.tls = row.issuer;
        fleet.connections = CONNECTIONS;
        fleet.restart_delay = Some(Duration::from_millis(50));
        fleet.patience = Duration::from_millis(if row.issuer { 1000 } else { 300 });
        fleet.user.clone_from(&row.user);
        fleet.faults = FaultPlan::parse(row.faults).unwrap();
        fleet.powered_off = true;
        fleet.seed = seed;
        let fleet = Fleet::start(fleet).await.unwrap();
        let before = provisioner.held();
        let mut stage = Self {
            row,
            seed,
            rng: StdRng::seed_from_u64(seed),
            rounds,
            servers: servers + WARM,
            brokers,
            proxies,
            witness,
            provisioner,
            fleet,
            gone: BTreeSet::new(),
            ends: Vec::new(),
            before,
            monitor,
            folder: files.dir.clone(),
            round: 0,
            program: Program::Obeying,
            started: 0,
            kills: [0; 2],
            on: 0,
            dir,
        };
        stage.power_on(WARM).await;
        let done = |stats: &quartermaster::emulate::FleetStats| stats.provisioned == WARM as u64;
        if let Err(error) = stage.fleet.wait_until(CALM, done).await {
            panic!("{}: {error}\n{}", stage.told(), stage.provisioner.tail());
        }
        stage.idle().await;
        stage.before = stage.provisioner.held();
        Some(stage)
    }

    /// How to repeat this run.
    pub fn told(&self) -> String {
        format!("{} with QM_FAULT_SEED={}", self.row.name, self.seed)
    }

    /// Where things of this row may be written.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The next servers are switched on.
    pub async fn power_on(&mut self, count: usize) {
        for _ in 0..count.min(self.servers - self.on) {
            self.on += 1;
            let name = server(self.on);
            eventually("the order is taken", || self.fleet.power_on(&name)).await;
        }
    }

    /// Runs the rounds: servers are switched on, the row does what it is about, something else breaks as well.
    pub async fn rounds(&mut self, mut disturb: impl AsyncFnMut(&mut Self, usize)) {
        for round in 0..self.rounds {
            let left = self.servers - self.on;
            self.power_on(left.div_ceil(self.rounds - round)).await;
            self.round = round;
            if self.program() != self.program {
                self.kill_provisioner();
                self.connected().await;
            }
            disturb(self, round).await;
            self.break_something();
            self.provisioner.assert_alive();
            self.breathe().await;
        }
    }

    /// Lets a few servers get somewhere, for a moment at most.
    async fn breathe(&self) {
        let before = self.fleet.stats().configures;
        let _ =
            self.fleet.wait_until(Duration::from_millis(300), |stats| stats.configures >= before + 5).await;
    }

    /// Breaks one thing, drawn from all that can be.
    pub fn break_something(&mut self) {
        match self.rng.random_range(0..12) {
            0 if self.row.kill_broker => {
                let which = self.rng.random_range(0..self.brokers.len());
                self.restart_broker(which);
            }
            1 | 2 => {
                self.provisioner.kill_helpers(3);
            }
            3..6 => {
                let part = PARTS[self.rng.random_range(0..PARTS.len())];
                let ending = ENDINGS[self.rng.random_range(0..ENDINGS.len())];
                if !self.provisioner.obeys() {
                    return self.kill_provisioner();
                }
                self.provisioner.strike(part, ending);
                // The others hold no reply to a `configure` that they could lose.
                if ["link", "fleet", "hosts"].contains(&part) {
                    self.ends.push(End { at_ms: now_ms(), cause: Cause::Part });
                }
            }
            6..9 => {
                for _ in 0..self.rng.random_range(1..=5) {
                    let victim = server(self.rng.random_range(1..=self.on));
                    let down = Duration::from_millis(self.rng.random_range(100..2000));
                    self.fleet.cut_power(&victim, Some(down));
                }
            }
            9 if self.gone.len() < GONE => {
                let victim = server(self.rng.random_range(1..=self.on));
                if self.fleet.cut_power(&victim, None) {
                    self.gone.insert(victim);
                }
            }
            10 => self.kill_provisioner(),
            _ => {}
        }
    }

    /// The program that this round wants.
    fn program(&self) -> Program {
        let shipped = self.row.shipped.unwrap_or(self.rounds / 2);
        if self.round < shipped { Program::Shipped } else { Program::Obeying }
    }

    /// SIGKILL, and a new one with the same files.
    fn kill_provisioner(&mut self) {
        let began = now_ms();
        self.provisioner.kill();
        // Until it is gone it may take a reply; with many threads on a busy machine that is a while.
        self.was_away(Cause::Process, began);
        let (program, log) = (self.program(), self.dir.path().join("log"));
        self.provisioner = Provisioner::start(program, &self.folder, self.monitor, &log);
        self.kills[usize::from(self.program == Program::Shipped)] += 1;
        self.program = program;
        self.started = self.round;
    }

    /// Waits until the provisioner is connected.
    async fn connected(&mut self) {
        eventually("the provisioner is connected", || {
            self.provisioner.assert_alive();
            self.provisioner.is_connected()
        })
        .await;
    }

    /// Something happened to the broker just now.
    pub fn note_broker(&mut self) {
        self.ends.push(End { at_ms: now_ms(), cause: Cause::Broker });
    }

    /// SIGKILL, and a new one on the same ports.
    pub fn restart_broker(&mut self, which: usize) {
        let began = now_ms();
        tokio::task::block_in_place(|| self.brokers[which].restart());
        self.was_away(Cause::Broker, began);
    }

    /// As [`Self::restart_broker`], with another configuration.
    pub fn restart_broker_with(&mut self, which: usize, options: BrokerOptions) {
        let began = now_ms();
        tokio::task::block_in_place(|| self.brokers[which].restart_with(options));
        self.was_away(Cause::Broker, began);
    }

    /// It ended at some moment between then and now.
    fn was_away(&mut self, cause: Cause, began: i64) {
        self.ends.extend([began, now_ms()].map(|at_ms| End { at_ms, cause }));
    }

    /// Waits until every server that is there is an ordinary server again.
    pub async fn calm_down(&self) {
        let servers = self.servers as u64;
        let done = |stats: &quartermaster::emulate::FleetStats| stats.provisioned + stats.vanished == servers;
        if let Err(error) = self.fleet.wait_until(CALM, done).await {
            let status = self.provisioner.status().unwrap_or_default();
            panic!("{}: {error}\n{status:#}\n{}", self.told(), self.provisioner.tail());
        }
    }

    /// Waits until the provisioner has nothing to do and no child.
    pub async fn idle(&mut self) {
        eventually("the provisioner is idle", || {
            self.provisioner.assert_alive();
            let status = self.provisioner.status().unwrap_or_default();
            status["fleet"]["in_flight"] == 0
                && status["fleet"]["queued"] == 0
                && self.provisioner.held().children == 0
        })
        .await;
    }

    /// Looks until the condition holds, for longer than [`eventually`] does.
    pub async fn in_time(&self, what: &str, limit: Duration, mut condition: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + limit;
        while !condition(self) {
            assert!(
                Instant::now() < end,
                "{}: not within {limit:?}: {what}\n{}",
                self.told(),
                self.provisioner.tail()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The name of a server, counted from 1.
pub fn server(number: usize) -> String {
    format!("node{number}.example.net")
}
