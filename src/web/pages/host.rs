//! `/hosts/NAME`: one host, and everything that happened to it.

use quartermaster_actors::fleet::HostView;
use quartermaster_actors::journal::AttemptRecord;

use super::failures::{next_try, reason, said};
use super::figures::share_of_bar;
use super::hosts::{doing, state_name};
use super::shell::csrf;
use crate::operate::HostReport;
use crate::web::guard::Visitor;
use crate::web::html::{Html, Show};
use crate::web::words::{clock, short_span, span};

/// The content of the page of one host.
pub(in crate::web) fn host(report: &HostReport, visitor: &Visitor, done: bool) -> Html {
    let name = &report.host;
    let mut html = Html::of("<h1 class=\"host\">{}</h1>\n", &[name]);
    if done {
        html.put("<p class=\"notice good\" role=\"status\">It is tried again now.</p>\n", &[]);
    }
    match &report.now {
        Some(host) => facts(&mut html, host),
        None => html.put(
            "<p class=\"calm\">It is not in the fleet now; this is what is remembered of it.</p>\n",
            &[],
        ),
    }
    if let (Some(session), Some(_)) = (visitor.admin(), &report.now) {
        html.put(
            "<form class=\"controls\" action=\"/change\" method=\"post\">{}<input type=\"hidden\" name=\"back\" value=\"host\">\
             <label for=\"why\">Reason</label> <input id=\"why\" name=\"why\" maxlength=\"400\" autocomplete=\"off\" placeholder=\"optional\"> \
             <button class=\"primary\" name=\"retry\" value=\"{}\">Retry now</button></form>\n",
            &[&csrf(session), name],
        );
    }
    html.put("<section aria-labelledby=\"history\"><h2 id=\"history\">History, newest first</h2>\n", &[]);
    let attempts = report.running.iter().chain(report.history.iter().rev());
    if report.running.is_none() && report.history.is_empty() {
        html.put("<p class=\"calm\">No attempt yet.</p>\n", &[]);
    }
    for (at, attempt) in attempts.enumerate() {
        html.put("{}", &[&one_attempt(attempt, at == 0)]);
    }
    html.put("</section>\n", &[]);
    html
}

fn facts(html: &mut Html, host: &HostView) {
    let since = span(host.in_state_ms / 1000);
    html.put(
        "<p class=\"now\"><span class=\"dot {}\"></span><b>{}</b> for {} <span class=\"doing\">{}</span></p>\n<dl class=\"facts\">\n",
        &[&host.state, &state_name(&host.state), &since, &doing(&HostView { failure: None, ..host.clone() })],
    );
    let facts: [(&str, String); 6] = [
        ("attempt", host.attempt.to_string()),
        ("failures in a row", host.failures.to_string()),
        ("next try", if host.failure.is_some() { next_try(host) } else { "–".to_owned() }),
        ("time in the queue", span(host.waited_ms / 1000)),
        ("first seen", format!("{} ago", span(host.first_seen_ms / 1000))),
        ("last seen", format!("{} ago", span(host.last_seen_ms / 1000))),
    ];
    for (name, value) in &facts {
        html.put("<div><dt>{}</dt><dd>{}</dd></div>\n", &[name, value]);
    }
    html.put("</dl>\n", &[]);
    if let Some(failure) = &host.failure {
        html.put(
            "<section class=\"last-failure\" aria-label=\"Last failure\"><p class=\"when\">Failed {} ago</p><div class=\"why\">{}</div></section>\n",
            &[&span(failure.ago_ms / 1000), &reason(failure, "last-failure")],
        );
    }
}

fn one_attempt(attempt: &AttemptRecord, open: bool) -> Html {
    let began = clock(attempt.began_ms.div_euclid(1000));
    let mut html =
        Html::of(if open { "<details class=\"attempt\" open>" } else { "<details class=\"attempt\">" }, &[]);
    let class = match attempt.ending.as_str() {
        "provisioned" | "already_serving" | "updating" | "shut_down" => "good",
        "running" => "busy",
        "failed" | "lost" => "bad",
        _ => "idle",
    };
    let values: [&dyn Show; 6] = [
        &attempt.attempt,
        &class,
        &attempt.ending.replace('_', " "),
        &began,
        &short_span(attempt.took_ms),
        &attempt.cycle,
    ];
    html.put(
        "<summary>Attempt {} <span class=\"badge small {}\">{}</span> <span class=\"when\">{} · {} · cycle {}</span></summary>\n",
        &values,
    );
    if attempt.error.is_some() || attempt.cause.is_some() {
        html.put(
            "<p class=\"why\"><span class=\"cause\">{}</span> {}</p>\n",
            &[&attempt.cause, &attempt.error],
        );
    }
    steps(&mut html, attempt);
    if let Some(helper) = &attempt.helper {
        html.put("{}", &[&said(helper, "helper", attempt.error.as_deref().unwrap_or_default())]);
    }
    html.put("</details>\n", &[]);
    html
}

fn steps(html: &mut Html, attempt: &AttemptRecord) {
    if attempt.steps.is_empty() {
        return;
    }
    html.put(
        "<table class=\"steps\"><thead><tr><th scope=\"col\">Step</th><th scope=\"col\">Took</th><th scope=\"col\" class=\"share\">Share</th>\
         <th scope=\"col\">Tries</th><th scope=\"col\">Error</th></tr></thead><tbody>\n",
        &[],
    );
    for step in &attempt.steps {
        let error = match &step.error {
            Some(_) if step.error == attempt.error => Some("as above"),
            error => error.as_deref(),
        };
        let values: [&dyn Show; 5] = [
            &step.step,
            &short_span(step.took_ms),
            &share_of_bar(step.took_ms, attempt.took_ms),
            &step.tries,
            &error,
        ];
        html.put(
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td class=\"share\">{}</td><td>{}</td><td class=\"why\">{}</td></tr>\n",
            &values,
        );
    }
    html.put("</tbody></table>\n", &[]);
}
