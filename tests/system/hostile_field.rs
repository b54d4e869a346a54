//! A provisioner, good servers and hostile ones in one network, and what must hold of each of them.

use std::collections::BTreeMap;
use std::time::Duration;

use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, Phase, PrepareSettings, prepare,
};
use serde_json::Value;

use super::support::{Authority, Broker, BrokerOptions, Daemon, append, replace};

/// How many good servers stand among the hostile ones.
const GOOD: usize = 10;

/// What must become of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Provisioned like any other: what it does wrong harms nobody.
    Provisioned,
    /// Its cycle fails for this cause, and the log says this. Nothing is configured; the helper is not asked.
    Refused(&'static str, &'static str),
    /// As [`Fate::Refused`], but the helper has been asked by then.
    Decided(&'static str, &'static str),
    /// As [`Fate::Decided`], but it has taken its configuration and reports it wrongly.
    Misreported(&'static str, &'static str),
    /// Somebody else has its lock.
    Busy,
    /// Configured and restarted, and back in provisioning mode.
    CameBack,
    /// Nothing is heard of it for as long as the test looks.
    Quiet,
}

/// One kind of hostile server: the fault of the emulator, and what must become of such a server.
pub type Row = (&'static str, Fate);

/// Which network a field is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Protocol 1, clear text, unsigned, tokens and Ed25519 keys.
    Plain,
    /// Protocol 1, clear text, unsigned, tokens and certificate requests.
    PlainPki,
    /// Protocol 2 over TLS with an organisation issuer.
    Issuer,
}

/// The network with everything in it.
pub struct Field {
    /// Goes last.
    broker: Broker,
    /// The provisioner.
    pub daemon: Daemon,
    /// The servers, `node1.example.net` and so on.
    pub fleet: FleetHandle,
    /// Servers with names of their own.
    pub strangers: Vec<(String, FleetHandle)>,
    dir: tempfile::TempDir,
}

/// The name of a server of the fleet, counted from 1.
pub fn node(number: usize) -> String {
    format!("node{number}.example.net")
}

impl Field {
    /// Starts everything: one server for each row, good ones after them, and one for each of `names`. None, after a line
    /// that says so, when there is no broker here.
    pub async fn start(
        kind: Kind,
        rows: &[Row],
        names: &[&str],
        change: impl FnOnce(&NetworkFiles),
    ) -> Option<Self> {
        let authority = Authority::new("field");
        let broker = match kind {
            Kind::Issuer => BrokerOptions::new().tls(&authority).start()?,
            Kind::Plain | Kind::PlainPki => BrokerOptions::new().start()?,
        };
        let dir = tempfile::tempdir().unwrap();
        let broker_address = format!("127.0.0.1:{}", broker.port());
        let settings = PrepareSettings { broker: broker_address, ..PrepareSettings::default() };
        let prepared = prepare(dir.path(), &settings).unwrap();
        let files = if kind == Kind::Issuer { prepared.issuer } else { prepared.plain };
        // One attempt for each server: the next one comes long after the test.
        append(&files.config, "listen: 127.0.0.1:0\nretry:\n  first: 10m\n");
        if kind == Kind::PlainPki {
            replace(&files.config, "  ed25519: true", "  pki: true");
        }
        // The helper writes down whom it was asked about.
        let runs = dir.path().join("runs");
        std::fs::write(&runs, "").unwrap();
        let noted = format!("printf '%s\\n' \"$identity\" >> {}\nprintf '%s\\n' \"{{", runs.display());
        replace(&files.helper, "printf '%s\\n' \"{", &noted);
        change(&files);

        let network = Network::load(&files.dir).unwrap();
        let fleet = |servers: usize| {
            let mut settings = FleetSettings::new(network.clone(), broker.url(), servers);
            settings.tls = kind == Kind::Issuer;
            settings.restart_delay = Some(Duration::from_millis(50));
            settings
        };
        let mut settings = fleet(rows.len() + GOOD);
        let faults =
            rows.iter().enumerate().map(|(index, (fault, _))| format!("{fault}=@{}", node(index + 1)));
        settings.faults = FaultPlan::parse(&faults.collect::<Vec<_>>().join(",")).unwrap();
        let daemon = Daemon::start(&files);
        let fleet_handle = Fleet::start(settings).await.unwrap();
        let mut strangers = Vec::new();
        for name in names {
            let mut settings = fleet(1);
            (*name).clone_into(&mut settings.identity_format);
            strangers.push(((*name).to_owned(), Fleet::start(settings).await.unwrap()));
        }
        Some(Self { broker, daemon, fleet: fleet_handle, strangers, dir })
    }

    /// Publishes the startup event of a server with this name, which need not be one.
    pub async fn announce(&self, name: &str) {
        let client = async_nats::connect(self.broker.url()).await.unwrap();
        let event = serde_json::json!({
            "protocol": "io.choria.lifecycle.v1.startup", "id": name, "identity": name,
            "component": "provision_mode_server", "timestamp": 1_795_976_868, "version": "0.30.0",
        });
        let subject = "choria.lifecycle.event.startup.provision_mode_server";
        client.publish(subject, event.to_string().into()).await.unwrap();
        client.flush().await.unwrap();
    }

