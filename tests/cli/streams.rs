//! Streams that are closed, held open or abandoned change nothing.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use super::site::{BINARY, CFG, Held, Site, YAML, code};

/// Every verb that ends by itself, with the exit code it has at a terminal.
const VERBS: &[(&[&str], i32)] = &[
    (&["check", "--config", "p.yaml", "--choria-config", "choria.cfg"], 0),
    (&["check", "--config", "p.yaml", "--choria-config", "choria.cfg", "--json"], 0),
    (&["check", "--print-default"], 0),
    (&["helper", "test", "--config", "p.yaml", "--identity", "web1.example.net"], 6),
    (&["helper", "test", "--config", "nosuch.yaml", "--identity", "web1.example.net"], 3),
    (&["emulate"], 2),
    (&["emulate", "--network", "nosuch"], 4),
    (&["demo", "--help"], 0),
    (&["run", "--config", "nosuch.yaml", "--choria-config", "choria.cfg"], 3),
    (&["status", "--server", "127.0.0.1:1"], 5),
    (&["watch", "--server", "127.0.0.1:1"], 5),
    (&["pause", "--server", "127.0.0.1:1", "--why", "testing", "--json"], 5),
    (&["completions", "zsh"], 0),
    (&["man"], 0),
    (&["--help"], 0),
    (&["--version"], 0),
    (&["nosuchverb"], 2),
];

#[test]
fn a_closed_or_held_open_stdin_changes_nothing() {
    let site = Site::new(YAML, CFG);
    for (line, exit) in VERBS {
        // `<&-` closes the stream itself, which Command cannot.
        let closed = format!("exec {BINARY} {} <&-", line.join(" "));
        code(&site.command(Path::new("/bin/sh"), &["-c", &closed]).output().unwrap(), *exit);
        let mut held = Held(site.command(Path::new(BINARY), line).stdin(Stdio::piped()).spawn().unwrap());
        // Both outputs fit into their pipes or are read here; the input stays open until the end is known.
        let mut said = Vec::new();
        held.0.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        assert_eq!(held.0.wait_keeping_stdin().code(), Some(*exit), "{line:?}");
    }
}

#[test]
fn a_closed_stdout_ends_with_the_same_code_and_without_a_panic() {
    let site = Site::new(YAML, CFG);
    for (line, exit) in VERBS {
        let mut child = Held(site.command(Path::new(BINARY), line).spawn().unwrap());
        // The reader is gone before anything is written, or in the midst of it.
        drop(child.0.stdout.take());
        let mut said = String::new();
        child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.0.wait_keeping_stdin().code(), Some(*exit), "{line:?}: {said}");
        assert!(!said.contains("panic"), "{line:?}: {said}");
        let closed = format!("exec {BINARY} {} >&- 2>&-", line.join(" "));
        code(&site.command(Path::new("/bin/sh"), &["-c", &closed]).output().unwrap(), *exit);
    }
}

trait WaitKeepingStdin {
    /// `Child::wait` closes the child's stdin first; this does not.
    fn wait_keeping_stdin(&mut self) -> std::process::ExitStatus;
}

impl WaitKeepingStdin for Child {
    fn wait_keeping_stdin(&mut self) -> std::process::ExitStatus {
        let mut stdin = self.stdin.take();
        let status = self.wait().unwrap();
        // Still open now: an error here is the child's end, not ours.
        if let Some(stdin) = &mut stdin {
            let _ = stdin.write_all(b"\n");
        }
        status
    }
}
