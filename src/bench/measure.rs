//! One run: everything started anew, warmed up, measured and ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{ChildStdout, Command};
use tokio::time::Instant;

use super::contender::{Contender, filled};
use super::figures::{Consumption, Figures};
use super::latency;
use super::probe::Probe;
use super::setting::Setting;
use crate::emulate::{NetworkFiles, PrepareSettings, Prepared, prepare};
use crate::stage::{
    Progress, Running, Sample, StageError, Usage, View, free_port, quiet_port, set_key, wait_for_metrics,
};

/// A provisioner ends its work in hand before it goes.
pub(super) const GRACE: Duration = Duration::from_secs(15);
const START_LIMIT: Duration = Duration::from_secs(30);
const WARM_LIMIT: Duration = Duration::from_mins(2);
/// How often the provisioner is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long the provisioner may take to notice that the last servers are back.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);
/// More than the helper takes, for one that is made slow.
const HELPER_MARGIN: Duration = Duration::from_secs(30);

/// Programs and places of a measurement.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// This program.
    pub(super) own: PathBuf,
    /// The broker: a nats-server, or the words of another command.
    pub(super) broker: BrokerProgram,
}

/// The broker to start.
#[derive(Debug, Clone)]
pub(super) enum BrokerProgram {
    /// nats-server.
    Nats(PathBuf),
    /// `{choria_broker_config}` and `{broker_config}` stand for its files.
    Other(Vec<String>),
}

/// The processes of a run; ended in the reverse of the order they were started in.
#[derive(Default)]
pub(super) struct Children {
    broker: Option<Running>,
    pub(super) provisioner: Option<Running>,
    pub(super) fleet: Option<Running>,
    lone: Option<Running>,
}

impl Children {
    /// Ends all of them, by their numbers.
    pub(super) async fn stop(&mut self) {
        let children = [&mut self.lone, &mut self.fleet, &mut self.provisioner, &mut self.broker];
        for child in children {
            if let Some(mut running) = child.take() {
                running.stop(GRACE).await;
            }
        }
    }
}

/// Where a run takes place.
pub(super) struct Place {
    pub(super) network: NetworkFiles,
    /// The port of the provisioner's metrics.
    monitor: u16,
    /// The broker's port.
    port: u16,
}

/// What is followed while it runs.
struct Counters {
    lines: Lines<BufReader<ChildStdout>>,
    told: Value,
}

impl Counters {
    fn of(fleet: &mut Running) -> Option<Self> {
        Some(Self { lines: BufReader::new(fleet.stdout()?).lines(), told: Value::Null })
    }

    /// The next line of the fleet; false when it has none any more.
    async fn next(&mut self) -> bool {
        let Ok(Some(line)) = self.lines.next_line().await else { return false };
        if let Ok(told) = serde_json::from_str(&line) {
            self.told = told;
        }
        true
    }

    fn count(&self, name: &str) -> u64 {
        self.told
            .get("totals")
            .and_then(|totals| totals.get(name))
            .and_then(Value::as_u64)
            .unwrap_or_default()
    }

    fn took(&self, name: &str) -> Option<Duration> {
        self.told.get(name).and_then(Value::as_u64).map(Duration::from_millis)
    }
}

/// One measurement under way.
pub(super) struct Run<'a> {
    pub(super) programs: &'a Programs,
    pub(super) setting: &'a Setting,
    pub(super) contender: &'a Contender,
    /// For this run alone.
    pub(super) dir: &'a Path,
    pub(super) view: &'a mut View,
}

