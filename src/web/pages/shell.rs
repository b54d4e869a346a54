//! What every page has around it.

use super::parts::{Glance, Part, title};
use crate::web::guard::{Session, Visitor};
use crate::web::html::Html;

/// A page's own place in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Place {
    /// `/`.
    Fleet,
    /// `/hosts` and below.
    Hosts,
    /// Anything else.
    Elsewhere,
}

/// The frame of a page for one visitor.
#[derive(Debug)]
pub(in crate::web) struct Shell<'a> {
    /// Where it belongs.
    pub place: Place,
    /// The title, unless it is the fleet's.
    pub title: &'a str,
    /// What the head shows; none for somebody who may not look yet.
    pub glance: Option<&'a Glance>,
    /// Who looks.
    pub visitor: &'a Visitor,
    /// True when one can log in here.
    pub has_login: bool,
    /// What is searched for now.
    pub search: &'a str,
}

impl Shell<'_> {
    /// The whole page around this content.
    pub fn page(&self, parts: &[Part], content: &Html) -> Html {
        let mut html = Html::default();
        let title = match (self.glance, self.title) {
            (Some(glance), "") => title(glance),
            (_, title) => Html::of("{} · Quartermaster", &[&title]),
        };
        html.put(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n<link rel=\"stylesheet\" href=\"/app.css\">\n\
             <script src=\"/app.js\" defer></script>\n</head>\n",
            &[&title],
        );
        let live = if self.glance.is_some() { "live" } else { "still" };
        html.put(
            "<body data-page=\"{}\">\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n",
            &[&live],
        );
        self.header(&mut html, parts);
        let notices = part(parts, "notices");
        html.put(
            "<div id=\"notices\" role=\"status\">{}</div>\n<main id=\"main\">\n{}</main>\n",
            &[&notices, content],
        );
        self.footer(&mut html);
        html
    }

    fn header(&self, html: &mut Html, parts: &[Part]) {
        html.put("<header>\n<a class=\"brand\" href=\"/\"><img src=\"/icon.svg\" alt=\"\" width=\"22\" height=\"22\">Quartermaster</a>\n", &[]);
        let Some(glance) = self.glance else {
            html.put("</header>\n", &[]);
            return;
        };
        let site =
            if glance.status.site.is_empty() { String::new() } else { format!(" · {}", glance.status.site) };
        html.put(
            "<span class=\"where\">{}{}</span>\n<span id=\"state\" role=\"status\">{}</span>\n<span id=\"live\" class=\"live\" hidden></span>\n",
            &[&glance.status.instance, &site, &part(parts, "state")],
        );
        html.put("<nav aria-label=\"Pages\">", &[]);
        for (place, url, name) in [(Place::Fleet, "/", "Fleet"), (Place::Hosts, "/hosts", "Hosts")] {
            if place == self.place {
                html.put("<a href=\"{}\" aria-current=\"page\">{}</a> ", &[&url, &name]);
            } else {
                html.put("<a href=\"{}\">{}</a> ", &[&url, &name]);
            }
        }
        html.put("</nav>\n", &[]);
        html.put(
            "<form class=\"search\" role=\"search\" action=\"/hosts\" method=\"get\"><label class=\"unseen\" for=\"find\">Host name</label>\
             <input id=\"find\" type=\"search\" name=\"q\" value=\"{}\" maxlength=\"255\" placeholder=\"Find a host\" autocomplete=\"off\" \
             spellcheck=\"false\" autocapitalize=\"none\"> <button>Find</button></form>\n",
            &[&self.search],
        );
        self.person(html);
        html.put("</header>\n", &[]);
    }

    fn person(&self, html: &mut Html) {
        match &self.visitor.session {
            Some(session) => html.put(
                "<form class=\"person\" action=\"/logout\" method=\"post\">{}<span>{}</span> <button class=\"small\">Log out</button></form>\n",
                &[&csrf(session), &session.who],
            ),
            None if self.has_login => html.put("<a class=\"person\" href=\"/login\">Log in</a>\n", &[]),
            None => {}
        }
    }

    fn footer(&self, html: &mut Html) {
        html.put("<footer>\n", &[]);
        if let Some(glance) = self.glance {
            html.put(
                "<a id=\"refresh\" href=\"\">Refresh</a>\n<span>as of {}</span>\n<span>Quartermaster {}</span>\n",
                &[&crate::web::words::clock(glance.now.seconds()), &glance.status.version],
            );
        }
        html.put(
            "<span class=\"links\"><a href=\"/api/v1/openapi.json\">API</a> <a href=\"/metrics\">Metrics</a> \
             <a href=\"/healthz\">Health</a> <a href=\"/readyz\">Readiness</a> <a href=\"/api/v1/status\">Status</a></span>\n</footer>\n</body>\n</html>\n",
            &[],
        );
    }
}

/// The field that proves that a form is ours.
pub(in crate::web) fn csrf(session: &Session) -> Html {
    Html::of("<input type=\"hidden\" name=\"csrf\" value=\"{}\">", &[&session.csrf])
}

/// One part by its id.
pub(in crate::web) fn part(parts: &[Part], id: &str) -> Html {
    parts.iter().find(|(known, _)| *known == id).map(|(_, html)| html.clone()).unwrap_or_default()
}
