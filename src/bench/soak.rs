//! `--soak`: servers come and go for a while, and the provisioner must not grow with it.

use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use tokio::time::Instant;

use super::machine::{Machine, Versions};
use super::measure::{Children, GRACE, Run};
use super::report::number;
use super::setting::Setting;
use crate::stage::{Progress, Running, StageError, Usage, set_key};

/// A wave of servers comes this often, unless the one before has not been provisioned yet.
const PACE: Duration = Duration::from_secs(10);
/// The same names come again after so many waves: long enough for their first life to be forgotten.
const WAVES: u64 = 12;
/// How often the provisioner is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// What goes wrong with some of them: they vanish for a moment, answer twice, or run out of disk space once.
const FAULTS: &str = "vanish:2s/inventory=0.03,duplicate=0.1,abort_configure:1=0.05";
/// What may come on top in the second half before it counts as growth: memory as a share and in KiB, descriptors, threads.
const MEMORY_SHARE: f64 = 0.10;
const MEMORY_KIB: f64 = 8.0 * 1024.0;
const DESCRIPTORS: f64 = 16.0;
const THREADS: f64 = 4.0;

/// The median of a figure early and late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Course {
    /// In the second quarter of the time.
    pub(super) early: f64,
    /// In the last quarter.
    pub(super) late: f64,
}

impl Course {
    /// Of looks in their order.
    fn of(looks: &[f64]) -> Self {
        let quarter = looks.len() / 4;
        let median = |from: usize, to: usize| {
            let mut part: Vec<f64> = looks.iter().take(to).skip(from).copied().collect();
            part.sort_by(f64::total_cmp);
            part.get(part.len() / 2).copied().unwrap_or(0.0)
        };
        Self { early: median(quarter, 2 * quarter), late: median(3 * quarter, looks.len()) }
    }

