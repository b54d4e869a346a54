//! Processes of this machine.

use std::path::Path;

/// Processes whose command line mentions `dir`, demos themselves aside.
pub fn mentions(dir: &Path) -> Vec<String> {
    let wanted = dir.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(wanted) && !line.contains("quartermaster demo"))
        .collect()
}
