//! Numbers of the node side's programs for Prometheus, told over HTTP.

use std::net::TcpListener;

use actix_web::{App, HttpResponse, HttpServer, web};
use prometheus::{Registry, TextEncoder};

/// Threads that answer; there is one asker.
const WORKERS: usize = 1;
/// Most connections at once.
const MOST: usize = 16;

/// A listener that is bound and tells nothing yet.
pub(super) struct Numbers {
    registry: Registry,
    listener: TcpListener,
}

/// Why numbers cannot be told.
#[derive(Debug, thiserror::Error)]
pub(super) enum NumbersError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Two numbers have one name.
    #[error("the numbers cannot be told")]
    Register(#[from] prometheus::Error),
}

impl Numbers {
    /// Binds the address, with the numbers that `register` enters.
    pub(super) fn bind(
        address: &str,
        register: impl FnOnce(&Registry) -> Result<(), prometheus::Error>,
    ) -> Result<Self, NumbersError> {
        let registry = Registry::new();
        register(&registry)?;
        let listener = TcpListener::bind(address)
            .map_err(|source| NumbersError::Listen { address: address.to_owned(), source })?;
        Ok(Self { registry, listener })
    }

    /// Begins to tell, on the current actix system and until it ends; `refresh` is called before each answer.
    pub(super) fn tell(self, refresh: impl Fn() + Clone + Send + 'static) {
        let Self { registry, listener } = self;
        let server = HttpServer::new(move || {
            let (registry, refresh) = (registry.clone(), refresh.clone());
            App::new().route(
                "/metrics",
                web::get().to(move || {
                    refresh();
                    let text = TextEncoder::new().encode_to_string(&registry.gather());
                    async move { answer(text) }
                }),
            )
        });
        match server.workers(WORKERS).max_connections(MOST).disable_signals().listen(listener) {
            Ok(server) => drop(actix_rt::spawn(server.run())),
            Err(error) => tracing::warn!(%error, "numbers cannot be told"),
        }
    }
}

fn answer(text: Result<String, prometheus::Error>) -> HttpResponse {
    match text {
        Ok(text) => HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}
