//! The few things we read of `/proc`.

use std::collections::BTreeSet;
use std::fs;

/// A process as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    /// Exited and not reaped.
    pub defunct: bool,
    pub group: i32,
    pub session: i32,
    /// Clock ticks since boot; with the number it names a process for good.
    pub started: u64,
}

/// All children of this process, whichever thread they were given to.
pub fn children() -> BTreeSet<i32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return BTreeSet::new() };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// What `/proc/<pid>/stat` says; none when there is no such process.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name stands in brackets and may hold anything, brackets and spaces too, so fields count from the last bracket.
fn parse_stat(pid: i32, text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        pid,
        defunct: matches!(*fields.first()?, "Z" | "X"),
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// One variable of the environment with which a process was started; none when it is not there or may not be read.
pub fn variable(pid: i32, name: &[u8]) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"=").map(<[u8]>::to_vec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let text = "7 (a) b (c) Z 1 5 6 0 -1 4228100 0 0 0 0 0 0 0 0 20 0 1 0 991 0 0";
        let expected = Stat { pid: 7, defunct: true, group: 5, session: 6, started: 991 };
        assert_eq!(parse_stat(7, text), Some(expected));
        assert_eq!(parse_stat(7, "7 (a) Z 1"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(stat(pid).is_some_and(|stat| !stat.defunct && stat.started > 0));
        assert!(variable(pid, b"PATH").is_some());
        assert_eq!(variable(pid, b"PAT"), None);
    }
}
