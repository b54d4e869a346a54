//! Why hosts failed, with what their helpers said last.

use quartermaster_actors::fleet::{FailureView, HostView};
use quartermaster_actors::journal::HelperRecord;

use crate::web::html::Html;
use crate::web::words::{in_url, short_span, span};

/// The hosts that failed last. An admin gets buttons; the form around them is the page's.
pub(super) fn failures(hosts: &[HostView], admin: bool) -> Html {
    let mut html = Html::default();
    if hosts.is_empty() {
        html.put("<p class=\"calm\">No host is failing.</p>\n", &[]);
        return html;
    }
    html.put(
        "<table class=\"failures\"><thead><tr><th scope=\"col\">Host</th><th scope=\"col\">Reason</th><th scope=\"col\">When</th>\
         <th scope=\"col\">Next try</th></tr></thead><tbody>\n",
        &[],
    );
    for host in hosts {
        row(&mut html, host, admin);
    }
    html.put("</tbody></table>\n", &[]);
    html
}

fn row(html: &mut Html, host: &HostView, admin: bool) {
    let name = host.identity.as_str();
    html.put(
        "<tr><th scope=\"row\"><a class=\"host\" href=\"/hosts/{}\">{}</a></th><td class=\"why\">",
        &[&in_url(name), &name],
    );
    let mut when = String::new();
    if let Some(failure) = &host.failure {
        html.put("{}", &[&reason(failure, name)]);
        when = span(failure.ago_ms / 1000);
    }
    let attempts =
        if host.failures > 1 { format!(", {} times in a row", host.failures) } else { String::new() };
    html.put("</td><td class=\"when\">{} ago{}</td><td class=\"next\">", &[&when, &attempts]);
    html.put("{}", &[&next_try(host)]);
    if admin {
        html.put(
            " <button class=\"small\" name=\"retry\" value=\"{}\" aria-label=\"Retry {} now\">Retry</button>",
            &[&name, &name],
        );
    }
    html.put("</td></tr>\n", &[]);
}

/// When a host is tried again, in words.
pub(super) fn next_try(host: &HostView) -> String {
    match (host.state.as_str(), host.retry_in_ms) {
        ("gave_up", _) => "given up".to_owned(),
        (_, Some(0)) => "now".to_owned(),
        (_, Some(wait)) => format!("in {}", span(wait.div_ceil(1000))),
        ("in_flight", None) => "under way".to_owned(),
        ("waiting", None) => "in the queue".to_owned(),
        (_, None) => "not planned".to_owned(),
    }
}

/// Cause, reason, and the helper's last words: the last line at a glance, all of them folded.
pub(super) fn reason(failure: &FailureView, key: &str) -> Html {
    let mut html = Html::of("<span class=\"cause\">{}</span> {}", &[&failure.cause, &failure.error]);
    if let Some(helper) = &failure.helper {
        html.put("{}", &[&said(helper, key, &failure.error)]);
    }
    html
}

/// How a helper run ended and what it said: at a glance the last line, unless it was `told` already.
pub(super) fn said(helper: &HelperRecord, key: &str, told: &str) -> Html {
    let mut html = Html::default();
    let took = short_span(helper.took_ms);
    let Some((last, before)) = helper.stderr.split_last() else {
        html.put("<p class=\"said\">helper {} after {}, silent on stderr</p>", &[&helper.ending, &took]);
        return html;
    };
    if before.is_empty() {
        html.put("<p class=\"said\">helper {} after {}</p><pre>{}</pre>", &[&helper.ending, &took, last]);
        return html;
    }
    html.put("<details data-key=\"{}\"><summary>helper {} after {}", &[&key, &helper.ending, &took]);
    if told.contains(last.as_str()) {
        html.put(", {} lines on stderr", &[&helper.stderr.len()]);
    } else {
        html.put(" <code class=\"last\">{}</code>", &[last]);
    }
    html.put("</summary><pre>", &[]);
    for line in &helper.stderr {
        html.put("{}\n", &[line]);
    }
    html.put("</pre></details>", &[]);
    html
}