impl Run<'_> {
    /// Measures. What was started is in `children` and still runs.
    pub(super) async fn measure(&mut self, children: &mut Children) -> Result<Figures, StageError> {
        let place = self.stage(children).await?;
        let network = &place.network;
        if self.setting.discovered() {
            let mut counters = self.start_fleet(network, children)?;
            while counters.count("servers") == 0 || counters.count("down") > 0 {
                self.next(&mut counters, children).await?;
            }
            let probe = self.start_provisioner(&place, children).await?;
            self.follow(counters, probe, (Usage::default(), Usage::default()), network, children).await
        } else {
            let mut probe = self.start_provisioner(&place, children).await?;
            self.warm_up(network).await?;
            probe.ask().await;
            probe.forget();
            let used =
                |running: &Option<Running>| running.as_ref().and_then(Running::usage).unwrap_or_default();
            let before = (used(&children.provisioner), used(&children.broker));
            let counters = self.start_fleet(network, children)?;
            self.follow(counters, probe, before, network, children).await
        }
    }

    /// Writes the network's files and starts its broker.
    pub(super) async fn stage(&self, children: &mut Children) -> Result<Place, StageError> {
        let (port, monitor) = (quiet_port()?, free_port()?);
        let prepared = self.prepare(port, monitor)?;
        let network = match self.setting.network.as_str() {
            "issuer" => prepared.issuer.clone(),
            "x509" => prepared.x509.clone(),
            _ => prepared.plain.clone(),
        };
        self.configure(&network)?;
        children.broker = Some(self.start_broker(&prepared, port).await?);
        Ok(Place { network, monitor, port })
    }

    fn prepare(&self, port: u16, monitor: u16) -> Result<Prepared, StageError> {
        let settings = PrepareSettings {
            broker: format!("127.0.0.1:{port}"),
            workers: Some(self.setting.workers),
            monitor_port: Some(monitor),
            ..PrepareSettings::default()
        };
        prepare(self.dir, &settings).map_err(StageError::Prepare)
    }

    /// Helper and state of this measurement.
    fn configure(&self, network: &NetworkFiles) -> Result<(), StageError> {
        let setting = self.setting;
        let mut helper = match setting.helper.as_str() {
            // Another provisioner knows processes alone.
            "exec" | "provider" if setting.helper == "exec" || *self.contender != Contender::Ours => {
                if setting.network == "x509" {
                    network.helper.clone()
                } else {
                    network.dir.join("static.sh")
                }
            }
            "provider" => {
                set_key(&network.config, "helper_protocol", &"provider".into())?;
                let provider = network.dir.join("provider.sh");
                let own = self.programs.own.display();
                let call = format!("exec '{own}' bench --provide-as '{}' -- \"$@\"", network.dir.display());
                script(&provider, &call)?;
                provider
            }
            program => PathBuf::from(program),
        };
        let delay = Duration::from_millis(u64::try_from(setting.helper_delay_ms).unwrap_or(u64::MAX));
        if !delay.is_zero() {
            let slow = self.dir.join("slow.sh");
            script(&slow, &format!("sleep {}\nexec '{}'", delay.as_secs_f64(), helper.display()))?;
            helper = slow;
            if *self.contender == Contender::Ours {
                let limit = format!("{}s", (delay + HELPER_MARGIN).as_secs());
                set_key(&network.config, "helper_timeout", &limit.into())?;
            }
        }
        set_key(&network.config, "helper", &helper.to_string_lossy().into())?;
        if setting.state && *self.contender == Contender::Ours {
            set_key(&network.config, "state_dir", &self.dir.join("state").to_string_lossy().into())?;
        }
        Ok(())
    }

    async fn start_broker(&self, prepared: &Prepared, port: u16) -> Result<Running, StageError> {
        let command = match &self.programs.broker {
            BrokerProgram::Nats(program) => {
                let mut command = Command::new(program);
                command.arg("--config").arg(&prepared.broker_config);
                command
            }
            BrokerProgram::Other(words) => {
                let own = prepared.broker_config.to_string_lossy();
                let choria = prepared.choria_broker_config.to_string_lossy();
                filled(words, &[("{broker_config}", &own), ("{choria_broker_config}", &choria)])
            }
        };
        let mut broker = self.start("broker", command, false)?;
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::select! {
                how = broker.ended() => return Err(StageError::Ended { how, log: broker.tail(20) }),
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
            if begin.elapsed() > START_LIMIT {
                return Err(StageError::NotReady { what: "the broker did not start", log: broker.tail(20) });
            }
        }
        Ok(broker)
    }

    pub(super) async fn start_provisioner(
        &self,
        place: &Place,
        children: &mut Children,
    ) -> Result<Probe, StageError> {
        let Place { network, monitor, port } = place;
        let command = self.contender.command(&self.programs.own, network);
        let provisioner = children.provisioner.insert(self.start("provisioner", command, false)?);
        wait_for_metrics(provisioner, *monitor).await?;
        let broker = format!("nats://127.0.0.1:{port}");
        // Another broker lets nobody in without a login of its own.
        let askable =
            *self.contender == Contender::Ours && matches!(self.programs.broker, BrokerProgram::Nats(_));
        Ok(Probe::new(*monitor, askable.then_some(broker.as_str())).await)
    }

    pub(super) fn start(
        &self,
        name: &'static str,
        mut command: Command,
        piped: bool,
    ) -> Result<Running, StageError> {
        command.current_dir(self.dir);
        Ok(Running::start(name, command, self.dir, piped)?)
    }

    /// The command of a fleet in this network.
    pub(super) fn fleet(&self, network: &NetworkFiles, servers: usize, format: &str) -> Command {
        let mut command = Command::new(&self.programs.own);
        command.arg("emulate").arg("--json").args(["--interval", "250ms"]).arg("--network").arg(&network.dir);
        command.args(["--servers", &servers.to_string(), "--identity-format", format]);
        command
    }

    /// Provisions a few servers, so that nothing is done for the first time when it counts.
    async fn warm_up(&self, network: &NetworkFiles) -> Result<(), StageError> {
        if self.setting.warm_up == 0 {
            return Ok(());
        }
        let mut command = self.fleet(network, self.setting.warm_up, "warm{}.example.net");
        command.args(["--until-done", "--restart-delay", "100ms"]);
        let mut fleet = self.start("warm-up", command, false)?;
        if tokio::time::timeout(WARM_LIMIT, fleet.ended()).await.is_err() {
            let what = "the servers of the warm-up were not provisioned";
            let log = fleet.tail(5);
            fleet.stop(GRACE).await;
            return Err(StageError::NotReady { what, log });
        }
        Ok(())
    }

    fn start_fleet(&self, network: &NetworkFiles, children: &mut Children) -> Result<Counters, StageError> {
        let setting = self.setting;
        let mut command = self.fleet(network, setting.servers, "node{}.example.net");
        command.args(["--connections", &setting.connections.to_string()]);
        let millis = |value: u128| format!("{value}ms");
        command.args(["--reply-delay", &millis(setting.reply_delay_ms), "--ramp", &millis(setting.ramp_ms)]);
        if setting.connections > 1 {
            // Handshakes are the broker's and the fleet's work: they are over when the time begins.
            command.arg("--together");
        }
        if let Some(delay) = setting.restart_delay_ms {
            command.args(["--restart-delay", &millis(delay)]);
        }
        let fleet = children.fleet.insert(self.start("fleet", command, true)?);
        Counters::of(fleet)
            .ok_or_else(|| StageError::Ended { how: "the fleet has no output".to_owned(), log: Vec::new() })
    }

    async fn next(&self, counters: &mut Counters, children: &mut Children) -> Result<(), StageError> {
        if counters.next().await {
            return Ok(());
        }
        let Some(fleet) = &mut children.fleet else { return Ok(()) };
        let how = fleet.ended().await;
        Err(StageError::Ended { how, log: fleet.tail(20) })
    }

    /// Follows the fleet until all are back or time is up, and sums up.
    async fn follow(
        &mut self,
        mut counters: Counters,
        mut probe: Probe,
        before: (Usage, Usage),
        network: &NetworkFiles,
        children: &mut Children,
    ) -> Result<Figures, StageError> {
        let baseline: Vec<Sample> = probe.latest().to_vec();
        let confirmed_before = probe.sum("quartermaster_hosts_confirmed_total");
        let servers = self.setting.servers as u64;
        let end = Instant::now() + self.setting.time_limit;
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut lone: Option<Counters> = None;
        let mut all_back: Option<Instant> = None;
        let mut most_waiting = 0_u64;
        loop {
            tokio::select! {
                how = ended(children.provisioner.as_mut()) => {
                    let log = children.provisioner.as_ref().map(|running| running.tail(20)).unwrap_or_default();
                    return Err(StageError::Ended { how, log });
                }
                more = counters.next() => {
                    if !more {
                        self.next(&mut counters, children).await?;
                    }
                    self.show(&counters, &probe);
                    if self.setting.lone && lone.is_none() && counters.count("servers") > 0 && counters.count("down") == 0 {
                        let command = self.fleet(network, 1, "lone{}.example.net");
                        let child = children.lone.insert(self.start("lone", command, true)?);
                        lone = Counters::of(child);
                    }
                    if counters.count("provisioned") == servers {
                        all_back.get_or_insert_with(Instant::now);
                    }
                }
                () = next_of(lone.as_mut()) => {}
                _ = looks.tick() => {
                    probe.ask().await;
                    most_waiting = most_waiting.max(whole(probe.sum("choria_provisioner_work_queue_entries")));
                    let confirmed = whole(probe.sum("quartermaster_hosts_confirmed_total") - confirmed_before);
                    // Done is who has been restarted: what its last step took is counted by then.
                    let alone_done = lone.as_ref().is_none_or(|lone| lone.count("provisioned") == 1);
                    if let Some(back) = all_back
                        && alone_done
                        && (confirmed >= servers || back.elapsed() >= CONFIRM_LIMIT)
                    {
                        break;
                    }
                }
                () = tokio::time::sleep_until(end) => break,
            }
        }
        self.view.clear();
        let elapsed = counters.took(if self.setting.discovered() { "served_ms" } else { "worked_ms" });
        let after = |running: &Option<Running>| running.as_ref().and_then(Running::usage).unwrap_or_default();
        let (provisioner, broker, fleet) =
            (after(&children.provisioner), after(&children.broker), after(&children.fleet));
        let latest = probe.latest();
        let elapsed_s = elapsed.unwrap_or_default().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "servers of a fleet, far below 2^52")]
        let per_minute = counters.count("configures").min(servers) as f64 * 60.0 / elapsed_s.max(0.001);
        Ok(Figures {
            servers,
            provisioned: counters.count("provisioned"),
            duplicate_configures: counters.count("repeated_configures"),
            failures: whole(difference(&baseline, latest, "choria_provisioner_provision_errors")),
            elapsed_s,
            per_minute: if elapsed.is_some() { per_minute } else { 0.0 },
            provisioner: Consumption::between(before.0, provisioner),
            helpers_cpu_s: provisioner.children_cpu.saturating_sub(before.0.children_cpu).as_secs_f64(),
            broker: Consumption::between(before.1, broker),
            fleet: Consumption::between(Usage::default(), fleet),
            steps: latency::steps(&baseline, latest),
            helper_wait: latency::one(&baseline, latest, "quartermaster_helper_wait_seconds"),
            queue_wait: latency::one(&baseline, latest, "quartermaster_queue_wait_seconds"),
            most_waiting,
            metrics_answer: probe.metrics_answer(),
            control_answer: probe.control_answer(),
            lone_s: lone.as_ref().and_then(|lone| lone.took("worked_ms")).map(|took| took.as_secs_f64()),
        })
    }

    fn show(&mut self, counters: &Counters, probe: &Probe) {
        self.view.show(Progress {
            provisioned: counters.count("provisioned"),
            waiting: counters.count("provisioning") + counters.count("down"),
            restarting: counters.count("restarting"),
            failures: whole(probe.sum("choria_provisioner_provision_errors")),
            helper_runs: whole(probe.sum("choria_provisioner_helper_time_count")),
        });
    }
}

/// Writes an executable shell script.
fn script(file: &Path, text: &str) -> Result<(), StageError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, format!("#!/bin/sh\n{text}\n"))
        .and_then(|()| std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)))
        .map_err(StageError::setup("the helper"))
}

async fn ended(running: Option<&mut Running>) -> String {
    match running {
        Some(running) => running.ended().await,
        None => std::future::pending().await,
    }
}

/// The next line of a fleet that may not be there; one that has ended is waited for no more.
async fn next_of(counters: Option<&mut Counters>) {
    match counters {
        Some(counters) => {
            if !counters.next().await {
                std::future::pending::<()>().await;
            }
        }
        None => std::future::pending().await,
    }
}

fn difference(before: &[Sample], after: &[Sample], name: &str) -> f64 {
    let sum = |samples: &[Sample]| {
        samples.iter().filter(|sample| sample.name == name).map(|sample| sample.value).sum::<f64>()
    };
    sum(after) - sum(before)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter, whole and not negative"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}
