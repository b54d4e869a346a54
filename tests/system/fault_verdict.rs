//! What must hold of every row of the fault matrix at its end.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use quartermaster::emulate::{Phase, ServerReport};

use super::fault_record;
use super::fault_stage::{CONNECTIONS, Cause, Stage};

/// The reply to a `configure` reached the provisioner's socket, but what had it in its hands ended before it had noted it; a part
/// that hangs loses what arrives until it is replaced, some seconds later. By `end - reply`, in milliseconds: a busy machine
/// may take a second to read and note a reply.
const LOST_WITH_A_PART: RangeInclusive<i64> = -6_000..=1_000;
const LOST_WITH_THE_PROCESS: RangeInclusive<i64> = -100..=1_000;
/// Requests whose connection is gone are given up after half a second, in these rows, and protocol 1 tells the second in which
/// one was sent.
const GIVEN_UP_MS: i64 = 1_500;
/// The reply went out while the broker was going down, or up again: what was written to a connection that ends is not always
/// read from it. By `end - reply`, or `end - configure` where no relay could read along.
const LOST_WITH_THE_BROKER: RangeInclusive<i64> = -1_000..=1_000;
/// A broker that was frozen hands over what it held when it wakes, two seconds later, to a connection that was given up.
const LOST_WITH_A_FROZEN_BROKER: RangeInclusive<i64> = -2_600..=1_000;

/// How much more memory an idle provisioner may hold after the rounds than before: five hundred servers in its list, what it
/// remembers of their attempts, what their helpers said last, and what the allocator keeps of floods on a busy machine.
const MEMORY: u64 = 128 << 20;
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
        let ended = self.provisioner.stop().await;
        assert_eq!(ended.code(), Some(0), "{}: {}", self.told(), self.provisioner.tail());
        self.nobody_was_configured_twice_by_the_record();
        self.fleet.stop().await;
    }

    /// What the provisioner noted of its attempts explains every `configure` after the first.
    fn nobody_was_configured_twice_by_the_record(&self) {
        let wrong = fault_record::complaints(&[self.path("state")], &self.fleet.report().servers);
        assert!(wrong.is_empty(), "{}: {}", self.told(), wrong.join("\n"));
    }

    fn nobody_is_lost(&self) {
        let report = self.fleet.report();
        for (name, server) in &report.servers {
            let expected = if self.gone.contains(name) { Phase::Vanished } else { Phase::Provisioned };
            assert_eq!(server.record.phase, expected, "{}: {name}: {server:?}", self.told());
        }
        // A key that a late request replaced is noticed before the restart, and the server configured anew.
        let last_bad = |one: &&ServerReport| one.record.configured.last().is_some_and(|last| last.complaint);
        let unhappy: Vec<_> = report.servers.values().filter(last_bad).collect();
        assert!(unhappy.is_empty(), "{}: {unhappy:#?}", self.told());
    }

    fn nobody_was_configured_twice(&self) {
        let report = self.fleet.report();
        let (mut lost, mut excused, mut wrong) = (0, 0, Vec::new());
        let with_broker = if self.row.freezes { LOST_WITH_A_FROZEN_BROKER } else { LOST_WITH_THE_BROKER };
        for (name, server) in &report.servers {
            for (earlier, later) in server.record.repetitions() {
                let encrypted = self.row.issuer;
                // A reply that a broker held back until the request was given up is as good as lost.
                let in_time = |at: &i64| at - earlier.sent_ms < GIVEN_UP_MS && *at <= later.at_ms;
                let delivered = self.witness.delivered(&earlier.request).filter(in_time);
                let delivered = delivered.or(encrypted.then_some(earlier.at_ms));
                match delivered {
                    None => lost += 1,
                    Some(at) if self.ended(Cause::Broker, at, with_broker.clone()) => lost += 1,
                    Some(at) if self.ended(Cause::Part, at, LOST_WITH_A_PART) => excused += 1,
                    Some(at) if self.ended(Cause::Process, at, LOST_WITH_THE_PROCESS) => excused += 1,
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
             power cuts, {} withheld by servers, {} ends, {} shipped provisioners killed and {} others, the last one ran since \
             round {}",
            self.told(),
            totals.configures,
            totals.servers,
            totals.repeated_configures,
            totals.power_cuts,
            totals.lost_replies,
            self.ends.len(),
            self.kills[1],
            self.kills[0],
            self.started,
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

    /// The provisioner's connections at one of the brokers.
    pub fn ours_at(&self, broker: usize) -> usize {
        self.names_at(broker).iter().filter(|name| name.starts_with("provisioner")).count()
    }

    fn names_at(&self, broker: usize) -> Vec<String> {
        let connz = self.brokers[broker].monitor("/connz?limit=10000");
        let list = connz["connections"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}
