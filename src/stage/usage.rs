//! What a process of this machine has used, from `/proc`.

use std::time::Duration;

/// The unit of the kernel for processor time, the same on every machine that Rust knows.
const TICKS_PER_SECOND: u64 = 100;

/// What a process has used so far. Figures that the kernel does not tell are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Its own processor time, user and system.
    pub(crate) cpu: Duration,
    /// That of its children that have ended and were waited for.
    pub(crate) children_cpu: Duration,
    /// Threads now.
    pub(crate) threads: u64,
    /// Memory now, KiB.
    pub(crate) rss_kib: Option<u64>,
    /// The most memory at once, KiB.
    pub(crate) peak_kib: Option<u64>,
    /// Open descriptors now.
    pub(crate) descriptors: Option<u64>,
}

impl Usage {
    /// The figures of one process; none when there is no such process.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mut usage = Self::read(&stat, &status, TICKS_PER_SECOND)?;
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok().map(Iterator::count);
        usage.descriptors = descriptors.and_then(|count| u64::try_from(count).ok());
        Some(usage)
    }

    /// The name stands in brackets and may hold anything, so fields count from the last bracket.
    fn read(stat: &str, status: &str, ticks_per_second: u64) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number =
            |position: usize| fields.get(position).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let time = |ticks: u64| {
            #[expect(clippy::cast_precision_loss, reason = "clock ticks of a process, far below 2^52")]
            Duration::from_secs_f64(ticks as f64 / ticks_per_second.max(1) as f64)
        };
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse().ok()
        };
        Some(Self {
            cpu: time(number(11) + number(12)),
            children_cpu: time(number(13) + number(14)),
            threads: number(17),
            rss_kib: kib("VmRSS:"),
            peak_kib: kib("VmHWM:"),
            descriptors: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_from_the_last_bracket() {
        let stat = "7 (a) b (c) S 1 5 6 0 -1 4228100 0 0 0 0 250 50 7 3 20 0 12 0 991 0 0";
        let usage = Usage::read(stat, "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n", 100).unwrap();
        let expected = Usage {
            cpu: Duration::from_secs(3),
            children_cpu: Duration::from_millis(100),
            threads: 12,
            rss_kib: Some(1024),
            peak_kib: Some(2048),
            descriptors: None,
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn this_process_is_seen() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.threads > 0 && usage.rss_kib > Some(0) && usage.descriptors > Some(2), "{usage:?}");
    }
}