    /// Waits until everything has happened that the rows foretell, then holds everything against them.
    pub async fn check(mut self, rows: &[Row], fate_of_names: Fate) {
        self.daemon.listens().await;
        let mut fates: Vec<(String, &str, Fate)> =
            rows.iter().enumerate().map(|(index, (fault, fate))| (node(index + 1), *fault, *fate)).collect();
        fates.extend(
            (rows.len() + 1..=rows.len() + GOOD).map(|number| (node(number), "none", Fate::Provisioned)),
        );
        fates.extend(self.strangers.iter().map(|(name, _)| (name.clone(), "its name", fate_of_names)));

        let end = std::time::Instant::now() + Duration::from_mins(2);
        loop {
            self.daemon.assert_alive();
            let lines = self.daemon.lines();
            let left: Vec<_> =
                fates.iter().filter(|(name, _, fate)| !self.is_over(name, *fate, &lines)).cloned().collect();
            if left.is_empty() {
                break;
            }
            assert!(std::time::Instant::now() < end, "still unfinished: {left:#?}\n{}", self.story(&left));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let lines = self.daemon.lines();
        let runs = std::fs::read_to_string(self.dir.path().join("runs")).unwrap();
        let wrong: Vec<String> = fates
            .iter()
            .filter_map(|(name, fault, fate)| self.judge(name, fault, *fate, &lines, &runs))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));

        // Both are written one after the other, so the counters may be a moment behind the log.
        let expected = Self::expected_ends(&fates);
        let mut counted = BTreeMap::new();
        for _ in 0..50 {
            counted = self.daemon.metric("quartermaster_cycle_ends_total", "cause");
            counted.retain(|_, count| *count > 0);
            if counted == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(counted, expected, "endings by cause");

        let log = self.daemon.stderr();
        let raw: Vec<_> = log.lines().filter(|line| line.contains(|c: char| c.is_control())).collect();
        assert!(raw.is_empty(), "control characters in the log: {raw:?}");
        self.daemon.assert_alive();
        assert_eq!(self.daemon.get("/healthz").0, 200);
        assert_eq!(self.daemon.get("/readyz").0, 200);
        let panics = self.daemon.metric("quartermaster_actor_endings_total", "cause");
        assert_eq!(panics["panicked"], 0, "an actor panicked");
    }

    fn record(&self, name: &str) -> quartermaster::emulate::ServerRecord {
        let stranger = self.strangers.iter().find(|(known, _)| known == name).map(|(_, fleet)| fleet);
        stranger.unwrap_or(&self.fleet).server(name).unwrap().record
    }

    fn is_over(&self, name: &str, fate: Fate, lines: &[Value]) -> bool {
        let failed = || lines.iter().any(|line| line["host"] == name && is_ending(line));
        match fate {
            Fate::Provisioned => self.record(name).phase == Phase::Provisioned,
            Fate::Quiet => true,
            _ => failed(),
        }
    }

    fn expected_ends(fates: &[(String, &str, Fate)]) -> BTreeMap<String, u64> {
        let mut ends = BTreeMap::new();
        for (_, _, fate) in fates {
            let causes: &[&str] = match fate {
                Fate::Provisioned => &["provisioned"],
                Fate::Refused(cause, _) | Fate::Decided(cause, _) | Fate::Misreported(cause, _) => &[cause],
                Fate::Busy => &["busy"],
                Fate::CameBack => &["provisioned", "came_back"],
                Fate::Quiet => &[],
            };
            for cause in causes {
                *ends.entry((*cause).to_owned()).or_default() += 1;
            }
        }
        ends
    }

    /// What is wrong about one server; none when all is well.
    fn judge(&self, name: &str, fault: &str, fate: Fate, lines: &[Value], runs: &str) -> Option<String> {
        let record = self.record(name);
        let endings: Vec<_> = lines.iter().filter(|line| line["host"] == name && is_ending(line)).collect();
        let ran = runs.lines().filter(|line| *line == name).count();
        let mut wrong = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                wrong.push(what);
            }
        };
        let (configures, helper, cause, reason) = match fate {
            Fate::Provisioned => (1, 1, None, ""),
            Fate::Refused(cause, reason) => (0, 0, Some(cause), reason),
            Fate::Decided(cause, reason) => (0, 1, Some(cause), reason),
            Fate::Misreported(cause, reason) => (record.configures.max(1), 1, Some(cause), reason),
            Fate::Busy => (0, 0, Some("busy"), "Another provisioner holds the lock of"),
            Fate::CameBack => {
                (1, 1, Some("came_back"), "it came back in provisioning mode after its restart")
            }
            Fate::Quiet => (0, 0, None, ""),
        };
        must(record.configures == configures, format!("configured {} times", record.configures));
        must(ran == helper, format!("the helper ran {ran} times"));
        match (cause, endings.as_slice()) {
            (None, []) => {}
            (Some(cause), [line]) => {
                must(line["cause"] == cause, format!("the cause is {}", line["cause"]));
                let message = line["msg"].as_str().unwrap_or_default();
                must(message.contains(reason), format!("the log says: {message}"));
            }
            (_, found) => must(false, format!("{} endings are logged: {found:?}", found.len())),
        }
        if fate == Fate::Provisioned {
            must(record.complaints == 0, format!("it complains: {:?}", record.last_error));
        }
        (!wrong.is_empty()).then(|| format!("{name} ({fault}): {}", wrong.join("; ")))
    }

    fn story(&self, left: &[(String, &str, Fate)]) -> String {
        let of_them = |line: &&Value| left.iter().any(|(name, ..)| line["host"] == name.as_str());
        let lines = self.daemon.lines();
        let told: Vec<String> = lines.iter().filter(of_them).map(Value::to_string).collect();
        told.join("\n")
    }
}

/// The line that says that a cycle has failed.
fn is_ending(line: &Value) -> bool {
    line.get("retry_in").is_some()
}
