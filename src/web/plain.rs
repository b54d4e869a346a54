//! What monitors ask for, assets, and what answers everything else.

use std::future::{Ready, ready};

use actix_web::http::header::{ALLOW, CACHE_CONTROL, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, Resource, web};

use super::answers::{answer, json, plain};
use super::site::Site;
use super::{api, browse, events};

/// What Prometheus expects of version 0.0.4 of its text.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Bytes of a form or of a body.
const MAX_BODY: usize = 16 * 1024;

const STYLE: &str = include_str!("assets/app.css");
const SCRIPT: &str = include_str!("assets/app.js");
const ICON: &str = include_str!("assets/icon.svg");

/// All pages and what answers everything else.
pub(super) fn configure(service: &mut web::ServiceConfig) {
    service
        .app_data(web::FormConfig::default().limit(MAX_BODY))
        .app_data(web::PayloadConfig::new(MAX_BODY))
        .service(page("/").route(web::route().to(browse::overview)))
        .service(page("/hosts").route(web::route().to(browse::hosts)))
        .service(page("/hosts/{name}").route(web::route().to(browse::host)))
        .service(
            web::resource("/login")
                .route(web::get().to(browse::login_page))
                .route(web::head().to(browse::login_page))
                .route(web::post().to(browse::login))
                .route(web::route().to(|| wrong_method("GET, HEAD, POST"))),
        )
        .service(form("/logout").route(web::route().to(browse::logout)))
        .service(form("/change").route(web::route().to(browse::change)))
        .service(
            web::resource("/events")
                .route(web::get().to(events::events))
                .route(web::route().to(|| wrong_method("GET"))),
        )
        .service(page("/app.css").route(web::route().to(|| asset("text/css; charset=utf-8", STYLE))))
        .service(page("/app.js").route(web::route().to(|| asset("text/javascript; charset=utf-8", SCRIPT))))
        .service(page("/icon.svg").route(web::route().to(|| asset("image/svg+xml", ICON))))
        .service(page("/metrics").route(web::route().to(metrics)))
        .service(page("/healthz").route(web::route().to(health)))
        .service(page("/readyz").route(web::route().to(readiness)))
        .default_service(web::route().to(unknown));
    for api::Served { method, path, route } in api::routes() {
        let resource = if method == Method::POST { form(path) } else { page(path) };
        service.service(resource.route(route));
    }
}

/// A page that answers GET and HEAD, and tells every other method so.
fn page(path: &str) -> Resource {
    let writing = actix_web::guard::fn_guard(|ctx| !matches!(ctx.head().method, Method::GET | Method::HEAD));
    web::resource(path).route(web::route().guard(writing).to(|| wrong_method("GET, HEAD")))
}

/// The place of a form: it answers POST alone.
fn form(path: &str) -> Resource {
    let other = actix_web::guard::fn_guard(|ctx| ctx.head().method != Method::POST);
    web::resource(path).route(web::route().guard(other).to(|| wrong_method("POST")))
}

fn asset(kind: &'static str, text: &'static str) -> Ready<HttpResponse> {
    ready(HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-cache")).content_type(kind).body(text))
}

async fn metrics(site: web::Data<Site>) -> HttpResponse {
    match site.state.metrics.render().await {
        Ok(text) => answer(StatusCode::OK).content_type(METRICS_TYPE).body(text),
        Err(error) => {
            let reason = std::error::Error::source(&error).map(|source| format!(": {source}"));
            plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}{}", reason.unwrap_or_default()))
        }
    }
}

/// 200 when it is good, else 503.
fn good(good: bool) -> StatusCode {
    if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn health(site: web::Data<Site>) -> HttpResponse {
    let health = site.state.desk.health();
    json(good(health.live), &health)
}

async fn readiness(site: web::Data<Site>) -> HttpResponse {
    let view = site.state.desk.ready();
    json(good(view.ready), &view)
}

fn wrong_method(allowed: &'static str) -> Ready<HttpResponse> {
    let mut wrong = plain(StatusCode::METHOD_NOT_ALLOWED, &format!("only {allowed} can be used here"));
    wrong.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    ready(wrong)
}

async fn unknown(request: HttpRequest) -> HttpResponse {
    tracing::debug!(component = "web", path_bytes = request.path().len(), "An unknown page was asked for");
    plain(StatusCode::NOT_FOUND, "no such page; / lists them")
}
