//! Answers for people, and all of them as one JSON object.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::ask::Answers;
use crate::exit::Exit;
use crate::telemetry::plain_text;

/// Everything that was answered, for scripts.
pub fn json(answers: &Answers, exit: Exit) -> String {
    let given = answers.given.iter().filter_map(|answer| answer.body.as_ref().ok()).collect::<Vec<_>>();
    let errors = answers.given.iter().filter_map(|answer| {
        let error = answer.body.as_ref().err()?;
        Some(json!({"instance": answer.instance, "error": error}))
    });
    let errors: Vec<_> = errors.collect();
    json!({"exit": exit.code(), "answers": given, "errors": errors, "silent": answers.silent}).to_string()
}

/// What went wrong, a line for each instance.
pub fn troubles(answers: &Answers) -> Vec<String> {
    let mut lines = Vec::new();
    for answer in &answers.given {
        if let Err(error) = &answer.body {
            lines.push(format!("error: {}: {}", clean(&answer.instance), clean(&error.message)));
        }
    }
    for name in &answers.silent {
        lines.push(format!("error: {}: it did not answer in time", clean(name)));
    }
    lines
}

/// The answers to this verb as text.
pub fn people(verb: &str, answers: &Answers) -> String {
    let given: Vec<&Value> = answers.given.iter().filter_map(|answer| answer.body.as_ref().ok()).collect();
    match verb {
        "status" if !given.is_empty() => status(&given),
        "hosts" if !given.is_empty() => hosts(&given),
        "host" => given.iter().map(|report| host(report)).collect(),
        "config" => given.iter().map(|report| configuration(report)).collect(),
        _ => given.iter().map(|report| change(report)).collect(),
    }
}

/// What comes from elsewhere cannot move the cursor.
fn clean(text: &str) -> String {
    plain_text(text, false)
}

