//! The parts of a page that change while one looks: made here for the first view and for every update alike.

use quartermaster_actors::fleet::FleetOverview;
use quartermaster_proto::time::WallClock;

use super::failures::failures;
use super::figures::{bar, sparkline};
use crate::operate::{FleetView, StatusReport};
use crate::web::html::Html;
use crate::web::rate::RateLine;
use crate::web::words::{clock, count, grouped, in_url, seconds_since, short_span, span};

/// Everything that the parts show, as of one moment.
#[derive(Debug, Clone)]
pub(in crate::web) struct Glance {
    /// The instance.
    pub status: StatusReport,
    /// How fast it works.
    pub rates: RateLine,
    /// What deserves a look.
    pub overview: FleetOverview,
    /// False when `overview` is an older one, because the part that tells it did not answer.
    pub overview_is_fresh: bool,
    /// When.
    pub now: WallClock,
}

/// How a state of the instance is coloured and called.
struct Badge {
    class: &'static str,
    word: &'static str,
}

/// One part: the id of its place, and what stands there.
pub(in crate::web) type Part = (&'static str, Html);

/// All parts. Those for an admin hold buttons, and never the token of a form.
pub(in crate::web) fn parts(glance: &Glance, admin: bool) -> Vec<Part> {
    vec![
        ("state", state(glance)),
        ("notices", notices(glance)),
        ("numbers", numbers(glance)),
        ("states", states(&glance.status.fleet)),
        ("failures", failures(&glance.overview.failures, admin)),
        ("controls", controls(&glance.status, admin)),
        ("process", process(glance)),
    ]
}

/// What stands in the tab of the browser.
pub(in crate::web) fn title(glance: &Glance) -> Html {
    let badge = badge(&glance.status);
    let rate = grouped(glance.rates.provisioned);
    Html::of("{} · {}/min · {}", &[&badge.word, &rate, &glance.status.instance])
}

fn badge(status: &StatusReport) -> Badge {
    let (class, word) = match status.ready.role {
        "draining" => ("busy", "Draining"),
        "paused" => ("warn", "Paused"),
        _ if !status.link.connected => ("bad", "Not connected"),
        _ if !status.ready.ready => ("bad", "Not ready"),
        "standby" => ("idle", "Standby"),
        _ if status.cluster == "election" => ("good", "Leading"),
        _ => ("good", "Working"),
    };
    Badge { class, word }
}

fn state(glance: &Glance) -> Html {
    let Badge { class, word } = badge(&glance.status);
    let leader = glance.status.ready.leader.as_ref();
    let told = match (glance.status.cluster, leader) {
        ("election", Some(leader)) if leader.own => {
            Html::of("this instance leads for {}", &[&span(leader.for_seconds)])
        }
        ("election", Some(leader)) => Html::of("leader: {}", &[&leader.name]),
        ("election", None) if glance.status.run_state.leading => Html::of("this instance leads", &[]),
        ("election", None) => Html::of("no leader is known", &[]),
        ("shared", _) => Html::of("works beside others", &[]),
        _ => Html::default(),
    };
    Html::of("<span class=\"badge {}\">{}</span> <span class=\"told\">{}</span>", &[&class, &word, &told])
}

/// What must be seen first: a pause, and why this instance is not ready.
fn notices(glance: &Glance) -> Html {
    let mut html = Html::default();
    let status = &glance.status;
    if let Some(paused) = &status.run_state.paused {
        let since = span(seconds_since(paused.since, glance.now));
        html.put(
            "<p class=\"notice warn\"><strong>Paused</strong> by {} for {} (since {}): {}</p>\n",
            &[&paused.who, &since, &clock(paused.since), &paused.why],
        );
    }
    for reason in &status.ready.reasons {
        html.put("<p class=\"notice bad\"><strong>Not ready:</strong> {}</p>\n", &[reason]);
    }
    if !glance.overview_is_fresh {
        html.put(
            "<p class=\"notice warn\"><strong>Older figures:</strong> the keeper of the fleet did not answer in time; failures, \
             the oldest waiting host and the slowest step are those of its last answer</p>\n",
            &[],
        );
    }
    html
}

fn host_link(name: &str) -> Html {
    Html::of("<a class=\"host\" href=\"/hosts/{}\">{}</a>", &[&in_url(name), &name])
}

fn numbers(glance: &Glance) -> Html {
    let FleetView { queued, in_flight, cooling, gave_up, provisioned_total, .. } = glance.status.fleet;
    let failing = cooling.saturating_add(gave_up);
    let mut html = Html::default();
    html.put(
        "<div class=\"number rate\"><dt>Rate</dt><dd><b>{}</b> a minute</dd><dd class=\"more\">{} failing a minute</dd>{}</div>\n",
        &[&grouped(glance.rates.provisioned), &grouped(glance.rates.failed), &sparkline(&glance.rates.points)],
    );
    let oldest = glance.overview.oldest_waiting.as_ref().map_or_else(
        || Html::of("nobody waits", &[]),
        |oldest| {
            let waited = span(oldest.waited_ms / 1000);
            Html::of("oldest {} · {}", &[&waited, &host_link(oldest.identity.as_str())])
        },
    );
    html.put(
        "<div class=\"number\"><dt>Queue</dt><dd><b>{}</b> waiting</dd><dd class=\"more\">{}</dd></div>\n",
        &[&count(queued), &oldest],
    );
    let slowest = glance.overview.slowest_step.as_ref().map_or_else(
        || Html::of("no step under way", &[]),
        |slowest| {
            let took = short_span(slowest.took_ms);
            let tries = if slowest.tries > 1 { format!(" (try {})", slowest.tries) } else { String::new() };
            let values: [&dyn crate::web::html::Show; 4] =
                [&slowest.step, &took, &tries, &host_link(slowest.identity.as_str())];
            Html::of("slowest <code>{}</code> {}{} · {}", &values)
        },
    );
    html.put(
        "<div class=\"number\"><dt>In flight</dt><dd><b>{}</b> in a cycle</dd><dd class=\"more\">{}</dd></div>\n",
        &[&count(in_flight), &slowest],
    );
    let class = if failing > 0 { "number bad" } else { "number" };
    html.put(
        "<div class=\"{}\"><dt>Failing</dt><dd><b>{}</b> hosts</dd><dd class=\"more\">{} to be tried again · {} given up</dd></div>\n",
        &[&class, &count(failing), &count(cooling), &count(gave_up)],
    );
    html.put(
        "<div class=\"number\"><dt>Provisioned</dt><dd><b>{}</b> in all</dd><dd class=\"more\">up for {}</dd></div>\n",
        &[&grouped(provisioned_total), &span(glance.status.uptime_seconds)],
    );
    html
}

/// States in the order of a host's way: word in a URL, name, what it means.
pub(in crate::web) const STATES: [(&str, &str, &str); 6] = [
    ("waiting", "Waiting", "in the queue"),
    ("in_flight", "In flight", "in a cycle"),
    ("held", "Provisioned", "watched until back as a server"),
    ("cooling", "Cooling", "failed, will be tried again"),
    ("gave_up", "Given up", "failed for too long"),
    ("known", "Turned away", "did not fit into the queue"),
];

fn states(fleet: &FleetView) -> Html {
    let of = |state: &str| match state {
        "waiting" => fleet.queued,
        "in_flight" => fleet.in_flight,
        "held" => fleet.held,
        "cooling" => fleet.cooling,
        "gave_up" => fleet.gave_up,
        _ => fleet.turned_away,
    };
    let counts: Vec<(&'static str, usize)> = STATES.iter().map(|(state, ..)| (*state, of(state))).collect();
    let mut html = bar(&counts);
    html.put("<ul class=\"legend\">\n", &[]);
    for (state, name, meaning) in STATES {
        html.put(
            "<li><a href=\"/hosts?state={}\"><span class=\"dot {}\"></span>{}</a> <b>{}</b> <span class=\"meaning\">{}</span></li>\n",
            &[&state, &state, &name, &count(of(state)), &meaning],
        );
    }
    html.put("</ul>\n", &[]);
    html
}

/// What may be done in this state; the form around it is the page's.
fn controls(status: &StatusReport, admin: bool) -> Html {
    let mut html = Html::default();
    if !admin {
        return html;
    }
    if status.run_state.paused.is_some() {
        html.put("<button class=\"primary\" name=\"do\" value=\"resume\">Resume</button>\n", &[]);
    } else if !status.run_state.draining {
        html.put(
            "<label for=\"why\">Reason</label> <input id=\"why\" name=\"why\" maxlength=\"400\" autocomplete=\"off\" \
             placeholder=\"why pause?\"> <button class=\"danger\" name=\"do\" value=\"pause\">Pause</button>\n\
             <button name=\"do\" value=\"discover\">Look for hosts now</button>\n",
            &[],
        );
    }
    html
}

/// The broker and the parts of this process.
fn process(glance: &Glance) -> Html {
    let link = &glance.status.link;
    let mut html = Html::default();
    html.put("<h2 id=\"broker\">Broker</h2>\n", &[]);
    let since = span(link.since_seconds);
    match &link.server {
        Some(server) => {
            html.put("<p><span class=\"dot good\"></span><code>{}</code> for {}</p>\n", &[server, &since]);
        }
        None => html.put(
            "<p class=\"bad\"><span class=\"dot bad\"></span>not connected for {}: {}</p>\n",
            &[&since, &link.last_error],
        ),
    }
    let pairs = [
        ("requests", link.requests),
        ("replies", link.replies),
        ("awaited", link.pending),
        ("rejected replies", link.rejected),
        ("conflicting replies", link.conflicts),
        ("sightings turned away", link.dropped),
        ("logins", link.connects),
        ("refused logins", link.refused_logins),
    ];
    html.put("<dl class=\"facts\">\n", &[]);
    for (name, number) in pairs {
        html.put("<div><dt>{}</dt><dd>{}</dd></div>\n", &[&name, &grouped(number)]);
    }
    html.put("</dl>\n<h2 id=\"actors\">Parts of this process</h2>\n<ul class=\"actors\">\n", &[]);
    for actor in &glance.status.actors {
        let class = if actor.state == "running" { "good" } else { "bad" };
        html.put(
            "<li><span class=\"dot {}\"></span>{} <span class=\"meaning\">{}",
            &[&class, &actor.name, &actor.state],
        );
        if actor.lives > 1 {
            html.put(", life {}: {}", &[&actor.lives, &actor.last_decision]);
        }
        html.put("</span></li>\n", &[]);
    }
    html.put("</ul>\n", &[]);
    html
}
