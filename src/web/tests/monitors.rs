//! What monitors ask for, over real sockets.

use std::time::Duration;

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use quartermaster_actors::control::RunState;
use quartermaster_actors::link::LinkState;
use quartermaster_actors::supervise::{Ending, Force};

use super::support::*;
use crate::config::ListenAddress;
use crate::web::{BoundWeb, WebError};

#[actix_web::test]
async fn metrics_are_served_as_prometheus_text() {
    let site = Site::open().await;
    let answer = site.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(
        answer.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{}",
        answer.head
    );
    assert!(answer.body.contains("choria_provisioner_waiting_nodes{site=\"lab\"} 0\n"), "{}", answer.body);
    site.close().await;
}

#[actix_web::test]
async fn metrics_without_their_keeper_are_a_clear_503_and_the_other_pages_answer() {
    let site = Site::open().await;
    site.metrics.slot().clear();
    let answer = site.get("/metrics").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (503, "could not ask for the metrics: metrics is down\n")
    );
    assert_eq!(site.get("/healthz").await.status, 200);
    site.close().await;
}

#[actix_web::test]
async fn a_scrape_that_comes_before_the_keeper_is_up_waits_for_it() {
    let site = Site::open().await;
    let keeper = site.metrics.slot().addr().unwrap();
    site.metrics.slot().clear();
    let comes_up = async {
        // Long enough for the question to be there first; were it not, nothing would be shown.
        tokio::time::sleep(Duration::from_millis(300)).await;
        site.metrics.slot().set(keeper);
    };
    let (scrape, ()) = tokio::join!(site.get("/metrics"), comes_up);
    assert_eq!(scrape.status, 200, "{}", scrape.body);
    site.close().await;
}

#[actix_web::test]
async fn a_scrape_of_a_hanging_keeper_ends_and_holds_up_no_other_page() {
    let site = Site::open().await;
    site.metrics.slot().try_send(Force(Ending::Hang)).unwrap();
    let (scrape, status) = tokio::join!(site.get("/metrics"), site.get("/api/v1/status"));
    assert_eq!((scrape.status, status.status), (503, 200));
    assert!(scrape.body.contains("no answer from metrics within"), "{}", scrape.body);
    site.close().await;
}

#[actix_web::test]
async fn a_live_process_is_healthy() {
    let site = Site::open().await;
    let answer = site.get("/healthz").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), serde_json::json!({"live": true, "reasons": []}));
    site.close().await;
}

