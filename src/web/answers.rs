//! Answers of every kind, with what all of them have in common.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::middleware::DefaultHeaders;
use actix_web::{HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::guard::Denied;
use super::html::Html;
use super::views::ErrorView;

/// Everything from this origin, nothing in line, no frame around us; markup reaches the page through one named gate.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types quartermaster";

/// What every answer carries.
pub(super) fn headers() -> DefaultHeaders {
    DefaultHeaders::new()
        .add((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .add((CONTENT_SECURITY_POLICY, POLICY))
        .add((REFERRER_POLICY, "same-origin"))
        .add(("x-frame-options", "DENY"))
        .add(("cross-origin-opener-policy", "same-origin"))
        .add(("cross-origin-resource-policy", "same-origin"))
        .add(("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"))
}

/// An answer that nobody keeps.
pub(super) fn answer(status: StatusCode) -> HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    answer.insert_header((CACHE_CONTROL, "no-store"));
    answer
}

/// A line of text.
pub(super) fn plain(status: StatusCode, text: &str) -> HttpResponse {
    answer(status).content_type("text/plain; charset=utf-8").body(format!("{text}\n"))
}

/// JSON.
pub(super) fn json(status: StatusCode, view: &impl Serialize) -> HttpResponse {
    answer(status).json(view)
}

/// A page.
pub(super) fn html(status: StatusCode, page: Html) -> HttpResponse {
    answer(status).content_type("text/html; charset=utf-8").body(page.into_string())
}

/// An error of the API.
pub(super) fn error(status: StatusCode, code: &str, sentence: &str) -> HttpResponse {
    json(status, &ErrorView { code: code.to_owned(), error: sentence.to_owned() })
}

/// A refusal by the API.
pub(super) fn denied(denied: &Denied) -> HttpResponse {
    let mut refusal = error(denied.status(), denied.code(), denied.sentence());
    let more = match denied {
        Denied::NoToken | Denied::WrongToken => Some(("www-authenticate", "Bearer".to_owned())),
        Denied::Throttled { wait } => Some(("retry-after", wait.as_secs().saturating_add(1).to_string())),
        _ => None,
    };
    if let Some((name, value)) = more
        && let Ok(value) = actix_web::http::header::HeaderValue::from_str(&value)
    {
        refusal.headers_mut().insert(actix_web::http::header::HeaderName::from_static(name), value);
    }
    refusal
}
