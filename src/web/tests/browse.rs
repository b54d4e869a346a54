//! The pages for people, as markup.

use super::samples::HOSTILE_NAME;
use super::support::*;
use crate::web::words::in_url;

/// Markup that a browser would act on, from what the samples say.
const HARMFUL: [&str; 8] = [
    "<script>",
    "<script<",
    "<img src=x",
    "\"onmouseover",
    "</pre><script",
    "\u{1b}",
    "\u{202e}",
    "\u{200b}",
];

#[actix_web::test]
async fn what_hosts_and_helpers_say_stays_text_on_every_page() {
    let site = Site::open_for_admins().await;
    let cookie = site.login(ADMIN).await;
    let host = format!("/hosts/{}", in_url(HOSTILE_NAME));
    let search = format!("/hosts?q={0}&state={0}&after={0}", in_url("\"><script>alert(1)</script>"));
    for path in ["/", "/hosts", &host, &search, "/hosts/%3Cscript%3Ealert(1)", "/hosts?state=cooling"] {
        let page = site.send("GET", path, &[("Cookie", &cookie)], "").await;
        for harmful in HARMFUL {
            assert!(!page.body.contains(harmful), "{path} holds {harmful:?}: {}", page.body);
        }
    }
    let shown = site.get(&host).await;
    assert_eq!(shown.status, 200, "a name with every kind of character is found");
    assert!(shown.body.contains("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt; \\u{1b}[2J\\u{202e}evil"));
    site.close().await;
}

#[actix_web::test]
async fn every_page_keeps_to_its_own_origin_and_has_nothing_in_line() {
    let site = Site::open_for_admins().await;
    let cookie = site.login(ADMIN).await;
    for path in [
        "/",
        "/hosts",
        "/hosts/web-3.example.net",
        "/hosts/nobody",
        "/nothing",
        "/login",
        "/app.js",
        "/api/v1/status",
        "/metrics",
    ] {
        let page = site.send("GET", path, &[("Cookie", &cookie)], "").await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(page.header(name), Some(value), "{path}");
        }
        if page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            for inline in [
                " style=",
                "<style",
                "javascript:",
                " onclick",
                " onload",
                "http://",
                "https://",
                "<meta http-equiv",
                "//",
            ] {
                let body = page.body.replace("</", "<");
                let own = body.replace("<!doctype html>", "").replace(HOSTILE_NAME, "");
                assert!(
                    !own.contains(inline) || inline == "//" && own.contains("alert(1)//"),
                    "{path} holds {inline}"
                );
            }
            assert_eq!(page.body.matches("<script").count(), 1, "{path}: the script of our own alone");
        }
    }
    site.close().await;
}

#[actix_web::test]
async fn the_fleet_is_told_at_a_glance() {
    let site = Site::open().await;
    let page = site.get("/").await.body;
    for words in [
        "Working",
        "prov1.example.net · lab",
        "<b>3</b> waiting",
        "oldest 4 min",
        "<b>2</b> in a cycle",
        "slowest <code>inventory</code> 12.4 s (try 2)",
        "web-3.example.net",
        "helper exited with status 1 after 2.3 s",
        "asking the inventory",
        "given up",
        "in 1 min",
        "broker.example.net:4222",
        "href=\"/hosts?state=cooling\"",
        ">Refresh</a>",
    ] {
        assert!(page.contains(words), "{words} is missing: {page}");
    }
    site.close().await;
}

#[actix_web::test]
async fn a_pause_and_a_lost_broker_are_seen_first() {
    let site = Site::open().await;
    site.run_state.send_replace(paused());
    *site.link.lock().unwrap() = connecting("connection refused", false);
    let page = site.get("/").await.body;
    assert!(page.contains("<span class=\"badge warn\">Paused</span>"), "{page}");
    assert!(page.contains("<strong>Paused</strong> by kim") && page.contains("2023-11-14 22:13:20 UTC"));
    assert!(page.contains("<strong>Not ready:</strong> not connected to a broker: connection refused"));
    site.close().await;
}

#[actix_web::test]
async fn hosts_are_found_by_name_and_state_page_by_page() {
    let site = Site::open().await;
    let all = site.get("/hosts").await.body;
    assert!(all.contains("<b>253</b> hosts") && all.matches("<tr><th scope=\"row\">").count() == 100);
    let next = all.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = site.get(&next.replace("&amp;", "&")).await.body;
    assert!(second.contains("First page") && second.contains("node-120.example.net"), "{next}: {second}");
    let found = site.get("/hosts?q=web-3&state=gave_up").await.body;
    assert!(found.contains("<b>1</b> host<") && found.contains("<option value=\"gave_up\" selected>"));
    assert!(site.get("/hosts?q=nobody").await.body.contains("No host fits."));
    let long = "x".repeat(256);
    assert_eq!(site.get(&format!("/hosts?q={long}")).await.status, 400);
    assert_eq!(site.get(&format!("/hosts/{long}")).await.status, 404);
    site.close().await;
}

#[actix_web::test]
async fn a_host_tells_its_whole_history() {
    let site = Site::open().await;
    let page = site.get("/hosts/web-3.example.net").await.body;
    for words in [
        "Given up",
        "Attempt 2",
        "2023-11-14 22:13:20 UTC · 2.5 s · cycle 17",
        "<code>helper</code>",
        "2.3 s",
        "Attempt 1",
        "interrupted",
        "<dt>failures in a row</dt><dd>2</dd>",
    ] {
        assert!(page.contains(words), "{words} is missing: {page}");
    }
    assert!(!page.contains("Retry now"), "a visitor has no buttons");
    let unknown = site.get("/hosts/nobody.example.net").await;
    assert!(unknown.status == 404 && unknown.body.contains("No such host"));
    site.close().await;
}

#[actix_web::test]
async fn what_was_not_done_is_said_on_a_page() {
    let site = Site::open_for_admins().await;
    let cookie = site.login(ADMIN).await;
    let csrf = site.send("GET", "/", &[("Cookie", &cookie)], "").await.csrf();
    let pause = site.form("/change", &[("Cookie", &cookie)], &format!("csrf={csrf}&do=pause&why=+")).await;
    assert!(pause.status == 400 && pause.body.contains("it must be said"), "{pause:?}");
    let look = site.form("/change", &[("Cookie", &cookie)], &format!("csrf={csrf}&do=discover")).await;
    assert!(look.status == 409 && look.body.contains("this instance is paused"));
    let nothing = site.form("/change", &[("Cookie", &cookie)], &format!("csrf={csrf}")).await;
    assert_eq!(nothing.status, 400);
    site.close().await;
}
