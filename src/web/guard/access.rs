//! The one place that decides whether a request may look or change.

use crate::web::locked::lock;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, AsHeaderName, COOKIE, HOST, ORIGIN};
use secrecy::ExposeSecret as _;
use subtle::ConstantTimeEq as _;

use super::origin::{Sender, is_ours};
use super::sessions::{Opening, Right, Sealed, Session, Sessions};
use super::throttle::{Lines, Throttle};
use super::token::TokenSource;

/// Bytes of randomness in a session's id and in the token of its forms.
const RANDOM: usize = 32;

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Denied {
    /// Its `Host` is no name of this listener.
    Misdirected,
    /// It needs a token and shows none.
    NoToken,
    /// The token is wrong.
    WrongToken,
    /// Too many wrong tokens came from its address.
    Throttled {
        /// How long to wait.
        wait: Duration,
    },
    /// What it shows allows looking only.
    ReadOnly,
    /// The form was not sent by a page of this session.
    Foreign,
    /// No admin token is configured, so nothing can be changed here.
    Closed,
    /// The configured token cannot be used now; the log says why.
    Unusable,
}

impl Denied {
    /// The sentence for people.
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::Misdirected => {
                "this name is not one of this listener: ask by its address, or add the name to `web.hosts` in the configuration"
            }
            Self::NoToken => "a token is needed",
            Self::WrongToken => "the token is wrong",
            Self::Throttled { .. } => "too many wrong tokens came from your address; wait before the next",
            Self::ReadOnly => "the read token allows looking only; changes need the admin token",
            Self::Foreign => {
                "the form was not sent by a page of this session: open the page anew and try again"
            }
            Self::Closed => {
                "this instance takes no changes here: no admin token is configured (`web.admin_token_file`)"
            }
            Self::Unusable => "the token file of this instance cannot be used; its log says why",
        }
    }

    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Misdirected => "misdirected",
            Self::NoToken => "no_token",
            Self::WrongToken => "wrong_token",
            Self::Throttled { .. } => "throttled",
            Self::ReadOnly => "read_only",
            Self::Foreign => "foreign_form",
            Self::Closed => "no_admin_token",
            Self::Unusable => "token_unusable",
        }
    }

    /// The HTTP status.
    pub const fn status(&self) -> actix_web::http::StatusCode {
        use actix_web::http::StatusCode;
        match self {
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::Throttled { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::ReadOnly | Self::Foreign | Self::Closed => StatusCode::FORBIDDEN,
            Self::Unusable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Who sent a request, as far as it may look.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Visitor {
    /// The session, when its cookie belongs to one.
    pub session: Option<Session>,
}

impl Visitor {
    /// The session, when it allows changes.
    pub fn admin(&self) -> Option<&Session> {
        self.session.as_ref().filter(|session| session.right == Right::Admin)
    }
}

/// What the listener asks of its visitors.
#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// The token that allows changes; none = nothing can be changed here.
    pub admin: Option<TokenSource>,
    /// The token that allows looking; none = everybody may look.
    pub read: Option<TokenSource>,
    /// Names under which pages may be asked for, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// True when the listener speaks TLS itself.
    pub tls: bool,
}

/// Decides, and remembers sessions and wrong tokens.
#[derive(Debug)]
pub(in super::super) struct Access {
    settings: AccessSettings,
    cookie: String,
    sessions: Mutex<Sessions>,
    throttle: Mutex<Throttle>,
    lines: Mutex<Lines>,
}

fn header(request: &HttpRequest, name: impl AsHeaderName) -> Option<&str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// The name that a page was asked for under: with HTTP/2 it is no header.
fn host(request: &HttpRequest) -> &str {
    let authority = request.uri().authority().map(actix_web::http::uri::Authority::as_str);
    authority.or_else(|| header(request, HOST)).unwrap_or_default()
}

fn address(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip())
}

/// Random text of hexadecimal digits.
fn random() -> Option<String> {
    let mut bytes = [0_u8; RANDOM];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

impl Access {
    /// Nobody is logged in yet. `port` keeps the cookies of instances on one machine apart.
    pub fn new(settings: AccessSettings, port: u16) -> Self {
        let cookie = if settings.tls {
            format!("__Host-quartermaster-{port}")
        } else {
            format!("quartermaster-{port}")
        };
        Self {
            settings,
            cookie,
            sessions: Mutex::default(),
            throttle: Mutex::default(),
            lines: Mutex::default(),
        }
    }

    /// True when changes are possible here at all.
    pub const fn has_admin(&self) -> bool {
        self.settings.admin.is_some()
    }

    /// True when there is a token to log in with.
    pub const fn has_login(&self) -> bool {
        self.has_admin() || self.is_closed()
    }

    /// True when looking needs a token.
    pub const fn is_closed(&self) -> bool {
        self.settings.read.is_some()
    }

    /// Refuses a name that is not ours. A browser under TLS has checked the name itself.
    pub fn check_host(&self, request: &HttpRequest) -> Result<(), Denied> {
        let host = host(request);
        if self.settings.tls || is_ours(host, &self.settings.names) {
            Ok(())
        } else {
            Err(Denied::Misdirected)
        }
    }

    /// The visitor of a page, without asking for a right.
    pub fn visitor(&self, request: &HttpRequest) -> Result<Visitor, Denied> {
        self.check_host(request)?;
        let id = self.cookie_of(request);
        let session =
            id.and_then(|id| lock(&self.sessions).find(id, Instant::now(), |right| self.current(right)));
        Ok(Visitor { session })
    }

    /// The visitor, who may look.
    pub fn reader(&self, request: &HttpRequest) -> Result<Visitor, Denied> {
        // A page that a stranger's name was made to point here cannot know a token.
        if self.has_login() && self.bearer(request)?.is_some() {
            return Ok(Visitor::default());
        }
        let visitor = self.visitor(request)?;
        if self.is_closed() && visitor.session.is_none() { Err(Denied::NoToken) } else { Ok(visitor) }
    }

    /// The visitor, who may look, for a page that goes on by itself: it does not keep the session alive.
    pub fn watcher(&self, request: &HttpRequest) -> Result<Visitor, Denied> {
        self.check_host(request)?;
        let id = self.cookie_of(request);
        let session =
            id.and_then(|id| lock(&self.sessions).peek(id, Instant::now(), |right| self.current(right)));
        if self.is_closed() && session.is_none() { Err(Denied::NoToken) } else { Ok(Visitor { session }) }
    }

    /// The session that sent a form of ours and may change.
    pub fn form(&self, request: &HttpRequest, csrf: &str) -> Result<Session, Denied> {
        if !self.has_admin() {
            return Err(Denied::Closed);
        }
        let session = self.sender(request, csrf)?;
        match session.right {
            Right::Admin => Ok(session),
            Right::Read => Err(Denied::ReadOnly),
        }
    }

    /// The session that sent a form of ours.
    fn sender(&self, request: &HttpRequest, csrf: &str) -> Result<Session, Denied> {
        let session = self.visitor(request)?.session.ok_or(Denied::NoToken)?;
        let same = bool::from(session.csrf.as_bytes().ct_eq(csrf.as_bytes()));
        if same && is_same_site(request) { Ok(session) } else { Err(Denied::Foreign) }
    }

    /// A program that may change: it shows the admin token. Cookies do not count here.
    pub fn program(&self, request: &HttpRequest) -> Result<(), Denied> {
        if !self.has_admin() {
            return Err(Denied::Closed);
        }
        match self.bearer(request)? {
            Some(Right::Admin) => Ok(()),
            Some(Right::Read) => Err(Denied::ReadOnly),
            None => Err(Denied::NoToken),
        }
    }

    /// Opens a session for a token from the login form; answers the `Set-Cookie`.
    pub fn login(&self, request: &HttpRequest, token: &str, who: &str) -> Result<String, Denied> {
        self.check_host(request)?;
        if !is_same_site(request) {
            return Err(Denied::Foreign);
        }
        let right = self.weigh(request, token)?;
        if let Some(before) = self.cookie_of(request) {
            lock(&self.sessions).close(before);
        }
        let (id, csrf) = random().zip(random()).ok_or(Denied::Unusable)?;
        let shown = Sealed::of(token.trim().as_bytes());
        lock(&self.sessions)
            .open(Opening { id: &id, csrf, who: who.to_owned(), right, shown }, Instant::now());
        tracing::info!(component = "web", address = %address(request), who, ?right, "Logged in");
        Ok(self.set_cookie(&id, ""))
    }

    /// Ends the session; answers the `Set-Cookie` that takes the cookie back.
    pub fn logout(&self, request: &HttpRequest, csrf: &str) -> Result<String, Denied> {
        let session = self.sender(request, csrf)?;
        if let Some(id) = self.cookie_of(request) {
            lock(&self.sessions).close(id);
        }
        tracing::info!(component = "web", address = %address(request), who = session.who, "Logged out");
        Ok(self.set_cookie("", "; Max-Age=0"))
    }

    /// What the bearer token of the `Authorization` header allows. Other kinds of it are somebody else's: a proxy with a
    /// password of its own passes it on.
    fn bearer(&self, request: &HttpRequest) -> Result<Option<Right>, Denied> {
        let shown = header(request, AUTHORIZATION).and_then(|value| value.split_once(' '));
        match shown {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                self.weigh(request, token).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// What this token allows. Wrong ones are counted, logged and, when there are too many, not looked at.
    fn weigh(&self, request: &HttpRequest, token: &str) -> Result<Right, Denied> {
        let (address, now) = (address(request), Instant::now());
        if let Some(wait) = lock(&self.throttle).wait(address, now) {
            return Err(Denied::Throttled { wait });
        }
        if self.settings.admin.is_none() && self.settings.read.is_none() {
            return Err(Denied::Closed);
        }
        let shown = Sealed::of(token.trim().as_bytes());
        // Both are compared, whatever the first comparison says.
        let (admin, read) = (self.current(Right::Admin), self.current(Right::Read));
        let is_admin = admin.is_some_and(|admin| admin.same(&shown));
        let is_read = read.is_some_and(|read| read.same(&shown));
        if is_admin || is_read {
            lock(&self.throttle).right(address);
            return Ok(if is_admin { Right::Admin } else { Right::Read });
        }
        if admin.is_none() && read.is_none() {
            return Err(Denied::Unusable);
        }
        let in_a_row = lock(&self.throttle).wrong(address, now);
        if let Some(unsaid) = lock(&self.lines).admit(now) {
            tracing::warn!(component = "web", %address, in_a_row, unsaid, "A wrong token was shown");
        }
        Err(Denied::WrongToken)
    }

    /// The digest of the token that gives this right now.
    fn current(&self, right: Right) -> Option<Sealed> {
        let (source, key) = match right {
            Right::Admin => (self.settings.admin.as_ref()?, "web.admin_token_file"),
            Right::Read => (self.settings.read.as_ref()?, "web.read_token_file"),
        };
        match source.read() {
            Ok(token) => Some(Sealed::of(token.expose_secret().as_bytes())),
            Err(error) => {
                if let Some(unsaid) = lock(&self.lines).admit(Instant::now()) {
                    let error = quartermaster_actors::text::chain(&error);
                    tracing::error!(component = "web", key, unsaid, "The token file cannot be used: {error}");
                }
                None
            }
        }
    }

    fn cookie_of<'a>(&self, request: &'a HttpRequest) -> Option<&'a str> {
        let cookies = header(request, COOKIE)?.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut ours = cookies.filter(|(name, value)| *name == self.cookie && value.len() == RANDOM * 2);
        ours.next().map(|(_, value)| value)
    }

    fn set_cookie(&self, id: &str, more: &str) -> String {
        let secure = if self.settings.tls { "; Secure" } else { "" };
        format!("{}={id}; Path=/; HttpOnly; SameSite=Strict{secure}{more}", self.cookie)
    }
}

fn is_same_site(request: &HttpRequest) -> bool {
    let sender = Sender {
        host: host(request),
        origin: request.headers().get(ORIGIN).map(|origin| origin.to_str().unwrap_or("null")),
        fetch_site: header(request, "sec-fetch-site"),
    };
    sender.is_same_site()
}
