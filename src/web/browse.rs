//! The pages for people: who may see them, what is asked for, and what is put on them.

use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, RETRY_AFTER, SET_COOKIE};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::answers::{answer, html};
use super::desk::{DeskError, HostSearch, MAX_SEARCH, Wish};
use super::guard::{Denied, Visitor};
use super::html::Html;
use super::pages::{self, Place, Shell, parts};
use super::site::Site;

/// Hosts on one page for people.
const PAGE: usize = 100;

/// What is asked of `/hosts`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HostsQuestion {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    after: String,
}

/// What is told to a host's page.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HostQuestion {
    #[serde(default)]
    done: String,
}

/// The login form.
#[derive(Deserialize)]
pub(super) struct LoginForm {
    #[serde(default)]
    who: String,
    #[serde(default)]
    token: String,
}

/// The logout form.
#[derive(Deserialize)]
pub(super) struct LogoutForm {
    #[serde(default)]
    csrf: String,
}

/// Every form that changes something.
#[derive(Deserialize)]
pub(super) struct ChangeForm {
    #[serde(default)]
    csrf: String,
    #[serde(default, rename = "do")]
    verb: String,
    #[serde(default)]
    retry: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    back: String,
}

/// `/`
pub(super) async fn overview(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    let visitor = match site.access.reader(&request) {
        Ok(visitor) => visitor,
        Err(denied) => return refuse(&site, &denied),
    };
    let glance = site.board.glance().await;
    let all = parts(&glance, visitor.admin().is_some());
    let content = pages::overview(&all, &visitor);
    let shell = Shell { glance: Some(&glance), place: Place::Fleet, ..frame(&site, &visitor) };
    html(StatusCode::OK, shell.page(&all, &content))
}

/// `/hosts`
pub(super) async fn hosts(
    site: web::Data<Site>,
    request: HttpRequest,
    question: Option<web::Query<HostsQuestion>>,
) -> HttpResponse {
    let visitor = match site.access.reader(&request) {
        Ok(visitor) => visitor,
        Err(denied) => return refuse(&site, &denied),
    };
    let Some(web::Query(HostsQuestion { q, state, after })) = question else {
        return say(
            &site,
            &visitor,
            StatusCode::BAD_REQUEST,
            "Not understood",
            "the question cannot be read",
        )
        .await;
    };
    let text = q.trim();
    if [text, &state, &after].iter().any(|part| part.len() > MAX_SEARCH) {
        let what = "no host's name is that long";
        return say(&site, &visitor, StatusCode::BAD_REQUEST, "Not understood", what).await;
    }
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let search = HostSearch { state: some(&state), text: some(text), after: some(&after), most: PAGE };
    match site.state.desk.hosts(search.clone()).await {
        Ok(found) => {
            let content = pages::hosts(&search, &found);
            put(&site, &visitor, StatusCode::OK, Place::Hosts, "Hosts", text, &content).await
        }
        Err(error) => say_error(&site, &visitor, &error).await,
    }
}

/// `/hosts/{name}`
pub(super) async fn host(
    site: web::Data<Site>,
    request: HttpRequest,
    name: web::Path<String>,
    question: Option<web::Query<HostQuestion>>,
) -> HttpResponse {
    let visitor = match site.access.reader(&request) {
        Ok(visitor) => visitor,
        Err(denied) => return refuse(&site, &denied),
    };
    let name = name.into_inner();
    if name.len() > MAX_SEARCH {
        let what = "no host's name is that long";
        return say(&site, &visitor, StatusCode::NOT_FOUND, "No such host", what).await;
    }
    let done = question.is_some_and(|question| question.done == "retry");
    match site.state.desk.host(name.clone()).await {
        Ok(report) => {
            let content = pages::host(&report, &visitor, done);
            put(&site, &visitor, StatusCode::OK, Place::Hosts, &name, "", &content).await
        }
        Err(error) => say_error(&site, &visitor, &error).await,
    }
}

/// `/login`, to look at.
pub(super) async fn login_page(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    match site.access.visitor(&request) {
        Ok(visitor) if visitor.session.is_some() => to("/"),
        Ok(visitor) => login_again(&site, &visitor, StatusCode::OK, None, ""),
        Err(denied) => refuse(&site, &denied),
    }
}

