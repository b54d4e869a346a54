//! `/`: the fleet now.

use super::parts::Part;
use super::shell::{csrf, part};
use crate::web::guard::Visitor;
use crate::web::html::Html;

/// The content of the fleet's page.
pub(in crate::web) fn overview(parts: &[Part], visitor: &Visitor) -> Html {
    let mut html = Html::default();
    html.put(
        "<h1 class=\"unseen\">Fleet</h1>\n<dl id=\"numbers\" class=\"numbers\">{}</dl>\n",
        &[&part(parts, "numbers")],
    );
    if let Some(session) = visitor.admin() {
        html.put(
            "<form class=\"controls\" action=\"/change\" method=\"post\" aria-label=\"Control\">{}<div id=\"controls\">{}</div></form>\n",
            &[&csrf(session), &part(parts, "controls")],
        );
    }
    html.put(
        "<section aria-labelledby=\"by-state\"><h2 id=\"by-state\">Hosts by state</h2>\n<div id=\"states\">{}</div></section>\n",
        &[&part(parts, "states")],
    );
    html.put("<section aria-labelledby=\"failing\"><h2 id=\"failing\">Failures, newest first</h2>\n", &[]);
    match visitor.admin() {
        Some(session) => html.put(
            "<form action=\"/change\" method=\"post\">{}<input type=\"hidden\" name=\"back\" value=\"fleet\">\
             <div id=\"failures\">{}</div></form></section>\n",
            &[&csrf(session), &part(parts, "failures")],
        ),
        None => html.put("<div id=\"failures\">{}</div></section>\n", &[&part(parts, "failures")]),
    }
    html.put("<section class=\"quiet\" id=\"process\">{}</section>\n", &[&part(parts, "process")]);
    html
}
