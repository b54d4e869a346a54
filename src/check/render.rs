//! Faults as text: one line each for pipes, with the line of the file for a terminal.

use std::fmt::Write as _;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::config::surroundings::Environment;
use crate::config::{Fault, Faults, Severity};
use crate::telemetry::plain_text;

/// How faults are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `file:line:column: error: key: what; help`, one line each.
    Lines,
    /// With the line of the file, for a terminal.
    Pictures {
        /// In colour.
        color: bool,
    },
}

impl Style {
    /// Pictures on a terminal, in colour unless `NO_COLOR` is set to something; lines elsewhere.
    pub fn of_terminal(is_terminal: bool, env: &dyn Environment) -> Self {
        if is_terminal {
            let no_color = env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
            let dumb = env.get("TERM").is_some_and(|term| term == "dumb");
            Self::Pictures { color: !no_color && !dumb }
        } else {
            Self::Lines
        }
    }
}

/// All faults as text.
pub fn render(faults: &Faults, style: Style) -> String {
    let mut text = String::new();
    for fault in faults.list() {
        match style {
            Style::Lines => line(&mut text, fault),
            Style::Pictures { color } => picture(&mut text, fault, faults, color),
        }
    }
    text
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn line(text: &mut String, fault: &Fault) {
    if let Some(file) = &fault.file {
        let _ = write!(text, "{}:", plain_text(&file.to_string_lossy(), false));
        if let Some(place) = fault.place {
            let _ = write!(text, "{}:{}:", place.line, place.column);
        }
        text.push(' ');
    }
    let _ = write!(text, "{}: {}", word(fault.severity), message(fault));
    if let Some(help) = &fault.help {
        let _ = write!(text, "; {}", plain_text(help, false));
    }
    text.push('\n');
}

fn message(fault: &Fault) -> String {
    let what = plain_text(&fault.what, false);
    match &fault.key {
        Some(key) => format!("`{}`: {what}", plain_text(key, false)),
        None => what,
    }
}

fn picture(text: &mut String, fault: &Fault, faults: &Faults, color: bool) {
    let source = fault.file.as_deref().zip(fault.place).and_then(|(file, place)| {
        let content = faults.text(file)?;
        (place.offset <= content.len()).then(|| (file, place, content.to_owned()))
    });
    let mut diagnostic = MietteDiagnostic::new(
        match &source {
            // The file is named above its line; without one it belongs into the sentence.
            None => fault
                .file
                .as_ref()
                .map_or_else(String::new, |file| format!("{}: ", plain_text(&file.to_string_lossy(), false))),
            Some(_) => String::new(),
        } + &message(fault),
    )
    .with_severity(match fault.severity {
        Severity::Error => miette::Severity::Error,
        Severity::Warning => miette::Severity::Warning,
    });
    diagnostic.help = fault.help.as_deref().map(|help| plain_text(help, false));
    let report = match source {
        None => Report::new(diagnostic),
        Some((file, place, content)) => {
            let end = place.offset.saturating_add(place.length).min(content.len());
            let label = LabeledSpan::underline(place.offset..end);
            Report::new(diagnostic.and_label(label))
                .with_source_code(NamedSource::new(file.to_string_lossy(), content))
        }
    };
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_context_lines(1)
        .with_links(false)
        .without_cause_chain();
    let mut shown = String::new();
    if handler.render_report(&mut shown, report.as_ref()).is_ok() {
        text.push_str(&shown);
        text.push('\n');
    } else {
        line(text, fault);
    }
}
