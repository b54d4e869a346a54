//! A web server on a free port, with a state the test can change and an instance behind it that remembers what it is told.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quartermaster_actors::control::{ControlHandle, PausedBy, RunState};
use quartermaster_actors::fleet::{Counts, FleetHandle, FleetOverview, FleetSnapshot, HostPage, HostView};
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::{LinkSnapshot, LinkState};
use quartermaster_actors::metrics::{MetricsHandle, MetricsKeeper, Recorder};
use quartermaster_actors::supervise::{Overseer, OverseerHandle, OverseerSettings, Slot};
use secrecy::SecretString;
use tokio::sync::watch;

use super::samples;
use crate::config::ListenAddress;
use crate::operate::{
    About, Audit, ChangeReport, ClusterView, HealthView, HostReport, HostsReport, Operator, OperatorParts,
    ReadyView, StatusReport,
};
use crate::web::*;

pub const SOON: Duration = Duration::from_secs(20);
pub const ADMIN: &str = "admin-token-of-the-test";
pub const READER: &str = "read-token-of-the-test";

pub struct Site {
    pub address: SocketAddr,
    pub run_state: watch::Sender<RunState>,
    pub link: Arc<Mutex<LinkState>>,
    pub metrics: MetricsHandle,
    pub overseer: OverseerHandle,
    pub desk: Arc<FakeDesk>,
    handle: actix_web::dev::ServerHandle,
}

/// An answer, taken apart.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: String,
    /// As it came.
    pub lines: Vec<String>,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of this header, as it came.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = |line: &'_ String| line.to_lowercase().starts_with(&format!("{name}:"));
        self.lines.iter().find(|line| header(line)).and_then(|line| Some(line.split_once(':')?.1.trim()))
    }

    /// The cookie it sets, as it is sent back.
    pub fn cookie(&self) -> String {
        self.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    /// The token in the forms of this page.
    pub fn csrf(&self) -> String {
        let (_, after) = self.body.split_once("name=\"csrf\" value=\"").expect("a form");
        after.split('"').next().unwrap().to_owned()
    }
}

/// Answers with samples, and remembers changes. What has no sample comes from an operator whose actors are down.
pub struct FakeDesk {
    operator: Operator,
    pub changes: Mutex<Vec<(Wish, String, String)>>,
    pub is_silent: Mutex<bool>,
}

impl FakeDesk {
    fn error(status: u16, code: &str, sentence: &str) -> DeskError {
        DeskError { status, code: code.to_owned(), sentence: sentence.to_owned() }
    }
}

impl Desk for FakeDesk {
    fn health(&self) -> HealthView {
        self.operator.health()
    }

    fn ready(&self) -> ReadyView {
        self.operator.ready()
    }

    fn status(&self) -> StatusReport {
        self.operator.status()
    }

    fn overview(&self) -> crate::web::Answer<'_, FleetOverview> {
        let silent = *self.is_silent.lock().unwrap();
        Box::pin(async move {
            if silent {
                return Err(Self::error(503, "unavailable", "the keeper of the fleet is silent"));
            }
            Ok(samples::overview())
        })
    }

    fn hosts(&self, search: HostSearch) -> crate::web::Answer<'_, HostsReport> {
        Box::pin(async move {
            let fits = |host: &HostView| {
                search.state.as_ref().is_none_or(|state| *state == host.state)
                    && search.text.as_ref().is_none_or(|text| host.identity.as_str().contains(text.as_str()))
            };
            let all: Vec<_> = samples::hosts().into_iter().filter(fits).collect();
            let after = |host: &HostView| {
                search.after.as_ref().is_none_or(|after| host.identity.as_str() > after.as_str())
            };
            let total = all.len();
            let mut hosts: Vec<_> = all.into_iter().filter(after).collect();
            let next = (hosts.len() > search.most).then(|| hosts[search.most - 1].identity.clone());
            hosts.truncate(search.most);
            Ok(HostsReport {
                instance: "prov1.example.net".to_owned(),
                page: HostPage { hosts, next, total },
            })
        })
    }

    fn host(&self, name: String) -> crate::web::Answer<'_, HostReport> {
        Box::pin(async move {
            let host = samples::hosts().into_iter().find(|host| host.identity.as_str() == name);
            let now = host.ok_or_else(|| Self::error(404, "unknown_host", "no such host is known here"))?;
            Ok(HostReport {
                instance: "prov1.example.net".to_owned(),
                host: name,
                now: Some(now),
                running: None,
                history: samples::history(),
            })
        })
    }

    fn change(&self, wish: Wish, who: String, why: String) -> crate::web::Answer<'_, ChangeReport> {
        Box::pin(async move {
            if why.is_empty() {
                return Err(Self::error(400, "bad_input", "/why: it must be said"));
            }
            if wish == Wish::Discover {
                return Err(Self::error(409, "not_now", "not now: this instance is paused"));
            }
            let (verb, host) = match &wish {
                Wish::Pause => ("pause", None),
                Wish::Resume => ("resume", None),
                Wish::Discover => ("discover", None),
                Wish::Retry { host } => ("retry", Some(host.clone())),
            };
            self.changes.lock().unwrap().push((wish, who, why));
            let status = self.operator.status();
            let (instance, run_state) = (status.instance, status.run_state);
            Ok(ChangeReport { instance, verb, host, changed: true, run_state, in_flight: 2 })
        })
    }
}

/// What a listener asks for in this test.
pub fn tokens(admin: bool, read: bool) -> AccessSettings {
    let source = |token: &'static str| TokenSource::new(move || Ok(SecretString::from(token)));
    AccessSettings {
        admin: admin.then(|| source(ADMIN)),
        read: read.then(|| source(READER)),
        names: vec!["prov1.example.net".to_owned()],
        tls: false,
    }
}

