//! Numbers of the node side's programs for Prometheus, told over HTTP.

use std::net::TcpListener;

use actix_web::{App, HttpResponse, HttpServer, web};
use prometheus::{Registry, TextEncoder};

use super::serve::Chain;
use crate::cli::out::say;
use crate::exit::Exit;

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

/// What a program counts, and the page that tells it where an address is given; without one nothing is counted.
///
/// # Errors
/// What is in the way has been said; the program is to end with this code.
pub(super) fn page<M>(
    address: Option<&str>,
    new: impl FnOnce() -> Result<M, prometheus::Error>,
    register: impl FnOnce(&M, &Registry) -> Result<(), prometheus::Error>,
) -> Result<(Option<Numbers>, Option<M>), Exit> {
    let Some(address) = address else { return Ok((None, None)) };
    let told = new().map_err(NumbersError::from).and_then(|metrics| {
        Numbers::bind(address, |registry| register(&metrics, registry)).map(|numbers| (numbers, metrics))
    });
    match told {
        Ok((numbers, metrics)) => Ok((Some(numbers), Some(metrics))),
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            Err(Exit::Unusable)
        }
    }
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
        // Also of use where the port was left to the system.
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "numbers are told");
        }
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
