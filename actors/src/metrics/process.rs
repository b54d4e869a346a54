//! The usual figures of the process itself, under the usual names, with fractions of CPU seconds.

use prometheus::core::{Collector, Desc};
use prometheus::{Counter, Gauge, Opts};

/// The kernel reports CPU and start times in hundredths of a second to user space, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Exports what `/proc` says of this process; what it does not say is left out.
#[derive(Debug)]
pub(super) struct ProcessFigures {
    descs: Vec<Desc>,
}

/// Name, help and reader of one figure; the first is the only counter.
type Figure = (&'static str, &'static str, fn() -> Option<f64>);

const FIGURES: [Figure; 7] = [
    ("process_cpu_seconds_total", "CPU time used by this process, user and system together", cpu_seconds),
    ("process_resident_memory_bytes", "Memory of this process that is in RAM", || status_bytes("VmRSS:")),
    ("process_virtual_memory_bytes", "Address space of this process", || status_bytes("VmSize:")),
    ("process_open_fds", "File descriptors this process has open", open_files),
    ("process_max_fds", "File descriptors this process may have open", max_files),
    ("process_start_time_seconds", "When this process started, in Unix seconds", start_time),
    ("process_threads", "Threads of this process", || status_field(&read("/proc/self/status")?, "Threads:")),
];

impl ProcessFigures {
    pub(super) fn new() -> prometheus::Result<Self> {
        let desc = |(name, help, _): &Figure| {
            Desc::new((*name).to_owned(), (*help).to_owned(), Vec::new(), std::collections::HashMap::new())
        };
        Ok(Self { descs: FIGURES.iter().map(desc).collect::<Result<_, _>>()? })
    }
}

impl Collector for ProcessFigures {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<prometheus::proto::MetricFamily> {
        let family = |(name, help, read): &Figure| {
            let value = read()?;
            if name.ends_with("_total") {
                let counter = Counter::with_opts(Opts::new(*name, *help)).ok()?;
                counter.inc_by(value);
                Some(counter.collect())
            } else {
                let gauge = Gauge::with_opts(Opts::new(*name, *help)).ok()?;
                gauge.set(value);
                Some(gauge.collect())
            }
        };
        FIGURES.iter().filter_map(family).flatten().collect()
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn cpu_seconds() -> Option<f64> {
    let stat = read("/proc/self/stat")?;
    Some((stat_field(&stat, 14)? + stat_field(&stat, 15)?) / TICKS_PER_SECOND)
}

fn start_time() -> Option<f64> {
    let started = stat_field(&read("/proc/self/stat")?, 22)? / TICKS_PER_SECOND;
    Some(status_field(&read("/proc/stat")?, "btime")? + started)
}

fn status_bytes(name: &str) -> Option<f64> {
    Some(status_field(&read("/proc/self/status")?, name)? * 1024.0)
}

fn open_files() -> Option<f64> {
    // One of them is the directory being read.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    u32::try_from(open).ok().map(f64::from)
}

fn max_files() -> Option<f64> {
    status_field(&read("/proc/self/limits")?, "Max open files")
}

/// A field of `/proc/self/stat` by its number in proc(5). The program's name may hold blanks and parentheses, so the
/// fields are counted from the last parenthesis, behind which the third stands.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// The first number of the line that starts with this name.
fn status_field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a )( b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 5 0 12345 999 10";

    #[test]
    fn fields_are_counted_past_a_program_name_with_parentheses_and_blanks() {
        assert_eq!([stat_field(STAT, 14), stat_field(STAT, 15)], [Some(150.0), Some(50.0)]);
        assert_eq!(stat_field(STAT, 22), Some(12345.0));
    }

    #[test]
    fn a_line_is_found_by_its_name_and_read_to_its_first_number() {
        assert_eq!(status_field("VmPeak: 9 kB\nVmRSS:\t   1234 kB\n", "VmRSS:"), Some(1234.0));
        assert_eq!(
            status_field("Max open files            1024     4096     files", "Max open files"),
            Some(1024.0)
        );
    }

    #[test]
    fn missing_or_strange_text_is_no_figure() {
        assert_eq!(stat_field("nonsense", 14), None);
        assert_eq!(status_field("VmRSS: much kB", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_every_figure() {
        let figures = ProcessFigures::new().unwrap().collect();
        assert_eq!(figures.len(), FIGURES.len());
        assert!(figures.iter().all(|family| {
            let metric = &family.get_metric()[0];
            metric.get_gauge().get_value() + metric.get_counter().get_value() >= 0.0
        }));
    }
}
