//! What must hold of every row of the fault matrix at its end.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use quartermaster::emulate::Phase;

use super::fault_stage::{CONNECTIONS, Cause, Stage};

/// The reply to a `configure` reached the provisioner's socket, but a part that had it in its hands ended: before it was
/// noted, or, when the part hung, up to some seconds after. By `end - reply`, in milliseconds.
const LOST_WITH_A_PART: RangeInclusive<i64> = -6_000..=2_000;
/// Where no relay could read along: the reply went out while the broker was going down, or up again. By `end - configure`.
const LOST_WITH_THE_BROKER: RangeInclusive<i64> = -1_000..=1_000;

/// How much more memory an idle provisioner may hold after the rounds than before: five hundred servers in its list, what it
/// remembers of their attempts, and what the allocator keeps.
const MEMORY: u64 = 24 << 20;
/// How many more files: what is being reconnected or served at the very moment.
const FILES: usize = 3;
/// How many more threads: a pool of the runtime grows when it is first needed.
const THREADS: usize = 6;

impl Stage {
    /// Zero lost, none configured once too often, and nothing is held on to.
    pub async fn judge(mut self) {
        self.calm_down().await;
        self.nobody_is_lost();
        self.nobody_was_configured_twice();
        self.idle().await;
        self.nothing_is_held().await;
        self.fleet.stop().await;
    }

    fn nobody_is_lost(&self) {
        let report = self.fleet.report();
        for (name, server) in &report.servers {
            let expected = if self.gone.contains(name) { Phase::Vanished } else { Phase::Provisioned };
            assert_eq!(server.record.phase, expected, "{}: {name}: {server:?}", self.told());
        }
        let unhappy: Vec<_> =
            report.servers.iter().filter(|(_, server)| server.record.complaints > 0).collect();
        assert!(unhappy.is_empty(), "{}: {unhappy:#?}", self.told());
    }

    fn nobody_was_configured_twice(&self) {
        let report = self.fleet.report();
        let (mut lost, mut excused, mut wrong) = (0, 0, Vec::new());
        for (name, server) in &report.servers {
            for (earlier, later) in server.record.repetitions() {
                let encrypted = self.row.issuer;
                let delivered =
                    self.witness.delivered(&earlier.request).or(encrypted.then_some(earlier.at_ms));
                match delivered {
                    None => lost += 1,
                    Some(at) if encrypted && self.ended(Cause::Broker, at, LOST_WITH_THE_BROKER) => lost += 1,
                    Some(at) if self.ended(Cause::Part, at, LOST_WITH_A_PART) => excused += 1,
                    Some(at) => wrong.push(format!(
                        "{name}: configured at {} and again at {}, though the reply was handed over at {at}",
                        earlier.at_ms, later.at_ms
                    )),
                }
            }
        }
        let totals = report.totals;
        eprintln!(
            "{}: {} configures of {} servers, {} repeated: {lost} replies lost on the way, {excused} with their receiver; {} \
             power cuts, {} withheld by servers, {} ends",
            self.told(),
            totals.configures,
            totals.servers,
            totals.repeated_configures,
            totals.power_cuts,
            totals.lost_replies,
            self.ends.len(),
        );
        assert!(wrong.is_empty(), "{}: {}\n{:?}", self.told(), wrong.join("\n"), self.ends);
    }

    fn ended(&self, cause: Cause, at: i64, window: RangeInclusive<i64>) -> bool {
        self.ends.iter().any(|end| end.cause == cause && window.contains(&(end.at_ms - at)))
    }

    /// Once what is on its way out has gone.
    async fn nothing_is_held(&self) {
        let before = self.before;
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let now = self.provisioner.held();
            let flat = now.files <= before.files + FILES
                && now.threads <= before.threads + THREADS
                && now.children == 0
                && now.resident <= before.resident + MEMORY;
            let (ours, theirs) = self.connections();
            if flat && ours == 1 && theirs == CONNECTIONS {
                eprintln!("{}: {before:?} before, {now:?} after", self.told());
                return;
            }
            assert!(
                Instant::now() < end,
                "{}: it held {before:?} and holds {now:?}; it has {ours} connections, the servers {theirs}",
                self.told()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The provisioner's connections at the brokers, and those of others.
    pub fn connections(&self) -> (usize, usize) {
        let names: Vec<String> = (0..self.brokers.len()).flat_map(|broker| self.names_at(broker)).collect();
        let ours = names.iter().filter(|name| name.starts_with("provisioner")).count();
        (ours, names.len() - ours)
    }

    fn names_at(&self, broker: usize) -> Vec<String> {
        let connz = self.brokers[broker].monitor("/connz?limit=10000");
        let list = connz["connections"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}
