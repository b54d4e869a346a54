//! Binding and serving.

use std::any::Any;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::{Extensions, Server, ServerHandle};
use actix_web::rt::net::TcpStream;
use actix_web::{App, HttpServer, web};

use super::live::Board;
use super::site::Site;
use super::{WebState, answers, plain};
use crate::config::ListenAddress;

/// Connections at once; the pages are for a few scrapers and people.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take for its request's head.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);
/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a peer may leave what is sent to it unread.
const SILENCE_LIMIT: Duration = Duration::from_mins(1);

/// Why there is no web listener.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address cannot be listened on.
    #[error("could not listen for web requests on {address}")]
    Bind {
        /// The address as configured.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The certificate of the listener cannot be used.
    #[error("could not use the certificate of the web listener")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The bound listener could not be taken into service.
    #[error("could not start the web server")]
    Start(#[source] io::Error),
}

/// A listener that is bound and does not serve yet: connections wait in it.
#[derive(Debug)]
pub struct BoundWeb {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

/// The server: a future to be spawned, and the handle that stops it.
pub struct WebServer {
    /// Serves until stopped; to be spawned on the actix system.
    pub server: Server,
    /// Stops it.
    pub handle: ServerHandle,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").finish_non_exhaustive()
    }
}

impl BoundWeb {
    /// Binds, and logs what was bound. Port 0 takes any free port.
    pub fn bind(listen: ListenAddress, tls: bool) -> Result<Self, WebError> {
        let listeners = match listen {
            ListenAddress::At(address) => vec![open(address)?],
            ListenAddress::Everywhere { port } => everywhere(port)?,
        };
        let addresses: Vec<_> = listeners.iter().filter_map(|l| l.local_addr().ok()).collect();
        let scheme = if tls { "https" } else { "http" };
        for address in &addresses {
            tracing::info!(component = "web", "Listening for web requests on {scheme}://{address}");
        }
        Ok(Self { listeners, addresses })
    }

    /// What was bound, with real ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes the listener into service. Inside an actix system.
    pub fn serve(self, state: WebState, tls: Option<&rustls::ServerConfig>) -> Result<WebServer, WebError> {
        let port = self.addresses.first().map_or(0, SocketAddr::port);
        let site = web::Data::new(Site::new(state, port));
        actix_web::rt::spawn(Board::keep(std::sync::Arc::clone(&site.board)));
        let mut server = HttpServer::new(move || {
            App::new().wrap(answers::headers()).app_data(site.clone()).configure(plain::configure)
        })
        .workers(1)
        .max_connections(MAX_CONNECTIONS)
        .client_request_timeout(REQUEST_DEADLINE)
        .keep_alive(KEEP_ALIVE)
        .on_connect(bound_silence)
        .shutdown_timeout(1)
        .disable_signals();
        for listener in self.listeners {
            server = match tls {
                Some(tls) => server.listen_rustls_0_23(listener, tls.clone()),
                None => server.listen(listener),
            }
            .map_err(WebError::Start)?;
        }
        let server = server.run();
        Ok(WebServer { handle: server.handle(), server })
    }
}

/// A peer that takes nothing of what is sent is hung up on by the kernel: a slow or vanished reader of the live page must
/// not keep its connection for ever.
fn bound_silence(connection: &dyn Any, _: &mut Extensions) {
    let plain = connection.downcast_ref::<TcpStream>();
    let tls = || connection.downcast_ref::<TlsStream<TcpStream>>().map(|stream| stream.get_ref().0);
    if let Some(stream) = plain.or_else(tls) {
        let limit = u32::try_from(SILENCE_LIMIT.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, limit) {
            tracing::debug!(component = "web", "could not bound the silence of a connection: {error}");
        }
    }
}

fn open(address: SocketAddr) -> Result<TcpListener, WebError> {
    TcpListener::bind(address).map_err(|source| WebError::Bind { address, source })
}

/// Every address of the machine, as the peer's `monitor_port`. One IPv6 listener usually takes IPv4 too; where it does
/// not, or where there is no IPv6, a second or other one does.
fn everywhere(port: u16) -> Result<Vec<TcpListener>, WebError> {
    let Ok(six) = open((Ipv6Addr::UNSPECIFIED, port).into()) else {
        return Ok(vec![open((Ipv4Addr::UNSPECIFIED, port).into())?]);
    };
    let port = six.local_addr().map_or(port, |bound| bound.port());
    let four = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
    Ok(std::iter::once(six).chain(four.ok()).collect())
}