impl Site {
    /// Without tokens.
    pub async fn open() -> Self {
        Self::open_with(tokens(false, false), None).await
    }

    /// With the admin token.
    pub async fn open_for_admins() -> Self {
        Self::open_with(tokens(true, false), None).await
    }

    pub async fn open_with(access: AccessSettings, tls: Option<&rustls::ServerConfig>) -> Self {
        let recorder = Recorder::new("lab").unwrap();
        let metrics = MetricsHandle::new();
        let keeper = MetricsKeeper::owned(&metrics, &recorder);
        let settings =
            OverseerSettings { ping_every: Duration::from_millis(20), ..OverseerSettings::default() };
        let overseer = Overseer::launch(settings, vec![Box::new(keeper)], Arc::new(|_| {}));
        let mut states = overseer.subscribe();
        let running = states.wait_for(quartermaster_actors::supervise::SupervisionSnapshot::all_running);
        tokio::time::timeout(SOON, running).await.unwrap().unwrap();

        let link = Arc::new(Mutex::new(connected()));
        let link_read = Arc::clone(&link);
        let (operator, run_state) =
            operator(&overseer, Arc::new(move || snapshot(link_read.lock().unwrap().clone())));
        let desk = Arc::new(FakeDesk { operator, changes: Mutex::default(), is_silent: Mutex::default() });
        let state = WebState {
            metrics: metrics.clone(),
            desk: Arc::<FakeDesk>::clone(&desk),
            run_state: run_state.subscribe(),
            access,
        };
        let bound = BoundWeb::bind(ListenAddress::At(([127, 0, 0, 1], 0).into()), false).unwrap();
        let address = bound.addresses()[0];
        let web = bound.serve(state, tls).unwrap();
        actix_rt::spawn(web.server);
        Self { address, run_state, link, metrics, overseer, desk, handle: web.handle }
    }

    /// Sends these bytes on a connection of its own and reads to the end.
    pub async fn raw(&self, request: String) -> Answer {
        let address = self.address;
        let read = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        });
        let text = read.await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let lines = head.lines().map(str::to_owned).collect();
        Answer { status, head: head.to_lowercase(), body: body.to_owned(), lines }
    }

    /// One request with these further headers and this body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            write!(request, "Host: {}\r\n", self.address).unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        if !body.is_empty() {
            write!(request, "Content-Length: {}\r\n", body.len()).unwrap();
        }
        self.raw(format!("{request}\r\n{body}")).await
    }

    pub async fn ask(&self, method: &str, path: &str) -> Answer {
        self.send(method, path, &[], "").await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path).await
    }

    /// Sends a form.
    pub async fn form(&self, path: &str, headers: &[(&str, &str)], fields: &str) -> Answer {
        let mut headers = headers.to_vec();
        headers.push(("Content-Type", "application/x-www-form-urlencoded"));
        self.send("POST", path, &headers, fields).await
    }

    /// Logs in with this token; answers the cookie.
    pub async fn login(&self, token: &str) -> String {
        let answer = self.form("/login", &[], &format!("who=kim&token={token}")).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
        answer.cookie()
    }

    pub async fn close(self) {
        self.handle.stop(false).await;
        // Short, since a test may leave an actor behind that never answers.
        self.overseer.stop(Duration::from_secs(1)).await;
    }
}

/// An operator whose actors are down and whose run state the test decides.
fn operator(
    overseer: &OverseerHandle,
    link: Arc<dyn Fn() -> LinkSnapshot + Send + Sync>,
) -> (Operator, watch::Sender<RunState>) {
    let (run_state, read) = watch::channel(RunState::working());
    let counts = Counts { waiting: 3, in_flight: 2, cooling: 1, ..Counts::default() };
    let (_, fleet) = watch::channel(FleetSnapshot { counts, ..FleetSnapshot::default() });
    let operator = Operator::new(OperatorParts {
        about: About { instance: "prov1.example.net".to_owned(), site: "lab".to_owned(), cluster: "off" },
        config: serde_json::json!({}),
        control: ControlHandle::new(Slot::new("control", 1), read),
        fleet: FleetHandle::new(Slot::new("fleet", 1), fleet),
        journal: JournalHandle::in_memory(),
        look: Arc::new(|| Ok(())),
        link,
        cluster: Arc::new(ClusterView::default),
        overseer: overseer.clone(),
        audit: Audit::new(None, None),
        started: Instant::now(),
    });
    (operator, run_state)
}

pub fn connected() -> LinkState {
    LinkState::Connected {
        server: "broker.example.net:4222".to_owned(),
        server_name: "broker".to_owned(),
        max_payload: 1 << 20,
    }
}

pub fn connecting(last_error: &str, refused: bool) -> LinkState {
    LinkState::Connecting { rounds: 2, last_error: last_error.to_owned(), refused }
}

pub fn paused() -> RunState {
    let by = PausedBy { who: "kim".to_owned(), why: "maintenance".to_owned(), since: 1_700_000_000 };
    RunState { paused: Some(Arc::new(by)), ..RunState::working() }
}

fn snapshot(state: LinkState) -> LinkSnapshot {
    LinkSnapshot {
        state,
        since: Duration::from_secs(5),
        connects: 1,
        refused_logins: 0,
        pending: 4,
        requests: 10,
        replies: 6,
        late: 0,
        rejected: 0,
        conflicts: 0,
        dropped: 0,
    }
}
