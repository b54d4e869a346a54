//! Who may look and who may change.

use super::support::*;
use crate::web::Wish;

type Headers<'a> = &'a [(&'a str, &'a str)];

const ORDER: &str = "{\"who\": \"kim\", \"why\": \"maintenance\"}";

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[actix_web::test]
async fn without_an_admin_token_nothing_can_be_changed() {
    let site = Site::open().await;
    let answer = site.send("POST", "/api/v1/pause", &[("Authorization", &bearer(ADMIN))], ORDER).await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (403, Some("no_admin_token")));
    let answer = site.form("/login", &[], &format!("who=kim&token={ADMIN}")).await;
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    assert!(!site.get("/").await.body.contains("<form class=\"controls\""), "no buttons");
    assert_eq!(site.form("/change", &[], "do=pause&why=x&csrf=").await.status, 403);
    assert!(site.desk.changes.lock().unwrap().is_empty());
    site.close().await;
}

#[actix_web::test]
async fn a_program_with_the_admin_token_changes_in_its_own_name() {
    let site = Site::open_for_admins().await;
    let answer = site.send("POST", "/api/v1/pause", &[("Authorization", &bearer(ADMIN))], ORDER).await;
    assert_eq!((answer.status, answer.json()["verb"].as_str()), (200, Some("pause")));
    let path = "/api/v1/hosts/node-000.example.net/retry";
    assert_eq!(site.send("POST", path, &[("Authorization", &bearer(ADMIN))], ORDER).await.status, 200);
    let host = "node-000.example.net".to_owned();
    let said = |wish| (wish, "kim".to_owned(), "maintenance".to_owned());
    assert_eq!(*site.desk.changes.lock().unwrap(), [said(Wish::Pause), said(Wish::Retry { host })]);
    site.close().await;
}

