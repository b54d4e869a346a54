//! Cycles as traces: each cycle is a span with one for each of its steps, sent to an OpenTelemetry collector as OTLP over HTTP.
//!
//! Where to is in the environment, by the names that OpenTelemetry gives them; without an address nothing is sent.

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::setup::TelemetryError;

/// Either says where the collector is.
const ADDRESSES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// What has not been sent yet; to be closed at the end of the process.
#[derive(Debug, Clone)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Sends what is left; waits a few seconds at most.
    pub fn close(&self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(component = "log", %error, "The last traces could not be sent");
        }
    }
}

/// The layer that sends spans, and what is to be closed; none when nobody said where to.
///
/// # Errors
/// The address makes no sense.
pub fn layer<S>() -> Result<Option<(impl Layer<S>, Traces)>, TelemetryError>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    if !ADDRESSES.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().build().map_err(TelemetryError::Traces)?;
    let mut resource =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("quartermaster");
    }
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("quartermaster"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        // Our spans and what is said inside them; never the libraries', the exporter's own among them.
        .with_filter(filter_fn(|metadata| {
            metadata.target().starts_with("quartermaster") && *metadata.level() <= Level::INFO
        }));
    Ok(Some((layer, Traces(provider))))
}