    fn within(self, slack: f64) -> bool {
        self.late <= self.early + slack
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Soak {
    /// The machine.
    pub(super) machine: Machine,
    /// The programs.
    pub(super) versions: Versions,
    /// What it is of; its servers are those of one wave.
    pub(super) setting: Setting,
    /// Seconds.
    pub(super) seconds: f64,
    /// Waves of servers.
    pub(super) waves: u64,
    /// Waves that were not all provisioned in their time.
    pub(super) unfinished: u64,
    /// Servers provisioned.
    pub(super) provisioned: u64,
    /// Memory of the provisioner, KiB.
    pub(super) memory_kib: Course,
    /// Its open descriptors, helpers' pipes included.
    pub(super) descriptors: Course,
    /// Its threads.
    pub(super) threads: Course,
    /// None of the three has grown.
    pub(super) flat: bool,
}

impl Soak {
    /// The table.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["provisioner", "second quarter", "last quarter"]);
        let mut add = |name: &str, course: Course| {
            let right = [course.early, course.late]
                .map(|value| Cell::new(number(value)).set_alignment(CellAlignment::Right));
            table.add_row(std::iter::once(Cell::new(name)).chain(right));
        };
        add("memory, KiB", self.memory_kib);
        add("descriptors", self.descriptors);
        add("threads", self.threads);
        format!(
            "{}\n{} servers in {} waves over {:.0} s, {} of them unfinished in their time\n{table}\n{}",
            self.machine.line(),
            self.provisioned,
            self.waves,
            self.seconds,
            self.unfinished,
            if self.flat { "flat" } else { "it grows" }
        )
    }

    /// Whether it went as it should.
    pub(super) const fn good(&self) -> bool {
        self.flat && self.unfinished == 0
    }
}

/// Looks at the provisioner.
#[derive(Default)]
struct Looks {
    memory: Vec<f64>,
    descriptors: Vec<f64>,
    threads: Vec<f64>,
}

impl Looks {
    #[expect(clippy::cast_precision_loss, reason = "figures of one process, far below 2^52")]
    fn add(&mut self, usage: Usage) {
        self.memory.push(usage.rss_kib.unwrap_or(0) as f64);
        self.descriptors.push(usage.descriptors.unwrap_or(0) as f64);
        self.threads.push(usage.threads as f64);
    }
}

impl Run<'_> {
    /// Sends waves of servers for so long. What was started is in `children` and still runs.
    pub(super) async fn soak(
        &mut self,
        length: Duration,
        machine: Machine,
        versions: Versions,
        children: &mut Children,
    ) -> Result<Soak, StageError> {
        let place = self.stage(children).await?;
        let network = &place.network;
        // What fails is tried again soon, so that a wave ends in its time.
        set_key(&network.config, "retry", &serde_json::json!({"first": "1s", "cap": "5s"}))?;
        self.start_provisioner(&place, children).await?;
        let begin = Instant::now();
        let mut looks = Looks::default();
        let (mut waves, mut unfinished) = (0, 0);
        while begin.elapsed() < length {
            let started = Instant::now();
            let name = format!("wave{}-{{}}.example.net", waves % WAVES);
            let mut command = self.fleet(network, self.setting.servers, &name);
            command.args([
                "--until-done",
                "--fault",
                FAULTS,
                "--restart-delay",
                "500ms",
                "--seed",
                &waves.to_string(),
            ]);
            children.fleet = Some(self.start("fleet", command, false)?);
            let ended = look_until_ended(children, &mut looks, self.setting.time_limit).await?;
            waves += 1;
            unfinished += u64::from(!ended);
            if let Some(mut fleet) = children.fleet.take() {
                fleet.stop(GRACE).await;
            }
            while started.elapsed() < PACE && begin.elapsed() < length {
                tokio::time::sleep(LOOK).await;
                look(children, &mut looks).await?;
            }
            self.view.show(Progress {
                provisioned: begin.elapsed().as_secs().min(length.as_secs()),
                ..Progress::default()
            });
        }
        let memory_kib = Course::of(&looks.memory);
        let (descriptors, threads) = (Course::of(&looks.descriptors), Course::of(&looks.threads));
        let flat = memory_kib.within((memory_kib.early * MEMORY_SHARE).max(MEMORY_KIB))
            && descriptors.within(DESCRIPTORS)
            && threads.within(THREADS);
        Ok(Soak {
            machine,
            versions,
            setting: self.setting.clone(),
            seconds: begin.elapsed().as_secs_f64(),
            waves,
            unfinished,
            provisioned: (waves - unfinished) * self.setting.servers as u64,
            memory_kib,
            descriptors,
            threads,
            flat,
        })
    }
}

async fn look(children: &mut Children, looks: &mut Looks) -> Result<(), StageError> {
    let Some(provisioner) = &mut children.provisioner else { return Ok(()) };
    if let Some(usage) = provisioner.usage() {
        looks.add(usage);
        return Ok(());
    }
    let how = provisioner.ended().await;
    Err(StageError::Ended { how, log: provisioner.tail(20) })
}

/// Looks until the fleet has ended; false when it has not within the limit.
async fn look_until_ended(
    children: &mut Children,
    looks: &mut Looks,
    limit: Duration,
) -> Result<bool, StageError> {
    let end = Instant::now() + limit;
    loop {
        look(children, looks).await?;
        let Some(fleet) = &mut children.fleet else { return Ok(true) };
        if tokio::time::timeout(LOOK, Running::ended(fleet)).await.is_ok() {
            return Ok(true);
        }
        if Instant::now() > end {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_course_compares_the_second_quarter_with_the_last() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        let course = Course::of(&rising);
        assert_eq!(course, Course { early: 37.0, late: 87.0 });
        assert!(!course.within(49.0) && course.within(50.0));
        // What grows at the start alone is flat.
        let mut settled = vec![9.0; 100];
        settled.splice(0..20, (0..20).map(|_| 1.0));
        assert!(Course::of(&settled).within(0.0));
    }

    #[test]
    fn too_few_looks_are_no_growth() {
        assert!(Course::of(&[]).within(0.0));
        assert!(Course::of(&[3.0]).within(5.0));
    }
}
