//! The key-value store over https.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;
use zeroize::{Zeroize as _, Zeroizing};

use super::wire::{self, Own, Read, Stored};
use super::{KvAuth, KvConfigError, KvError, KvSettings, Mark, auth};
use crate::vault::store::Value;

/// How long one request may take; whoever asks the vault waits five seconds.
const LIMIT: Duration = Duration::from_secs(4);
/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Longest answer, in bytes: a value in base64, or a long list.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Room for an answer that does not say its length; a longer one makes its buffer grow.
const USUAL_BODY: usize = 64 * 1024;
/// Where the token goes.
const TOKEN: &str = "x-vault-token";

/// A way into the key-value store; clones share the login.
#[derive(Clone)]
pub struct KvClient {
    http: Client,
    settings: Arc<KvSettings>,
    base: Url,
    session: Arc<Mutex<Option<Session>>>,
}

/// A login.
#[derive(Clone)]
struct Session {
    token: HeaderValue,
    /// When it has to be had anew, or renewed.
    until: Option<Instant>,
    is_renewable: bool,
}

impl fmt::Debug for KvClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvClient").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct AppRole<'a> {
    role_id: &'a str,
    secret_id: &'a str,
}

impl KvClient {
    /// A client of this store. Nothing is asked yet, but the credential has to be there.
    ///
    /// # Errors
    /// [`KvConfigError`].
    pub fn new(settings: KvSettings) -> Result<Self, KvConfigError> {
        // Another part of the process may have said it already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let base = base(&settings.address)?;
        let is_mount = |part: &str| !matches!(part, "" | "." | "..");
        if !settings.mount.split('/').all(is_mount) {
            return Err(KvConfigError::Mount(settings.mount));
        }
        let (KvAuth::Token { file } | KvAuth::AppRole { secret: file, .. }) = &settings.auth;
        drop(auth::credential(file)?);
        // No redirects: the token would go with them to whoever is named. No proxy: it would be told where secrets lie.
        let mut http = Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(CONNECT_LIMIT)
            .timeout(LIMIT);
        if let Some(path) = &settings.ca {
            let name = || path.display().to_string();
            let pem = std::fs::read(path).map_err(|source| KvConfigError::File { path: name(), source })?;
            let found = reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default();
            if found.is_empty() {
                return Err(KvConfigError::Certificates { path: name() });
            }
            http = http.tls_certs_only(found);
        }
        let http = http.build().map_err(|error| KvConfigError::Client(error.to_string()))?;
        Ok(Self { http, settings: Arc::new(settings), base, session: Arc::default() })
    }

    /// How it is configured.
    pub fn settings(&self) -> &KvSettings {
        &self.settings
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn read(&self, name: &str) -> Result<Read, KvError> {
        let (status, body) = self.ask(Method::GET, &["data"], name, None).await?;
        wire::read(status, &body)
    }

    /// What is known of a name without its value.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn stored(&self, name: &str) -> Result<Stored, KvError> {
        let (status, body) = self.ask(Method::GET, &["metadata"], name, None).await?;
        wire::stored(status, &body)
    }