#[actix_web::test]
async fn a_process_that_cannot_go_on_is_not_healthy_and_says_why() {
    let site = Site::open().await;
    let why = "gave up".to_owned();
    site.overseer.vital().give_up(quartermaster_actors::supervise::Fatal { child: "link", why });
    let answer = site.get("/healthz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["reasons"][0], "the process cannot go on: link: gave up");
    site.close().await;
}

/// The status and body of `/readyz` in this state.
async fn check_ready(run_state: RunState, link: LinkState, status: u16, expected: serde_json::Value) {
    let site = Site::open().await;
    site.run_state.send_replace(run_state);
    *site.link.lock().unwrap() = link;
    let answer = site.get("/readyz").await;
    assert_eq!((answer.status, answer.json()), (status, expected));
    site.close().await;
}

fn ready_as(role: &str) -> serde_json::Value {
    serde_json::json!({"ready": true, "role": role, "reasons": []})
}

#[actix_web::test]
async fn a_connected_instance_is_ready() {
    check_ready(RunState::working(), connected(), 200, ready_as("leading")).await;
}

#[actix_web::test]
async fn a_standby_is_ready() {
    let standby = RunState { leading: false, ..RunState::working() };
    check_ready(standby, connected(), 200, ready_as("standby")).await;
}

#[actix_web::test]
async fn a_paused_instance_is_ready_and_says_that_it_is_paused() {
    check_ready(paused(), connected(), 200, ready_as("paused")).await;
}

#[actix_web::test]
async fn a_draining_instance_is_not_ready() {
    let draining = RunState { draining: true, ..RunState::working() };
    let reasons = serde_json::json!({
        "ready": false, "role": "draining", "reasons": ["draining: nothing new is taken on"],
    });
    check_ready(draining, connected(), 503, reasons).await;
}

#[actix_web::test]
async fn an_instance_without_a_broker_is_not_ready_and_says_why() {
    let reason = "not connected to a broker: connection refused";
    let expected = serde_json::json!({"ready": false, "role": "leading", "reasons": [reason]});
    check_ready(RunState::working(), connecting("connection refused", false), 503, expected).await;
}

#[actix_web::test]
async fn an_instance_whose_login_is_refused_says_that() {
    let reason = "the broker refused the login: authorization violation";
    let expected = serde_json::json!({"ready": false, "role": "leading", "reasons": [reason]});
    check_ready(RunState::working(), connecting("authorization violation", true), 503, expected).await;
}

#[actix_web::test]
async fn the_status_holds_run_state_link_fleet_and_actors() {
    let site = Site::open().await;
    site.run_state.send_replace(paused());
    let status = site.get("/api/v1/status").await.json();
    assert_eq!(status["run_state"]["paused"]["who"], "kim");
    assert_eq!(status["run_state"]["says"], "paused by kim since 2023-11-14T22:13:20Z because maintenance");
    assert_eq!(status["link"]["server"], "broker.example.net:4222");
    assert_eq!(status["link"]["pending"], 4);
    assert_eq!(status["fleet"]["queued"], 3);
    assert_eq!(status["actors"][0]["name"], "metrics");
    assert_eq!(status["actors"][0]["state"], "running");
    assert_eq!(status["actors"][0]["endings"]["panicked"], 0);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    site.close().await;
}

#[actix_web::test]
async fn the_page_links_what_monitors_ask_for() {
    let site = Site::open().await;
    let index = site.get("/").await;
    assert_eq!(index.status, 200);
    for page in ["/metrics", "/healthz", "/readyz", "/api/v1/status", "/api/v1/openapi.json"] {
        assert!(index.body.contains(&format!("href=\"{page}\"")), "{page}");
        assert_eq!(site.get(page).await.status, 200, "{page}");
    }
    site.close().await;
}

#[actix_web::test]
async fn head_answers_as_get_without_a_body() {
    let site = Site::open().await;
    for page in ["/", "/metrics", "/healthz", "/readyz", "/api/v1/status"] {
        let head = site.ask("HEAD", page).await;
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{page}");
    }
    site.close().await;
}

#[actix_web::test]
async fn a_page_that_is_not_there_is_a_404() {
    let site = Site::open().await;
    for path in ["/nothing", "/metrics/", "/api/v1/../../etc/passwd", "//", "/%00", "/api"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
    site.close().await;
}

#[actix_web::test]
async fn a_wrong_method_is_a_405_that_names_the_right_ones() {
    let site = Site::open().await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let answer = site.ask(method, "/metrics").await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: get, head"), "{}", answer.head);
    }
    site.close().await;
}

#[actix_web::test]
async fn nonsense_on_the_wire_is_answered_or_dropped_and_the_next_request_works() {
    let site = Site::open().await;
    let nonsense = site.raw("\u{1}\u{2}\u{3} nonsense\r\n\r\n".to_owned()).await;
    assert_eq!(nonsense.status, 400);
    let huge = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(300_000));
    let address = site.address;
    // The server may hang up in the middle of it.
    tokio::task::spawn_blocking(move || TcpStream::connect(address).unwrap().write_all(huge.as_bytes()).ok())
        .await
        .unwrap();
    assert_eq!(site.get("/healthz").await.status, 200);
    site.close().await;
}

#[test]
fn an_address_that_is_taken_is_a_clear_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = BoundWeb::bind(ListenAddress::At(address), false).unwrap_err();
    assert_eq!(error.to_string(), format!("could not listen for web requests on {address}"));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("in use"));
}

#[test]
fn everywhere_answers_on_the_loopback_of_ipv4_too() {
    let bound = BoundWeb::bind(ListenAddress::Everywhere { port: 0 }, false).unwrap();
    let port = bound.addresses()[0].port();
    assert_ne!(port, 0);
    assert!(bound.addresses().iter().all(|address| address.ip().is_unspecified() && address.port() == port));
    TcpStream::connect(("127.0.0.1", port)).unwrap();
}

#[test]
fn a_port_taken_everywhere_is_a_clear_error() {
    let taken = BoundWeb::bind(ListenAddress::Everywhere { port: 0 }, false).unwrap();
    let port = taken.addresses()[0].port();
    let error = BoundWeb::bind(ListenAddress::Everywhere { port }, false).unwrap_err();
    assert!(matches!(error, WebError::Bind { .. }), "{error:?}");
}
