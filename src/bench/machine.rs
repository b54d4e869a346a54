//! The machine and the programs a figure is of.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Machine {
    /// Model of its processor.
    pub(super) processor: String,
    /// Processors this process may use.
    pub(super) cores: usize,
    /// Its memory, MiB.
    pub(super) memory_mib: u64,
    /// Its kernel.
    pub(super) kernel: String,
    /// Processes that were running or waiting to run on average over the minute before: a quiet machine has less than its cores.
    pub(super) load_before: f64,
}

impl Machine {
    /// This machine, as it is now.
    pub(super) fn here() -> Self {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let kernel = rustix::system::uname();
        Self {
            processor: processor(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory(&read("/proc/meminfo")),
            kernel: format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy()),
            load_before: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
        }
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        format!(
            "{} cores, {}, {} MiB, {}; load before {:.1}",
            self.cores, self.processor, self.memory_mib, self.kernel, self.load_before
        )
    }
}

fn processor(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Versions {
    /// This program.
    pub(super) quartermaster: String,
    /// The broker.
    pub(super) broker: String,
    /// The other provisioner, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<String>,
}

/// What a program says to `--version`; its name when it says nothing.
pub(super) fn version_of(program: &Path) -> String {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let first = said.unwrap_or_default().lines().next().unwrap_or_default().to_owned();
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    if first.is_empty() || first.contains(&name) {
        if first.is_empty() { name } else { first }
    } else {
        format!("{name} {first}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_from_what_the_kernel_says() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Some CPU @ 2GHz\n"), "Some CPU @ 2GHz");
        assert_eq!(processor(""), std::env::consts::ARCH);
        assert_eq!(memory("MemTotal:       2048000 kB\nMemFree: 1 kB\n"), 2000);
    }

    #[test]
    fn a_program_that_says_nothing_has_its_name() {
        assert_eq!(version_of(Path::new("/bin/true-that-is-not-there")), "true-that-is-not-there");
    }
}
