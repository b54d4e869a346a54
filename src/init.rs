//! Running as process 1, as in a container without an init program of its own.
//!
//! The kernel gives process 1 every orphan of the machine (or container) and lets no signal reach it that it does not handle. Both are
//! no business of a provisioner, so as process 1 this binary starts itself once more and keeps to the duties of an init: it hands
//! signals on, reaps whatever ends, and leaves with the status of its one real child.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use tokio::signal::unix::{Signal as Arriving, SignalKind, signal};

use crate::exit::Exit;

/// What the shell, too, adds to a signal's number to make an exit status of it.
const BY_SIGNAL: i32 = 128;

/// The signals an operator or a container runtime sends to a program.
const HANDED_ON: [(SignalKind, Signal); 6] = [
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::interrupt(), Signal::INT),
    (SignalKind::quit(), Signal::QUIT),
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::user_defined1(), Signal::USR1),
    (SignalKind::user_defined2(), Signal::USR2),
];

/// Does the whole work of process 1 if that is what we are, and gives the status to leave with; does nothing and gives none
/// otherwise. To be called first in `main`, before there are threads or children.
pub fn if_first_process() -> Option<ExitCode> {
    if std::process::id() != 1 {
        return None;
    }
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| "quartermaster".into());
    let status = be_init(&name, words.collect()).unwrap_or_else(|error| {
        // There is no log yet, and never will be in this process.
        let _ = writeln!(std::io::stderr(), "cannot run as process 1: {error}");
        Exit::Failure.code()
    });
    Some(ExitCode::from(status))
}

fn be_init(name: &OsString, arguments: Vec<OsString>) -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        // Listened for before the child exists, so that none of its ends and no signal is missed.
        let mut ended = signal(SignalKind::child())?;
        let mut arriving = HANDED_ON
            .into_iter()
            .map(|(kind, number)| Ok((signal(kind)?, number)))
            .collect::<io::Result<Vec<_>>>()?;
        let child = start(name, arguments)?;
        loop {
            if let Some(status) = reap_all(child)? {
                return Ok(status);
            }
            tokio::select! {
                _ = ended.recv() => {}
                number = next(&mut arriving) => {
                    // It may have ended this moment; then its status comes next.
                    let _ = kill_process(child, number);
                }
            }
        }
    })
}

/// Starts this program again, under the same name and with the same arguments. In a group of its own, since a terminal sends its
/// signals to a whole group: with both of us in it, each would arrive twice, and the second interrupt means "at once".
fn start(name: &OsString, arguments: Vec<OsString>) -> io::Result<Pid> {
    // By its path, so that it has its usual name in lists of processes; by the link when the file was replaced or removed.
    let path = std::env::current_exe().ok().filter(|path| path.is_file());
    let program = path.unwrap_or_else(|| "/proc/self/exe".into());
    let child = Command::new(program).arg0(name).args(arguments).process_group(0).spawn()?;
    let pid = Pid::from_child(&child);
    let terminal = io::stdin();
    if rustix::termios::isatty(&terminal) {
        // Without this the child would be stopped when it reads; with no terminal of ours there is nothing to hand over.
        let _ = rustix::termios::tcsetpgrp(&terminal, pid);
    }
    Ok(pid)
}

/// Reaps everything that has ended. Gives the child's exit status if it was among them.
fn reap_all(child: Pid) -> io::Result<Option<u8>> {
    let mut ours = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => {
                let by_signal = status.terminating_signal().map(|number| BY_SIGNAL + number);
                let code = status.exit_status().or(by_signal).unwrap_or(BY_SIGNAL);
                ours = Some(u8::try_from(code).unwrap_or(u8::MAX));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(ours),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next signal to hand on.
async fn next(arriving: &mut [(Arriving, Signal)]) -> Signal {
    std::future::poll_fn(|context| {
        for (stream, number) in arriving.iter_mut() {
            if stream.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(*number);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
