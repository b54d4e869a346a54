//! `/events`: the parts of the page as server-sent events, each when it changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures::Stream;
use tokio::sync::watch;

use super::answers::{answer, plain};
use super::clients::{BEAT_EVERY, Place};
use super::live::{Board, Frame, LivePart};
use super::site::Site;

/// A stream ends after this, and the browser asks for the next: so a right that was taken back ends it too.
const STREAM_LIMIT: Duration = Duration::from_mins(5);

/// One visitor's stream.
struct Watcher {
    board: Arc<Board>,
    place: Weak<Place>,
    frames: watch::Receiver<Frame>,
    admin: bool,
    sent: BTreeMap<&'static str, Arc<str>>,
    until: Instant,
    first: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.board.clients.leave(&self.place);
    }
}

/// The stream of changes.
pub(super) async fn events(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    let visitor = match site.access.watcher(&request) {
        Ok(visitor) => visitor,
        Err(denied) => return plain(denied.status(), denied.sentence()),
    };
    let now = Instant::now();
    let Some(place) = site.board.clients.enter(now) else {
        let mut busy = plain(StatusCode::SERVICE_UNAVAILABLE, "too many look at live pages: try again later");
        busy.headers_mut().insert(RETRY_AFTER, actix_web::http::header::HeaderValue::from_static("30"));
        return busy;
    };
    let watcher = Watcher {
        board: Arc::clone(&site.board),
        place,
        frames: site.board.subscribe(),
        admin: visitor.admin().is_some(),
        sent: BTreeMap::new(),
        until: now + STREAM_LIMIT,
        first: true,
    };
    answer(StatusCode::OK)
        .content_type("text/event-stream")
        .insert_header(("x-accel-buffering", "no"))
        .streaming(stream(watcher))
}

fn stream(watcher: Watcher) -> impl Stream<Item = Result<Bytes, actix_web::Error>> {
    futures::stream::unfold(watcher, |mut watcher| async move {
        let message = watcher.next().await?;
        Some((Ok(message), watcher))
    })
}

impl Watcher {
    /// The next message; none when the stream is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.first {
            self.first = false;
            self.board.publish().await;
        } else {
            let changed = tokio::time::timeout(BEAT_EVERY, self.frames.changed()).await;
            if matches!(changed, Ok(Err(_))) {
                return None;
            }
        }
        let now = Instant::now();
        if now >= self.until {
            return None;
        }
        // Too slow for too long: the place belongs to somebody else.
        self.place.upgrade()?.takes(now);
        let frame = Arc::clone(&self.frames.borrow_and_update());
        Some(message(&frame, self.admin, &mut self.sent))
    }
}

/// What differs from what was sent before, as one event; a comment when nothing does.
fn message(frame: &[LivePart], admin: bool, sent: &mut BTreeMap<&'static str, Arc<str>>) -> Bytes {
    let mut changed = BTreeMap::new();
    for part in frame {
        let html = if admin { &part.admin } else { &part.reader };
        if sent.get(part.id) != Some(html) {
            sent.insert(part.id, Arc::clone(html));
            changed.insert(part.id, &**html);
        }
    }
    if changed.is_empty() {
        return Bytes::from_static(b"event: beat\ndata: {}\n\n");
    }
    // JSON has no raw line breaks, so it is one line of data. A map of texts is always JSON.
    let data = serde_json::to_string(&changed).unwrap_or_else(|_| "{}".to_owned());
    Bytes::from(format!("retry: 2000\nevent: parts\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &'static str, html: &str) -> LivePart {
        LivePart { id, reader: html.into(), admin: format!("{html}!").into() }
    }

    #[test]
    fn only_what_changed_is_sent_on_one_line_of_data() {
        let mut sent = BTreeMap::new();
        let first = message(&[part("a", "1\n2"), part("b", "x")], false, &mut sent);
        assert_eq!(first, "retry: 2000\nevent: parts\ndata: {\"a\":\"1\\n2\",\"b\":\"x\"}\n\n");
        let second = message(&[part("a", "1\n2"), part("b", "y")], false, &mut sent);
        assert_eq!(second, "retry: 2000\nevent: parts\ndata: {\"b\":\"y\"}\n\n");
        let third = message(&[part("a", "1\n2"), part("b", "y")], false, &mut sent);
        assert_eq!(third, "event: beat\ndata: {}\n\n");
    }

    #[test]
    fn an_admin_gets_the_parts_of_an_admin() {
        let bytes = message(&[part("a", "x")], true, &mut BTreeMap::new());
        assert_eq!(bytes, "retry: 2000\nevent: parts\ndata: {\"a\":\"x!\"}\n\n");
    }
}
