//! Shows what happens: lines, JSON lines, or bars over lines on a terminal. Secrets are covered here, whoever says them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::IsTerminal as _;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use quartermaster_actors::child::printable;

use super::event::Event;
use super::secrets::Secrets;
use crate::cli::out::Out;

/// How it is shown.
pub struct Reporter {
    out: RefCell<Out>,
    secrets: Secrets,
    json: bool,
    bars: Option<Bars>,
}

struct Bars {
    all: MultiProgress,
    steps: RefCell<HashMap<String, ProgressBar>>,
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter").field("json", &self.json).finish_non_exhaustive()
    }
}

impl Reporter {
    /// Shows things on `out`, and bars on standard error when both are terminals.
    pub fn new(out: Out, secrets: Secrets, json: bool) -> Self {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let bars = (terminal && !json)
            .then(|| Bars { all: MultiProgress::new(), steps: RefCell::new(HashMap::new()) });
        Self { out: RefCell::new(out), secrets, json, bars }
    }

    /// Shows one thing.
    pub fn say(&self, event: &Event) {
        if self.json {
            self.line(&event.to_json());
            return;
        }
        if let Some(bars) = &self.bars {
            bars.move_on(event, &self.secrets);
        }
        if let Some(line) = event.to_line() {
            let lines: Vec<String> = line.lines().map(|line| printable(line.as_bytes())).collect();
            self.line(&lines.join("\n"));
        }
    }

    fn line(&self, line: &str) {
        let text = format!("{}\n", self.secrets.text(line));
        let write = || self.out.borrow_mut().text(&text);
        match &self.bars {
            Some(bars) => bars.all.suspend(write),
            None => write(),
        }
    }
}

impl Bars {
    fn move_on(&self, event: &Event, secrets: &Secrets) {
        let mut steps = self.steps.borrow_mut();
        match event {
            Event::Begun(step) | Event::UndoBegun { step, .. } => {
                let bar = self.all.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                bar.set_prefix(format!("action.{step}"));
                bar.enable_steady_tick(std::time::Duration::from_millis(120));
                steps.insert(step.clone(), bar);
            }
            Event::Progress { step, done, total, message } => {
                if let Some(bar) = steps.get(step) {
                    let far = match (done, total) {
                        (Some(done), Some(total)) => format!("{done}/{total} "),
                        (Some(done), None) => format!("{done} "),
                        _ => String::new(),
                    };
                    let message = message.as_deref().unwrap_or_default();
                    bar.set_message(printable(secrets.text(&format!("{far}{message}")).as_bytes()));
                }
            }
            Event::Done { step, .. }
            | Event::Failed { step, .. }
            | Event::Unknown { step, .. }
            | Event::Undone { step, .. }
            | Event::UndoFailed { step, .. } => {
                if let Some(bar) = steps.remove(step) {
                    bar.finish_and_clear();
                }
            }
            Event::End(_) => {
                for (_, bar) in steps.drain() {
                    bar.finish_and_clear();
                }
            }
            _ => {}
        }
    }
}
