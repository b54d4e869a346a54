//! Archives fetched from where a plan says.

use std::{io, path::Path, time::Duration};

use quartermaster_proto::mesh::{plan::Reference, report::Why};
use reqwest::{Client, StatusCode, redirect::Policy};
use tokio::{fs::File, io::AsyncReadExt as _, time::timeout};

use super::object;
use crate::{archive::MAX_FETCHED, client::bus::Bus};

/// Longest time for one fetch.
const LIMIT: Duration = Duration::from_mins(1);
/// Most redirects that are followed, all of them within https.
const MAX_REDIRECTS: usize = 3;

/// Why an archive is not here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It is waited for.
    #[error("it is not there ({})", .0.as_str())]
    Waiting(Why),
    /// It has more bytes than may be fetched.
    #[error("it has more than {MAX_FETCHED} bytes")]
    TooLong,
    /// What is there can be no archive.
    #[error("{0}")]
    Failed(String),
}

/// Fetches archives: from the broker's object store, from files, over https with the system's roots.
#[derive(Debug, Clone)]
pub struct Fetcher {
    bus: Option<Bus>,
    web: Option<Client>,
}

impl Fetcher {
    /// A fetcher; without a bus, objects are waited for.
    pub fn new(bus: Option<Bus>) -> Self {
        // Another part of the process may have said it already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let redirects = Policy::limited(MAX_REDIRECTS);
        let web =
            Client::builder().https_only(true).redirect(redirects).referer(false).timeout(LIMIT).build();
        Self { bus, web: web.ok() }
    }

    /// The bytes of an archive.
    ///
    /// # Errors
    /// Why it is not here.
    pub async fn fetch(&self, reference: &Reference) -> Result<Vec<u8>, FetchError> {
        let fetched = async {
            match reference {
                Reference::File(path) => file(Path::new(path)).await,
                Reference::Https(address) => self.web(address).await,
                Reference::NatsObject { bucket, name } => match &self.bus {
                    Some(bus) => object::read(bus, bucket, name).await,
                    None => Err(FetchError::Waiting(Why::NoAnswer)),
                },
            }
        };
        timeout(LIMIT, fetched).await.unwrap_or(Err(FetchError::Waiting(Why::NoAnswer)))
    }

    async fn web(&self, address: &str) -> Result<Vec<u8>, FetchError> {
        let silent = |error: reqwest::Error| {
            tracing::debug!(error = %error.without_url(), "an archive cannot be fetched");
            FetchError::Waiting(Why::NoAnswer)
        };
        let Some(web) = &self.web else { return Err(FetchError::Waiting(Why::NoAnswer)) };
        let mut answer = web.get(address).send().await.map_err(silent)?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(FetchError::Waiting(Why::Absent)),
            _ => return Err(FetchError::Waiting(Why::NoAnswer)),
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(silent)? {
            if bytes.len() + chunk.len() > MAX_FETCHED {
                return Err(FetchError::TooLong);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

async fn file(path: &Path) -> Result<Vec<u8>, FetchError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => FetchError::Waiting(Why::Absent),
        _ => FetchError::Waiting(Why::NoAnswer),
    };
    let file = File::open(path).await.map_err(unreadable)?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_FETCHED).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).await.map_err(unreadable)?;
    if bytes.len() > MAX_FETCHED { Err(FetchError::TooLong) } else { Ok(bytes) }
}