/// The text at this place; empty when there is none.
fn text(value: &Value, at: &str) -> String {
    match value.pointer(at) {
        Some(Value::String(text)) => clean(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn number(value: &Value, at: &str) -> u64 {
    value.pointer(at).and_then(Value::as_u64).unwrap_or_default()
}

fn table(head: &[&str], right: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(head.iter().map(|name| Cell::new(*name)));
    for at in right {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn status(given: &[&Value]) -> String {
    const HEAD: [&str; 11] = [
        "instance",
        "state",
        "broker",
        "queued",
        "in flight",
        "held",
        "cooling",
        "gave up",
        "provisioned",
        "failed",
        "up",
    ];
    let mut table = table(&HEAD, 3..11);
    let mut notes = String::new();
    for report in given {
        let broker = match text(report, "/link/server") {
            server if server.is_empty() => "not connected".to_owned(),
            server => server,
        };
        let mut row = vec![text(report, "/instance"), text(report, "/ready/role"), broker];
        for key in ["queued", "in_flight", "held", "cooling", "gave_up", "provisioned_total", "failed_total"]
        {
            row.push(text(report, &format!("/fleet/{key}")));
        }
        row.push(span(number(report, "/uptime_seconds").saturating_mul(1000)));
        table.add_row(row);
        note(&mut notes, report);
    }
    format!("{table}\n{notes}")
}

/// What deserves a sentence beside the numbers.
fn note(notes: &mut String, report: &Value) {
    let instance = text(report, "/instance");
    let says = text(report, "/run_state/says");
    if !says.is_empty() && says != "working" {
        let _ = writeln!(notes, "{instance}: {says}");
    }
    for reason in report.pointer("/ready/reasons").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(notes, "{instance}: {}", clean(reason.as_str().unwrap_or_default()));
    }
    let not_taken_back = number(report, "/fleet/not_taken_back");
    if not_taken_back > 0 {
        let undecided = number(report, "/fleet/undecided");
        let _ = writeln!(
            notes,
            "{instance}: of {not_taken_back} servers something could not be taken back, {undecided} of them wait for `retry` or `forget`"
        );
    }
    if let Some(oldest) = report.pointer("/overview/oldest_waiting").filter(|oldest| !oldest.is_null()) {
        let waited = span(number(oldest, "/waited_ms"));
        let _ = writeln!(notes, "{instance}: {} has waited longest, {waited}", text(oldest, "/identity"));
    }
    if let Some(slowest) = report.pointer("/overview/slowest_step").filter(|slowest| !slowest.is_null()) {
        let took = span(number(slowest, "/took_ms"));
        let step = text(slowest, "/step");
        let _ = writeln!(notes, "{instance}: {} is at step {step} for {took}", text(slowest, "/identity"));
    }
    for failed in report.pointer("/overview/failures").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(
            notes,
            "{instance}: {} failed {} ago: {}",
            text(failed, "/identity"),
            span(number(failed, "/failure/ago_ms")),
            text(failed, "/failure/error")
        );
    }
}

fn hosts(given: &[&Value]) -> String {
    const HEAD: [&str; 8] =
        ["instance", "host", "state", "for", "attempt", "failures", "step", "last failure"];
    let mut table = table(&HEAD, 3..6);
    let mut notes = String::new();
    for report in given {
        let list = report.get("hosts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for host in list {
            table.add_row([
                text(report, "/instance"),
                text(host, "/identity"),
                state(host),
                span(number(host, "/in_state_ms")),
                text(host, "/attempt"),
                text(host, "/failures"),
                text(host, "/step"),
                text(host, "/failure/error").chars().take(80).collect(),
            ]);
        }
        let (shown, total) = (list.len(), text(report, "/total"));
        let next = text(report, "/next");
        let more = if next.is_empty() { String::new() } else { format!("; more with --after {next}") };
        let _ = writeln!(notes, "{}: {shown} of {total} hosts{more}", text(report, "/instance"));
    }
    if table.row_count() == 0 { notes } else { format!("{table}\n{notes}") }
}

fn state(host: &Value) -> String {
    let state = text(host, "/state").replace('_', " ");
    match (host.get("retry_in_ms").and_then(Value::as_u64), text(host, "/held_after")) {
        (Some(wait), _) => format!("{state}, again in {}", span(wait)),
        (None, after) if !after.is_empty() => {
            let seen = host.get("confirmed").and_then(Value::as_bool) == Some(true);
            format!("{state}, {}{}", after.replace('_', " "), if seen { ", confirmed" } else { "" })
        }
        _ => state,
    }
}

fn host(report: &Value) -> String {
    let mut out = format!("{} on {}: ", text(report, "/host"), text(report, "/instance"));
    match report.get("now").filter(|now| !now.is_null()) {
        None => out.push_str("not here now\n"),
        Some(now) => {
            let _ = writeln!(out, "{} for {}", state(now), span(number(now, "/in_state_ms")));
            let _ = writeln!(
                out,
                "  seen first {} ago, last {} ago; attempt {}, {} failures in a row; waited {}",
                span(number(now, "/first_seen_ms")),
                span(number(now, "/last_seen_ms")),
                text(now, "/attempt"),
                text(now, "/failures"),
                span(number(now, "/waited_ms"))
            );
            let failure = text(now, "/failure/error");
            if !failure.is_empty() {
                let _ = writeln!(out, "  failed {} ago: {failure}", span(number(now, "/failure/ago_ms")));
            }
        }
    }
    let running = report.get("running").filter(|running| !running.is_null());
    for attempt in report.get("history").and_then(Value::as_array).into_iter().flatten().chain(running) {
        self::attempt(&mut out, attempt);
    }
    out
}

fn attempt(out: &mut String, attempt: &Value) {
    let began = attempt.get("began_ms").and_then(Value::as_i64).unwrap_or_default().div_euclid(1000);
    let _ = writeln!(
        out,
        "\nattempt {} (cycle {}) of {}: {} after {}",
        text(attempt, "/attempt"),
        text(attempt, "/cycle"),
        crate::operate::moment(began),
        text(attempt, "/ending").replace('_', " "),
        span(number(attempt, "/took_ms"))
    );
    let error = text(attempt, "/error");
    if !error.is_empty() {
        let cause = text(attempt, "/cause");
        let colon = if cause.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "  {cause}{colon}{error}");
    }
    let steps = attempt.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if !steps.is_empty() {
        let mut table = table(&["step", "tries", "took", "error"], 1..3);
        for step in steps {
            table.add_row([
                text(step, "/step"),
                text(step, "/tries"),
                span(number(step, "/took_ms")),
                text(step, "/error"),
            ]);
        }
        let _ = writeln!(out, "{table}");
    }
    if let Some(helper) = attempt.get("helper").filter(|helper| !helper.is_null()) {
        let took = span(number(helper, "/took_ms"));
        let _ = writeln!(out, "  helper: {} after {took}", text(helper, "/ending"));
        for line in helper.get("stderr").and_then(Value::as_array).into_iter().flatten() {
            let _ = writeln!(out, "  | {}", clean(line.as_str().unwrap_or_default()));
        }
    }
}

fn configuration(report: &Value) -> String {
    let config = report.get("config").cloned().unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&config).unwrap_or_default();
    format!("{}:\n{pretty}\n", text(report, "/instance"))
}

fn change(report: &Value) -> String {
    let (instance, says) = (text(report, "/instance"), text(report, "/run_state/says"));
    let (verb, host) = (text(report, "/verb"), text(report, "/host"));
    let about = if host.is_empty() { verb } else { format!("{verb} {host}") };
    let done =
        if report.get("changed").and_then(Value::as_bool) == Some(false) { "nothing to do" } else { "done" };
    let in_flight = match number(report, "/in_flight") {
        0 => String::new(),
        1 => "; 1 server is in flight".to_owned(),
        many => format!("; {many} servers are in flight"),
    };
    format!("{instance}: {about}: {done}; now {says}{in_flight}\n")
}

/// Milliseconds as people say them: `350ms`, `4.2s`, `7m12s`, `3h04m`, `2d05h`.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{seconds}.{}s", ms % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}
