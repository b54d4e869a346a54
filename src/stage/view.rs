//! The live view: a progress bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// What is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) provisioned: u64,
    pub(crate) waiting: u64,
    pub(crate) restarting: u64,
    pub(crate) failures: u64,
    pub(crate) helper_runs: u64,
}

/// Shows progress on stderr.
pub(crate) struct View {
    bar: Option<ProgressBar>,
    servers: u64,
    last: Option<(Instant, Progress)>,
}

impl View {
    pub(crate) fn new(servers: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(servers), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} provisioned, {msg} [{elapsed}]");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message("starting");
            bar
        });
        Self { bar, servers, last: None }
    }

    /// Says what is being done.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => {
                // Nobody has to read along.
                let _ = writeln!(std::io::stderr(), "{text}");
            }
        }
    }

    /// Shows how far things are.
    pub(crate) fn show(&mut self, progress: Progress) {
        let details = format!(
            "{} waiting, {} restarting, {} failures, {} helper runs",
            progress.waiting, progress.restarting, progress.failures, progress.helper_runs
        );
        if let Some(bar) = &self.bar {
            bar.set_position(progress.provisioned);
            bar.set_message(details);
            return;
        }
        let due = self.last.is_none_or(|(at, shown)| at.elapsed() >= LINE_EVERY && shown != progress);
        if due {
            self.last = Some((Instant::now(), progress));
            self.say(&format!("{}/{} provisioned, {details}", progress.provisioned, self.servers));
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
