//! `/hosts`: the hosts of a state, or with a text in their name.

use quartermaster_actors::fleet::HostView;

use super::failures::next_try;
use super::parts::STATES;
use crate::operate::HostsReport;
use crate::web::desk::HostSearch;
use crate::web::html::Html;
use crate::web::words::{count, in_url, span};

/// The content of the page of hosts.
pub(in crate::web) fn hosts(search: &HostSearch, found: &HostsReport) -> Html {
    let found = &found.page;
    let text = search.text.as_deref().unwrap_or_default();
    let wanted = search.state.as_deref().unwrap_or_default();
    let mut html = Html::default();
    html.put("<h1>Hosts</h1>\n<form class=\"filter\" action=\"/hosts\" method=\"get\">\n", &[]);
    html.put(
        "<label for=\"text\">Part of the name</label> <input id=\"text\" name=\"q\" value=\"{}\" maxlength=\"255\" autocomplete=\"off\" \
         spellcheck=\"false\" autocapitalize=\"none\">\n<label for=\"state-of\">State</label> <select id=\"state-of\" name=\"state\">\
         <option value=\"\">any</option>",
        &[&text],
    );
    for (state, name, _) in STATES {
        if state == wanted {
            html.put("<option value=\"{}\" selected>{}</option>", &[&state, &name]);
        } else {
            html.put("<option value=\"{}\">{}</option>", &[&state, &name]);
        }
    }
    html.put("</select>\n<button>Show</button>\n</form>\n", &[]);
    let noun = if found.total == 1 { "host" } else { "hosts" };
    html.put("<p class=\"found\"><b>{}</b> {}</p>\n", &[&count(found.total), &noun]);
    if found.hosts.is_empty() {
        html.put("<p class=\"calm\">No host fits.</p>\n", &[]);
        return html;
    }
    html.put(
        "<table class=\"hosts\"><thead><tr><th scope=\"col\">Host</th><th scope=\"col\">State</th><th scope=\"col\">For</th>\
         <th scope=\"col\">What</th><th scope=\"col\">Seen</th></tr></thead><tbody>\n",
        &[],
    );
    for host in &found.hosts {
        let seen = span(host.last_seen_ms / 1000);
        let values: [&dyn crate::web::html::Show; 7] = [
            &in_url(host.identity.as_str()),
            &host.identity.as_str(),
            &host.state,
            &state_name(&host.state),
            &span(host.in_state_ms / 1000),
            &doing(host),
            &seen,
        ];
        html.put(
            "<tr><th scope=\"row\"><a class=\"host\" href=\"/hosts/{}\">{}</a></th><td><span class=\"dot {}\"></span>{}</td>\
             <td>{}</td><td class=\"why\">{}</td><td>{} ago</td></tr>\n",
            &values,
        );
    }
    html.put("</tbody></table>\n", &[]);
    let more = search.after.is_some() || found.next.is_some();
    if more {
        html.put("<p class=\"paging\">", &[]);
        if search.after.is_some() {
            html.put(
                "<a href=\"/hosts?q={}&amp;state={}\">First page</a> ",
                &[&in_url(text), &in_url(wanted)],
            );
        }
        if let Some(next) = &found.next {
            html.put(
                "<a rel=\"next\" href=\"/hosts?q={}&amp;state={}&amp;after={}\">Next page</a>",
                &[&in_url(text), &in_url(wanted), &in_url(next.as_str())],
            );
        }
        html.put("</p>\n", &[]);
    }
    html
}

/// A state as people call it.
pub(super) fn state_name(state: &str) -> &str {
    let known = STATES.iter().find(|(word, ..)| *word == state).map(|(_, name, _)| *name);
    known.unwrap_or(match state {
        "done" => "Serving",
        other => other,
    })
}

/// What a host is at, in one line.
pub(super) fn doing(host: &HostView) -> Html {
    let mut html = Html::default();
    if let Some(step) = &host.step {
        html.put("<code>{}</code> for {}", &[step, &span(host.in_step_ms.unwrap_or_default() / 1000)]);
        if let Some(tries) = host.step_tries.filter(|tries| *tries > 1) {
            html.put(", try {}", &[&tries]);
        }
        if host.attempt > 1 {
            html.put(", attempt {}", &[&host.attempt]);
        }
    }
    if let Some(failure) = &host.failure {
        let next = next_try(host);
        let gap = if host.step.is_some() { " · before: " } else { "" };
        html.put("{}<span class=\"cause\">{}</span> {} · {}", &[&gap, &failure.cause, &failure.error, &next]);
    }
    match (host.held_after.as_deref(), host.confirmed) {
        (Some("provisioned"), Some(true)) => html.put("provisioned, back as an ordinary server", &[]),
        (Some("provisioned"), _) => html.put("provisioned, restarting", &[]),
        (Some(after), _) => html.put("{}", &[&after.replace('_', " ")]),
        (None, _) => {}
    }
    html
}
