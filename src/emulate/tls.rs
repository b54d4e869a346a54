//! TLS as a Choria server in provisioning mode makes it: encrypted, and nobody verified (choria.md 1.3).

use std::sync::Arc;

use quartermaster_actors::vault::Unverified;
use rustls::{ClientConfig, Error};

/// A client that accepts every certificate.
pub(super) fn unverified() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified::new(provider)))
        .with_no_client_auth())
}