#[actix_web::test]
async fn a_program_without_the_right_token_changes_nothing() {
    let site = Site::open_with(tokens(true, true), None).await;
    let cookie = site.login(ADMIN).await;
    let cases: [(Headers<'_>, u16, &str); 7] = [
        (&[], 401, "no_token"),
        (&[("Authorization", "Bearer wrong")], 401, "wrong_token"),
        (&[("Authorization", "Basic a2ltOng=")], 401, "no_token"),
        (&[("Authorization", "Bearer")], 401, "no_token"),
        (&[("Authorization", "Bearer x")], 401, "wrong_token"),
        (&[("Authorization", &bearer(READER))], 403, "read_only"),
        // A session is for people: a page that makes the browser send its cookie gets nowhere.
        (&[("Cookie", &cookie)], 401, "no_token"),
    ];
    for (headers, status, code) in cases {
        let answer = site.send("POST", "/api/v1/resume", headers, ORDER).await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{headers:?}");
    }
    let in_url = site.send("POST", &format!("/api/v1/resume?token={ADMIN}"), &[], ORDER).await;
    assert_eq!(in_url.status, 401, "a token in a URL is no token");
    assert!(site.desk.changes.lock().unwrap().is_empty());
    site.close().await;
}

#[actix_web::test]
async fn a_change_that_says_nothing_or_too_much_is_refused() {
    let site = Site::open_for_admins().await;
    let admin = bearer(ADMIN);
    let long = format!("{{\"who\": \"kim\", \"why\": \"{}\"}}", "x".repeat(20_000));
    for (body, status) in
        [("", 400), ("{}", 400), ("[]", 400), ("{\"who\": 1, \"why\": \"x\"}", 400), (long.as_str(), 413)]
    {
        let answer = site.send("POST", "/api/v1/pause", &[("Authorization", &admin)], body).await;
        assert_eq!(answer.status, status, "{body:.40}");
    }
    let more = "{\"who\": \"kim\", \"why\": \"x\", \"force\": true}";
    assert_eq!(site.send("POST", "/api/v1/pause", &[("Authorization", &admin)], more).await.status, 400);
    site.close().await;
}

#[actix_web::test]
async fn an_operator_logs_in_changes_and_logs_out() {
    let site = Site::open_for_admins().await;
    let anonymous = site.get("/").await;
    assert!(anonymous.body.contains("href=\"/login\"") && !anonymous.body.contains("name=\"csrf\""));
    let login = site.form("/login", &[], &format!("who=+kim%0A+&token={ADMIN}")).await;
    let set = login.header("set-cookie").unwrap().to_owned();
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
    assert!(!login.body.contains(ADMIN) && !set.contains(ADMIN));
    let cookie = login.cookie();
    let page = site.send("GET", "/", &[("Cookie", &cookie)], "").await;
    assert!(page.body.contains("<span>kim</span>") && page.body.contains("value=\"pause\""), "{}", page.body);
    let csrf = page.csrf();
    let paused =
        site.form("/change", &[("Cookie", &cookie)], &format!("csrf={csrf}&do=pause&why=for+a+look")).await;
    assert_eq!((paused.status, paused.header("location")), (303, Some("/")));
    let retried = site
        .form("/change", &[("Cookie", &cookie)], &format!("csrf={csrf}&back=host&retry=web-3.example.net"))
        .await;
    assert_eq!(retried.header("location"), Some("/hosts/web-3.example.net?done=retry"));
    let host = "web-3.example.net".to_owned();
    let expected = [
        (Wish::Pause, "kim".to_owned(), "for a look".to_owned()),
        (Wish::Retry { host }, "kim".to_owned(), "asked for on the web page".to_owned()),
    ];
    assert_eq!(*site.desk.changes.lock().unwrap(), expected);
    let out = site.form("/logout", &[("Cookie", &cookie)], &format!("csrf={csrf}")).await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    let after = site.form("/change", &[("Cookie", &cookie)], &format!("csrf={csrf}&do=resume")).await;
    assert_eq!((after.status, after.header("location")), (303, Some("/login")));
    site.close().await;
}

#[actix_web::test]
async fn a_form_that_another_site_makes_a_browser_send_changes_nothing() {
    let site = Site::open_for_admins().await;
    let cookie = site.login(ADMIN).await;
    let csrf = site.send("GET", "/", &[("Cookie", &cookie)], "").await.csrf();
    let good = format!("csrf={csrf}&do=pause&why=x");
    let wrong = format!("csrf={}&do=pause&why=x", "0".repeat(64));
    let cases: [(&str, Headers<'_>); 6] = [
        ("do=pause&why=x", &[]),
        (&wrong, &[]),
        (&good, &[("Origin", "http://evil.example")]),
        (&good, &[("Origin", "null")]),
        (&good, &[("Sec-Fetch-Site", "cross-site")]),
        (&good, &[("Origin", "http://127.0.0.1:1")]),
    ];
    for (fields, headers) in cases {
        let mut headers = headers.to_vec();
        headers.push(("Cookie", &cookie));
        assert_eq!(site.form("/change", &headers, fields).await.status, 403, "{headers:?}");
    }
    let other = site.login(ADMIN).await;
    assert_eq!(
        site.form("/change", &[("Cookie", &other)], &good).await.status,
        403,
        "another session's form"
    );
    assert!(site.desk.changes.lock().unwrap().is_empty());
    let own = format!("http://{}", site.address);
    let headers = [("Cookie", cookie.as_str()), ("Origin", &own), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(site.form("/change", &headers, &good).await.status, 303);
    site.close().await;
}

#[actix_web::test]
async fn a_name_that_a_stranger_made_point_here_gets_nothing_but_what_monitors_get() {
    let site = Site::open_for_admins().await;
    let rebound = [("Host", "evil.example:9090")];
    for path in [
        "/",
        "/hosts",
        "/hosts/web-3.example.net",
        "/login",
        "/events",
        "/api/v1/status",
        "/api/v1/hosts",
        "/api/v1/openapi.json",
    ] {
        let answer = site.send("GET", path, &rebound, "").await;
        assert_eq!(answer.status, 421, "{path}");
        assert!(!answer.body.contains("web-3") && !answer.body.contains("prov1"), "{path}");
    }
    let login = site.form("/login", &rebound, &format!("who=kim&token={ADMIN}")).await;
    assert_eq!((login.status, login.header("set-cookie")), (421, None));
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(site.send("GET", path, &rebound, "").await.status, 200, "{path}");
    }
    assert_eq!(site.send("GET", "/", &[("Host", "prov1.example.net:9090")], "").await.status, 200);
    site.close().await;
}

#[actix_web::test]
async fn with_a_read_token_nobody_looks_without_one_but_monitors() {
    let site = Site::open_with(tokens(true, true), None).await;
    for path in ["/", "/hosts", "/hosts/web-3.example.net"] {
        let answer = site.get(path).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/login")), "{path}");
    }
    assert_eq!(site.get("/events").await.status, 401);
    for path in ["/api/v1/status", "/api/v1/overview", "/api/v1/hosts", "/api/v1/hosts/web-3.example.net"] {
        assert_eq!(site.get(path).await.json()["code"], "no_token", "{path}");
        let shown = site.send("GET", path, &[("Authorization", &bearer(READER))], "").await;
        assert_eq!(shown.status, 200, "{path}");
    }
    for path in ["/metrics", "/healthz", "/readyz", "/login", "/app.css", "/app.js", "/icon.svg"] {
        assert_eq!(site.get(path).await.status, 200, "{path}");
    }
    assert!(!site.get("/login").await.body.contains("prov1"), "the login page tells nothing");
    let cookie = site.login(READER).await;
    let page = site.send("GET", "/", &[("Cookie", &cookie)], "").await;
    assert!(page.status == 200 && !page.body.contains("value=\"pause\""), "a reader has no buttons");
    let fields = format!("csrf={}&do=pause&why=x", page.csrf());
    assert_eq!(site.form("/change", &[("Cookie", &cookie)], &fields).await.status, 403);
    site.close().await;
}

#[actix_web::test]
async fn a_password_meant_for_a_proxy_is_no_wrong_token() {
    for site in [Site::open().await, Site::open_for_admins().await] {
        for path in ["/", "/api/v1/status"] {
            let answer = site.send("GET", path, &[("Authorization", "Basic a2ltOng=")], "").await;
            assert_eq!(answer.status, 200, "{path}");
        }
        site.close().await;
    }
}

#[actix_web::test]
async fn a_second_login_ends_the_session_before_it() {
    let site = Site::open_for_admins().await;
    let before = site.login(ADMIN).await;
    let fields = format!("who=kim&token={ADMIN}");
    let cookie = site.form("/login", &[("Cookie", &before)], &fields).await.cookie();
    assert!(!site.send("GET", "/", &[("Cookie", &before)], "").await.body.contains("value=\"pause\""));
    assert!(site.send("GET", "/", &[("Cookie", &cookie)], "").await.body.contains("value=\"pause\""));
    site.close().await;
}

#[actix_web::test]
async fn wrong_tokens_are_slowed_down_and_a_right_one_with_them() {
    let site = Site::open_for_admins().await;
    for _ in 0..5 {
        let answer = site.form("/login", &[], "who=kim&token=guess").await;
        assert!(answer.status == 401 && answer.body.contains("the token is wrong"), "{answer:?}");
    }
    let answer = site.form("/login", &[], &format!("who=kim&token={ADMIN}")).await;
    assert_eq!((answer.status, answer.header("set-cookie")), (429, None));
    assert!(answer.header("retry-after").is_some());
    let answer = site.send("POST", "/api/v1/pause", &[("Authorization", &bearer(ADMIN))], ORDER).await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (429, Some("throttled")));
    assert!(answer.header("retry-after").is_some());
    site.close().await;
}

#[actix_web::test]
async fn a_token_that_was_replaced_ends_its_sessions_and_a_lost_one_lets_nobody_in() {
    use std::sync::{Arc, Mutex};
    let token = Arc::new(Mutex::new(Some(ADMIN)));
    let read = Arc::clone(&token);
    let source = crate::web::TokenSource::new(move || {
        read.lock().unwrap().map(secrecy::SecretString::from).ok_or(crate::web::TokenError::NoFile)
    });
    let access = crate::web::AccessSettings { admin: Some(source), ..tokens(false, false) };
    let site = Site::open_with(access, None).await;
    let cookie = site.login(ADMIN).await;
    *token.lock().unwrap() = Some("another-token-of-the-test");
    assert!(!site.send("GET", "/", &[("Cookie", &cookie)], "").await.body.contains("value=\"pause\""));
    assert_eq!(site.form("/login", &[], &format!("who=kim&token={ADMIN}")).await.status, 401);
    site.login("another-token-of-the-test").await;
    *token.lock().unwrap() = None;
    let answer = site.form("/login", &[], "who=kim&token=another-token-of-the-test").await;
    assert_eq!((answer.status, answer.header("set-cookie")), (503, None));
    site.close().await;
}
