//! The live pages: what is sent, when, and to how many.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use quartermaster_actors::control::RunState;

use super::support::*;
use crate::web::clients::MAX_CLIENTS;

/// A stream of events, read line by line.
struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    fn open(site: &Site, more: &str) -> Self {
        let mut stream = TcpStream::connect(site.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let host = site.address;
        stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").as_bytes()).unwrap();
        Self { lines: BufReader::new(stream) }
    }

    /// The next line that begins so, what comes before it skipped.
    fn line(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the stream ended before {beginning}");
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// The next parts, by the ids of their places.
    fn parts(&mut self) -> serde_json::Value {
        self.line("event: parts");
        serde_json::from_str(self.line("data: ").trim_start_matches("data: ")).unwrap()
    }
}

#[actix_web::test]
async fn the_first_event_has_every_part_and_a_pause_is_told_at_once() {
    let site = Site::open().await;
    let events = Events::open(&site, "");
    let (events, first) = tokio::task::spawn_blocking(move || {
        let mut events = events;
        assert!(events.line("HTTP/1.1").contains("200"));
        let first = events.parts();
        (events, first)
    })
    .await
    .unwrap();
    for id in ["state", "notices", "numbers", "states", "failures", "controls", "process", "title"] {
        assert!(first[id].is_string(), "{id}");
    }
    assert!(first["state"].as_str().unwrap().contains("Working"));
    site.run_state.send_replace(paused());
    let told = tokio::task::spawn_blocking(move || {
        let mut events = events;
        loop {
            let parts = events.parts();
            if let Some(notices) = parts["notices"].as_str() {
                return (notices.to_owned(), parts);
            }
        }
    });
    let (notices, parts) = told.await.unwrap();
    assert!(notices.contains("Paused") && notices.contains("kim") && notices.contains("maintenance"));
    assert!(parts["state"].as_str().unwrap().contains("Paused"));
    assert!(parts["failures"].is_null(), "what did not change is not sent again");
    site.run_state.send_replace(RunState::working());
    site.close().await;
}

#[actix_web::test]
async fn buttons_are_for_admins_and_no_event_holds_the_token_of_a_form() {
    let site = Site::open_for_admins().await;
    let cookie = site.login(ADMIN).await;
    let csrf = site.send("GET", "/", &[("Cookie", &cookie)], "").await.csrf();
    let mut admin = Events::open(&site, &format!("Cookie: {cookie}\r\n"));
    let mut reader = Events::open(&site, "");
    let (admin, reader) =
        tokio::task::spawn_blocking(move || (admin.parts().to_string(), reader.parts().to_string()))
            .await
            .unwrap();
    assert!(admin.contains("pause") && admin.contains("Retry"));
    assert!(!reader.contains("Retry") && !reader.contains("<button"));
    assert!(!admin.contains(&csrf));
    site.close().await;
}

#[actix_web::test]
async fn no_more_than_so_many_look_and_whoever_leaves_makes_room() {
    let site = Site::open().await;
    let address = site.address;
    let mut open: Vec<_> = (0..MAX_CLIENTS).map(|_| Events::open(&site, "")).collect();
    let open = tokio::task::spawn_blocking(move || {
        for events in &mut open {
            assert!(events.line("HTTP/1.1").contains("200"));
        }
        open
    })
    .await
    .unwrap();
    let refused = site.get("/events").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("30")));
    assert_eq!(site.get("/").await.status, 200, "pages are served all the same");
    drop(open);
    let again = tokio::task::spawn_blocking(move || {
        let began = std::time::Instant::now();
        while began.elapsed() < SOON {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            if line.contains("200") {
                return true;
            }
        }
        false
    });
    assert!(again.await.unwrap(), "the places of those who left are free again");
    site.close().await;
}

#[actix_web::test]
async fn an_overview_that_is_not_told_is_said_to_be_old() {
    let site = Site::open().await;
    assert!(!site.get("/").await.body.contains("Older figures"));
    *site.desk.is_silent.lock().unwrap() = true;
    let mut events = Events::open(&site, "");
    let told = tokio::task::spawn_blocking(move || {
        loop {
            let parts = events.parts();
            if parts["notices"].as_str().is_some_and(|notices| notices.contains("Older figures")) {
                return;
            }
        }
    });
    told.await.unwrap();
    assert!(site.get("/").await.body.contains("web-3.example.net"), "the last answer is still shown");
    site.close().await;
}