    /// The names in a folder; what ends with `/` is a folder itself.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn names(&self, folder: &str) -> Result<Vec<String>, KvError> {
        let mut url = self.url(&["metadata"], folder)?;
        url.set_query(Some("list=true"));
        let (status, body) = self.send(Method::GET, &url, None).await?;
        wire::names(status, &body)
    }

    /// Writes a value where `last` is the last version.
    ///
    /// # Errors
    /// [`KvError`]; [`KvError::Raced`] when there is a newer version.
    pub async fn write(&self, name: &str, value: &Value, last: u64) -> Result<Mark, KvError> {
        let body = wire::write(value, last);
        let (status, body) = self.ask(Method::POST, &["data"], name, Some(body)).await?;
        wire::written(status, &body)
    }

    /// Forgets every version of a value.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn forget(&self, name: &str) -> Result<(), KvError> {
        let (status, body) = self.ask(Method::DELETE, &["metadata"], name, None).await?;
        wire::done(status, &body)
    }

    fn url(&self, verb: &[&str], name: &str) -> Result<Url, KvError> {
        // A part of dots would lead elsewhere, and the store cuts blanks off the ends.
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && part.trim() == part;
        if !name.split('/').all(is_plain) {
            return Err(KvError::Refused(format!("{name} cannot be a name there")));
        }
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(self.settings.mount.split('/')).extend(verb).extend(name.split('/'));
        }
        Ok(url)
    }

    async fn ask(
        &self,
        method: Method,
        verb: &[&str],
        name: &str,
        body: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<(u16, Zeroizing<Vec<u8>>), KvError> {
        let url = self.url(verb, name)?;
        self.send(method, &url, body).await
    }

    /// Sends a request, and once more with a new login where the first is refused: the token may have ended.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<(u16, Zeroizing<Vec<u8>>), KvError> {
        // Wiped when the last of its holders is done with it.
        let body = body.map(Bytes::from_owner);
        let token = self.token().await?;
        let answer = self.once(method.clone(), url, Some(&token), body.clone()).await?;
        if answer.0 != 403 {
            return Ok(answer);
        }
        let mut session = self.session.lock().await;
        if session.as_ref().is_some_and(|session| session.token == token) {
            *session = None;
        }
        drop(session);
        let token = self.token().await?;
        self.once(method, url, Some(&token), body).await
    }

    async fn once(
        &self,
        method: Method,
        url: &Url,
        token: Option<&HeaderValue>,
        body: Option<Bytes>,
    ) -> Result<(u16, Zeroizing<Vec<u8>>), KvError> {
        let mut headers = HeaderMap::new();
        headers.insert("x-vault-request", HeaderValue::from_static("true"));
        if let Some(token) = token {
            headers.insert(TOKEN, token.clone());
        }
        let mut request = self.http.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        // The address may name a secret, and says nothing new.
        let silent = |error: reqwest::Error| KvError::silent(chain(&error.without_url()));
        let answer = request.send().await.map_err(silent)?;
        let status = answer.status().as_u16();
        Ok((status, whole(answer).await?))
    }

    /// The token of the login, which is made or renewed first where that is due.
    async fn token(&self) -> Result<HeaderValue, KvError> {
        let mut session = self.session.lock().await;
        if let Some(held) =
            session.as_ref().filter(|held| held.until.is_none_or(|until| Instant::now() < until))
        {
            return Ok(held.token.clone());
        }
        if let Some(held) = session.as_ref().filter(|held| held.is_renewable) {
            let url = self.auth_url(&["token", "renew-self"]);
            let renewed =
                self.once(Method::POST, &url, Some(&held.token), Some(Bytes::from_static(b"{}"))).await?;
            if let Ok(lease) = wire::login(renewed.0, &renewed.1) {
                let renewed = Session { until: soon(lease.lease_duration), ..held.clone() };
                drop(Zeroizing::new(lease.client_token));
                return Ok(session.insert(renewed).token.clone());
            }
        }
        let made = self.login().await?;
        Ok(session.insert(made).token.clone())
    }

    async fn login(&self) -> Result<Session, KvError> {
        let unreadable = |error: KvConfigError| KvError::silent(error.to_string());
        match &self.settings.auth {
            KvAuth::Token { file } => {
                let token = header(&auth::credential(file).map_err(unreadable)?)?;
                let url = self.auth_url(&["token", "lookup-self"]);
                let (status, body) = self.once(Method::GET, &url, Some(&token), None).await?;
                let Own { ttl, renewable } = wire::own(status, &body)?;
                Ok(Session { token, until: soon(ttl), is_renewable: renewable })
            }
            KvAuth::AppRole { mount, role, secret } => {
                let secret = auth::credential(secret).map_err(unreadable)?;
                let mut body = Zeroizing::new(Vec::with_capacity(role.len() + secret.len() * 6 + 64));
                let _ = serde_json::to_writer(&mut *body, &AppRole { role_id: role, secret_id: &secret });
                let url = self.auth_url(&[mount.as_str(), "login"]);
                let (status, body) =
                    self.once(Method::POST, &url, None, Some(Bytes::from_owner(body))).await?;
                let lease = wire::login(status, &body)?;
                let token = header(&Zeroizing::new(lease.client_token))?;
                Ok(Session { token, until: soon(lease.lease_duration), is_renewable: false })
            }
        }
    }

    fn auth_url(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("auth").extend(parts.iter().flat_map(|part| part.split('/')));
        }
        url
    }
}

/// The moment by which a token of this life has to be had anew.
fn soon(seconds: u64) -> Option<Instant> {
    (seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds) * 2 / 3)
}

fn header(token: &str) -> Result<HeaderValue, KvError> {
    let mut value =
        HeaderValue::from_str(token).map_err(|_| KvError::silent("the vault's token there is none"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn base(address: &str) -> Result<Url, KvConfigError> {
    let bad = || KvConfigError::Address(address.to_owned());
    let mut url = Url::parse(address).map_err(|_| bad())?;
    let is_here = match url.host() {
        Some(url::Host::Ipv4(host)) => host.is_loopback(),
        Some(url::Host::Ipv6(host)) => host.is_loopback(),
        Some(url::Host::Domain(host)) => host == "localhost",
        None => false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !(url.scheme() == "https" || url.scheme() == "http" && is_here) || !is_plain {
        return Err(bad());
    }
    url.path_segments_mut().map_err(|()| bad())?.pop_if_empty().push("v1");
    Ok(url)
}

/// The whole body, wiped when dropped. What the library read it into is wiped where it is ours alone.
async fn whole(mut answer: Response) -> Result<Zeroizing<Vec<u8>>, KvError> {
    let silent = |error: reqwest::Error| KvError::silent(chain(&error.without_url()));
    let room = answer.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(USUAL_BODY);
    let mut body = Zeroizing::new(Vec::with_capacity(room.min(MAX_BODY)));
    while let Some(chunk) = answer.chunk().await.map_err(silent)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(KvError::silent("its answer is too long"));
        }
        body.extend_from_slice(&chunk);
        if let Ok(mut chunk) = chunk.try_into_mut() {
            chunk.as_mut().zeroize();
        }
    }
    Ok(body)
}

/// An error with what it came from, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