/// `/login`, sent.
pub(super) async fn login(
    site: web::Data<Site>,
    request: HttpRequest,
    form: Option<web::Form<LoginForm>>,
) -> HttpResponse {
    let Some(web::Form(LoginForm { who, token })) = form else { return unreadable() };
    let who = quartermaster_proto::text::escape_bounded(who.trim(), crate::operate::MAX_WHO);
    let visitor = Visitor::default();
    if who.is_empty() {
        let wrong = "say who you are: every change carries the name of who made it";
        return login_again(&site, &visitor, StatusCode::BAD_REQUEST, Some(wrong), "");
    }
    match site.access.login(&request, &token, &who) {
        Ok(cookie) => {
            let mut there = to("/");
            if let Ok(cookie) = actix_web::http::header::HeaderValue::from_str(&cookie) {
                there.headers_mut().insert(SET_COOKIE, cookie);
            }
            there
        }
        Err(denied @ (Denied::WrongToken | Denied::Throttled { .. } | Denied::Closed | Denied::Unusable)) => {
            let mut again = login_again(&site, &visitor, denied.status(), Some(denied.sentence()), &who);
            if let Denied::Throttled { wait } = denied {
                let seconds = wait.as_secs().saturating_add(1);
                again.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
            again
        }
        Err(denied) => refuse(&site, &denied),
    }
}

/// `/logout`
pub(super) async fn logout(
    site: web::Data<Site>,
    request: HttpRequest,
    form: Option<web::Form<LogoutForm>>,
) -> HttpResponse {
    let Some(web::Form(LogoutForm { csrf })) = form else { return unreadable() };
    match site.access.logout(&request, &csrf) {
        Ok(cookie) => {
            let mut there = to("/");
            if let Ok(cookie) = actix_web::http::header::HeaderValue::from_str(&cookie) {
                there.headers_mut().insert(SET_COOKIE, cookie);
            }
            there
        }
        Err(denied) => refuse(&site, &denied),
    }
}

/// `/change`
pub(super) async fn change(
    site: web::Data<Site>,
    request: HttpRequest,
    form: Option<web::Form<ChangeForm>>,
) -> HttpResponse {
    let Some(web::Form(form)) = form else { return unreadable() };
    let session = match site.access.form(&request, &form.csrf) {
        Ok(session) => session,
        Err(denied) => return refuse(&site, &denied),
    };
    let why = form.why.trim();
    let or = |otherwise: &str| if why.is_empty() { otherwise.to_owned() } else { why.to_owned() };
    let (wish, why) = match (form.verb.as_str(), form.retry.as_str()) {
        ("pause", _) => (Wish::Pause, why.to_owned()),
        ("resume", _) => (Wish::Resume, or("resumed on the web page")),
        ("discover", _) => (Wish::Discover, or("asked for on the web page")),
        (_, host) if !host.is_empty() => {
            (Wish::Retry { host: host.to_owned() }, or("asked for on the web page"))
        }
        _ => return unreadable(),
    };
    let visitor = Visitor { session: Some(session.clone()) };
    let back = match &wish {
        Wish::Retry { host } if form.back == "host" => {
            format!("/hosts/{}?done=retry", super::words::in_url(host))
        }
        _ => "/".to_owned(),
    };
    match site.state.desk.change(wish, session.who, why).await {
        Ok(_) => to(&back),
        Err(error) => say_error(&site, &visitor, &error).await,
    }
}

/// See there.
fn to(path: &str) -> HttpResponse {
    answer(StatusCode::SEE_OTHER).insert_header((LOCATION, path)).finish()
}

fn unreadable() -> HttpResponse {
    super::answers::plain(StatusCode::BAD_REQUEST, "this form cannot be read")
}

fn frame<'a>(site: &Site, visitor: &'a Visitor) -> Shell<'a> {
    Shell {
        place: Place::Elsewhere,
        title: "",
        glance: None,
        visitor,
        has_login: site.access.has_login(),
        search: "",
    }
}

/// A page with the fleet's state around it.
async fn put(
    site: &Site,
    visitor: &Visitor,
    status: StatusCode,
    place: Place,
    title: &str,
    search: &str,
    content: &Html,
) -> HttpResponse {
    let glance = site.board.glance().await;
    let all = parts(&glance, visitor.admin().is_some());
    let shell = Shell { glance: Some(&glance), place, title, search, ..frame(site, visitor) };
    html(status, shell.page(&all, content))
}

async fn say(site: &Site, visitor: &Visitor, status: StatusCode, title: &str, what: &str) -> HttpResponse {
    put(site, visitor, status, Place::Elsewhere, title, "", &pages::message(title, what)).await
}

async fn say_error(site: &Site, visitor: &Visitor, error: &DeskError) -> HttpResponse {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = if status == StatusCode::NOT_FOUND { "No such host" } else { "Not done" };
    say(site, visitor, status, title, &error.sentence).await
}

fn login_again(
    site: &Site,
    visitor: &Visitor,
    status: StatusCode,
    wrong: Option<&str>,
    who: &str,
) -> HttpResponse {
    let shell = Shell { title: "Log in", ..frame(site, visitor) };
    html(status, shell.page(&[], &pages::login(wrong, who)))
}

/// A refusal for people, which shows nothing of the fleet.
fn refuse(site: &Site, denied: &Denied) -> HttpResponse {
    if matches!(denied, Denied::NoToken) && site.access.has_login() {
        return to("/login");
    }
    let visitor = Visitor::default();
    let shell = Shell { title: "Refused", ..frame(site, &visitor) };
    html(denied.status(), shell.page(&[], &pages::message("Refused", denied.sentence())))
}
