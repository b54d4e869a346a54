//! `/api/v1`: the same for programs. Every route stands in one list, which the document of the API is compared with.

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, Route, web};
use quartermaster_actors::fleet::FleetOverview;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answers::{denied, error, json};
use super::desk::{DeskError, HostSearch, MAX_PAGE, MAX_SEARCH, Wish};
use super::openapi;
use super::site::Site;
use super::views::ErrorView;
use crate::operate::{ChangeReport, HostReport, HostsReport, StatusReport};

/// Hosts in one answer, unless the request says how many.
const PAGE: usize = 100;

/// One route.
pub(super) struct Served {
    /// Its method.
    pub method: Method,
    /// Its path, with names in braces.
    pub path: &'static str,
    /// What answers.
    pub route: Route,
}

/// Every route of the API.
pub(super) fn routes() -> Vec<Served> {
    let get = |path, route: Route| Served { method: Method::GET, path, route };
    let post = |path, route: Route| Served { method: Method::POST, path, route };
    vec![
        get("/api/v1/status", web::route().to(status)),
        get("/api/v1/overview", web::route().to(overview)),
        get("/api/v1/hosts", web::route().to(hosts)),
        get("/api/v1/hosts/{host}", web::route().to(host)),
        post("/api/v1/hosts/{host}/retry", web::route().to(retry)),
        post("/api/v1/pause", web::route().to(pause)),
        post("/api/v1/resume", web::route().to(resume)),
        post("/api/v1/discover", web::route().to(discover)),
        get("/api/v1/openapi.json", web::route().to(document)),
    ]
}

/// Which hosts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HostsQuestion {
    /// Those in this state only: `known`, `waiting`, `in_flight`, `held`, `cooling`, `gave_up` or `done`.
    pub state: Option<String>,
    /// Those with this text in their name only.
    #[param(max_length = 255)]
    pub text: Option<String>,
    /// Those after this name only: the `next` of the answer before.
    #[param(max_length = 255)]
    pub after: Option<String>,
    /// At most so many; 100 unless told.
    #[param(minimum = 1, maximum = 500)]
    pub most: Option<usize>,
}

/// Who wants a change, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeRequest {
    /// Who asks, for the log and the audit.
    #[schema(min_length = 1, max_length = 200)]
    pub who: String,
    /// Why.
    #[schema(min_length = 1, max_length = 1000)]
    pub why: String,
}

fn failed(fault: &DeskError) -> HttpResponse {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    error(status, &fault.code, &fault.sentence)
}

fn bad(sentence: &str) -> HttpResponse {
    error(StatusCode::BAD_REQUEST, "bad_input", sentence)
}

/// Everything about this instance: run state, link, fleet in numbers, parts of the process.
#[utoipa::path(get, path = "/api/v1/status", tag = "watch", responses(
    (status = 200, description = "The instance now, from published snapshots", body = StatusReport),
    (status = 401, description = "A token is needed, or it is wrong", body = ErrorView),
    (status = 429, description = "Too many wrong tokens", body = ErrorView),
    (status = 503, description = "The token file of the instance cannot be used", body = ErrorView),
))]
pub(super) async fn status(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    match site.access.reader(&request) {
        Ok(_) => json(StatusCode::OK, &site.state.desk.status()),
        Err(refusal) => denied(&refusal),
    }
}

/// What deserves a look now: the oldest waiting host, the slowest step, the hosts that failed last.
#[utoipa::path(get, path = "/api/v1/overview", tag = "watch", responses(
    (status = 200, description = "What deserves a look", body = FleetOverview),
    (status = 401, description = "A token is needed, or it is wrong", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many questions at once", body = ErrorView),
    (status = 503, description = "The part that knows does not answer", body = ErrorView),
))]
pub(super) async fn overview(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    if let Err(refusal) = site.access.reader(&request) {
        return denied(&refusal);
    }
    match site.state.desk.overview().await {
        Ok(view) => json(StatusCode::OK, &view),
        Err(fault) => failed(&fault),
    }
}

/// Hosts by name, page by page.
#[utoipa::path(get, path = "/api/v1/hosts", tag = "watch", params(HostsQuestion), responses(
    (status = 200, description = "One page of hosts", body = HostsReport),
    (status = 400, description = "The question is wrong", body = ErrorView),
    (status = 401, description = "A token is needed, or it is wrong", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many questions at once", body = ErrorView),
    (status = 503, description = "The part that knows does not answer", body = ErrorView),
))]
pub(super) async fn hosts(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    if let Err(refusal) = site.access.reader(&request) {
        return denied(&refusal);
    }
    let question = match web::Query::<HostsQuestion>::from_query(request.query_string()) {
        Ok(question) => question.into_inner(),
        Err(fault) => return bad(&quartermaster_actors::text::chain(&fault)),
    };
    let HostsQuestion { state, text, after, most } = question;
    if [&state, &text, &after].into_iter().flatten().any(|part| part.len() > MAX_SEARCH) {
        return bad("no host's name is longer than 255 bytes");
    }
    let most = most.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&most) {
        return bad("`most` is between 1 and 500");
    }
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let search = HostSearch { state: some(state), text: some(text), after: some(after), most };
    match site.state.desk.hosts(search).await {
        Ok(found) => json(StatusCode::OK, &found),
        Err(fault) => failed(&fault),
    }
}

