//! SRV through the system's name servers.

use std::net::SocketAddr;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RData;

use super::servers::{SrvError, SrvResolver, SrvTarget};

/// How long one question may take, over all its repeats.
const QUESTION_DEADLINE: Duration = Duration::from_secs(5);

/// How long one name server is waited for before the question is repeated.
const TRY_DEADLINE: Duration = Duration::from_secs(2);

/// Asks the name servers of `/etc/resolv.conf`, which is read again for each question: a machine may get its network
/// after this process started. Nothing is cached.
#[derive(Debug, Clone, Default)]
pub struct SystemResolver {
    only: Option<SocketAddr>,
}

impl SystemResolver {
    /// Asks the machine's own name servers.
    pub const fn new() -> Self {
        Self { only: None }
    }

    /// Asks this name server and no other, over UDP.
    pub const fn asking(server: SocketAddr) -> Self {
        Self { only: Some(server) }
    }

    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let mut builder = match self.only {
            None => TokioResolver::builder_tokio()?,
            Some(server) => {
                let mut config = NameServerConfig::udp(server.ip());
                for connection in &mut config.connections {
                    connection.port = server.port();
                }
                let config = ResolverConfig::from_parts(None, Vec::new(), vec![config]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        let options = builder.options_mut();
        options.cache_size = 0;
        options.timeout = TRY_DEADLINE;
        builder.build()
    }
}

impl SrvResolver for SystemResolver {
    fn srv(&self, name: String) -> BoxFuture<'static, Result<Vec<SrvTarget>, SrvError>> {
        let me = self.clone();
        async move {
            let fault = |reason: String| SrvError { name: name.clone(), reason };
            let resolver = me.resolver().map_err(|error| fault(error.to_string()))?;
            // A trailing dot keeps the search list out of it.
            let asked = format!("{}.", name.trim_end_matches('.'));
            match tokio::time::timeout(QUESTION_DEADLINE, resolver.srv_lookup(asked)).await {
                Err(_) => Err(fault("no name server answered in time".to_owned())),
                Ok(Err(error)) if error.is_no_records_found() => Ok(Vec::new()),
                Ok(Err(error)) => Err(fault(error.to_string())),
                Ok(Ok(lookup)) => {
                    Ok(lookup.answers().iter().filter_map(|record| target(&record.data)).collect())
                }
            }
        }
        .boxed()
    }
}

fn target(data: &RData) -> Option<SrvTarget> {
    let RData::SRV(srv) = data else { return None };
    let host = srv.target.to_utf8();
    let host = host.trim_end_matches('.');
    // A lone dot says "no such service here" (RFC 2782).
    (!host.is_empty()).then(|| SrvTarget {
        host: host.to_owned(),
        port: srv.port,
        priority: srv.priority,
        weight: srv.weight,
    })
}
