//! The pages.

use actix_web::http::header::{ALLOW, CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, Resource, web};
use serde::Serialize;

use super::WebState;

/// What Prometheus expects of version 0.0.4 of its text.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const INDEX: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Quartermaster</title>
<h1>Quartermaster</h1>
<ul>
<li><a href=\"/metrics\">/metrics</a> for Prometheus
<li><a href=\"/healthz\">/healthz</a> is the process live?
<li><a href=\"/readyz\">/readyz</a> is it connected and doing its part?
<li><a href=\"/api/v1/status\">/api/v1/status</a> run state, link, fleet and actors
</ul>
</html>
";

/// All pages and what answers everything else.
pub(super) fn configure(service: &mut web::ServiceConfig) {
    service
        .service(page("/").route(web::route().to(index)))
        .service(page("/metrics").route(web::route().to(metrics)))
        .service(page("/healthz").route(web::route().to(health)))
        .service(page("/readyz").route(web::route().to(ready)))
        .service(page("/api/v1/status").route(web::route().to(status)))
        .default_service(web::route().to(unknown));
}

/// A page that answers GET and HEAD, and tells every other method so.
fn page(path: &str) -> Resource {
    let writing = actix_web::guard::fn_guard(|ctx| !matches!(ctx.head().method, Method::GET | Method::HEAD));
    web::resource(path).route(web::route().guard(writing).to(wrong_method))
}

fn answer(status: StatusCode) -> HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    answer.insert_header((CACHE_CONTROL, "no-store")).insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"));
    answer
}

fn json(good: bool, view: &impl Serialize) -> HttpResponse {
    answer(if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }).json(view)
}

async fn index() -> HttpResponse {
    answer(StatusCode::OK)
        .insert_header(("content-security-policy", "default-src 'none'"))
        .content_type("text/html; charset=utf-8")
        .body(INDEX)
}

async fn metrics(state: web::Data<WebState>) -> HttpResponse {
    match state.metrics.render().await {
        Ok(text) => answer(StatusCode::OK).content_type(METRICS_TYPE).body(text),
        Err(error) => {
            let reason = std::error::Error::source(&error).map(|source| format!(": {source}"));
            answer(StatusCode::SERVICE_UNAVAILABLE)
                .content_type("text/plain; charset=utf-8")
                .body(format!("{error}{}\n", reason.unwrap_or_default()))
        }
    }
}

async fn health(state: web::Data<WebState>) -> HttpResponse {
    let health = state.operator.health();
    json(health.live, &health)
}

async fn ready(state: web::Data<WebState>) -> HttpResponse {
    let ready = state.operator.ready();
    json(ready.ready, &ready)
}

async fn status(state: web::Data<WebState>) -> HttpResponse {
    json(true, &state.operator.status())
}

async fn wrong_method() -> HttpResponse {
    answer(StatusCode::METHOD_NOT_ALLOWED)
        .insert_header((ALLOW, "GET, HEAD"))
        .content_type("text/plain; charset=utf-8")
        .body("this page can only be read: GET or HEAD\n")
}

async fn unknown(request: HttpRequest) -> HttpResponse {
    tracing::debug!(component = "web", path_bytes = request.path().len(), "An unknown page was asked for");
    answer(StatusCode::NOT_FOUND)
        .content_type("text/plain; charset=utf-8")
        .body("no such page; / lists them\n")
}