/// One host now, and everything that is remembered of its attempts.
#[utoipa::path(get, path = "/api/v1/hosts/{host}", tag = "watch",
    params(("host" = String, Path, description = "The host's name", max_length = 255)), responses(
    (status = 200, description = "The host and its history", body = HostReport),
    (status = 400, description = "This cannot be a host's name", body = ErrorView),
    (status = 401, description = "A token is needed, or it is wrong", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many questions at once", body = ErrorView),
    (status = 404, description = "No such host is known", body = ErrorView),
    (status = 503, description = "The part that knows does not answer", body = ErrorView),
))]
pub(super) async fn host(
    site: web::Data<Site>,
    request: HttpRequest,
    host: web::Path<String>,
) -> HttpResponse {
    if let Err(refusal) = site.access.reader(&request) {
        return denied(&refusal);
    }
    match site.state.desk.host(host.into_inner()).await {
        Ok(report) => json(StatusCode::OK, &report),
        Err(fault) => failed(&fault),
    }
}

/// Tries a host now, whatever it waits for: forgets its failures and puts it into the queue.
#[utoipa::path(post, path = "/api/v1/hosts/{host}/retry", tag = "change", security(("admin" = [])),
    params(("host" = String, Path, description = "The host's name", max_length = 255)),
    request_body = ChangeRequest, responses(
    (status = 200, description = "It is tried now", body = ChangeReport),
    (status = 400, description = "The request is wrong", body = ErrorView),
    (status = 401, description = "The admin token is needed, or it is wrong", body = ErrorView),
    (status = 403, description = "No changes are taken, or not with this token", body = ErrorView),
    (status = 404, description = "No such host is known", body = ErrorView),
    (status = 409, description = "Not in this state", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many changes at once", body = ErrorView),
    (status = 503, description = "The part that does it does not answer", body = ErrorView),
))]
pub(super) async fn retry(
    site: web::Data<Site>,
    request: HttpRequest,
    host: web::Path<String>,
    body: web::Bytes,
) -> HttpResponse {
    change(&site, &request, &body, Wish::Retry { host: host.into_inner() }).await
}

/// Pauses: no new host, no helper, no discovery; cycles end at their next safe point.
#[utoipa::path(post, path = "/api/v1/pause", tag = "change", security(("admin" = [])),
    request_body = ChangeRequest, responses(
    (status = 200, description = "It is paused", body = ChangeReport),
    (status = 400, description = "The request is wrong", body = ErrorView),
    (status = 401, description = "The admin token is needed, or it is wrong", body = ErrorView),
    (status = 403, description = "No changes are taken, or not with this token", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many changes at once", body = ErrorView),
    (status = 503, description = "The part that does it does not answer", body = ErrorView),
))]
pub(super) async fn pause(site: web::Data<Site>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    change(&site, &request, &body, Wish::Pause).await
}

/// Resumes, and looks for hosts at once.
#[utoipa::path(post, path = "/api/v1/resume", tag = "change", security(("admin" = [])),
    request_body = ChangeRequest, responses(
    (status = 200, description = "It works again", body = ChangeReport),
    (status = 400, description = "The request is wrong", body = ErrorView),
    (status = 401, description = "The admin token is needed, or it is wrong", body = ErrorView),
    (status = 403, description = "No changes are taken, or not with this token", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many changes at once", body = ErrorView),
    (status = 503, description = "The part that does it does not answer", body = ErrorView),
))]
pub(super) async fn resume(site: web::Data<Site>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    change(&site, &request, &body, Wish::Resume).await
}

/// Looks for hosts now instead of at the next interval.
#[utoipa::path(post, path = "/api/v1/discover", tag = "change", security(("admin" = [])),
    request_body = ChangeRequest, responses(
    (status = 200, description = "It looks", body = ChangeReport),
    (status = 400, description = "The request is wrong", body = ErrorView),
    (status = 401, description = "The admin token is needed, or it is wrong", body = ErrorView),
    (status = 403, description = "No changes are taken, or not with this token", body = ErrorView),
    (status = 409, description = "Not in this state", body = ErrorView),
    (status = 429, description = "Too many wrong tokens, or too many changes at once", body = ErrorView),
    (status = 503, description = "The part that does it does not answer", body = ErrorView),
))]
pub(super) async fn discover(site: web::Data<Site>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    change(&site, &request, &body, Wish::Discover).await
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "watch", responses(
    (status = 200, description = "The OpenAPI document of this API", body = Object),
))]
pub(super) async fn document(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    match site.access.check_host(&request) {
        Ok(()) => json(StatusCode::OK, &openapi::document()),
        Err(refusal) => denied(&refusal),
    }
}

async fn change(site: &Site, request: &HttpRequest, body: &[u8], wish: Wish) -> HttpResponse {
    if let Err(refusal) = site.access.program(request) {
        return denied(&refusal);
    }
    let ChangeRequest { who, why } = match serde_json::from_slice(body) {
        Ok(order) => order,
        Err(fault) => return bad(&format!("the body must be {{\"who\": …, \"why\": …}}: {fault}")),
    };
    match site.state.desk.change(wish, who, why).await {
        Ok(report) => json(StatusCode::OK, &report),
        Err(fault) => failed(&fault),
    }
}
