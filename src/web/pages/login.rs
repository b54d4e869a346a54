//! `/login`, and pages that say what went wrong.

use crate::web::html::Html;

/// The login form, with what was wrong with the last try.
pub(in crate::web) fn login(wrong: Option<&str>, who: &str) -> Html {
    let mut html = Html::of("<div class=\"login\">\n<h1>Log in</h1>\n", &[]);
    if let Some(wrong) = wrong {
        html.put("<p class=\"notice bad\" role=\"alert\">{}</p>\n", &[&wrong]);
    }
    html.put(
        "<form action=\"/login\" method=\"post\">\n<label for=\"who\">Your name, for the log and the audit</label>\n\
         <input id=\"who\" name=\"who\" value=\"{}\" required maxlength=\"80\" autocomplete=\"username\" spellcheck=\"false\" autocapitalize=\"none\">\n\
         <label for=\"token\">Token</label>\n\
         <input id=\"token\" name=\"token\" type=\"password\" required maxlength=\"1024\" autocomplete=\"current-password\">\n\
         <button class=\"primary\">Log in</button>\n</form>\n</div>\n",
        &[&who],
    );
    html
}

/// A page with one sentence.
pub(in crate::web) fn message(heading: &str, sentence: &str) -> Html {
    Html::of(
        "<div class=\"message\">\n<h1>{}</h1>\n<p>{}</p>\n<p><a href=\"/\">Back to the fleet</a></p>\n</div>\n",
        &[&heading, &sentence],
    )
}
