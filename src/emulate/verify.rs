//! What an emulated server checks in what it was given: the checks a real broker or TLS stack would make later.

use quartermaster_actors::text::causes;
use quartermaster_proto::choria::token::{VerifyKey, parse_server, verify_server};
use quartermaster_proto::time::WallClock;

use super::server::Server;

/// The server token must verify, name this server and carry its key.
pub(super) fn server_token(server: &Server, jwt: &str, now: WallClock) -> Result<(), String> {
    let claims = match &server.profile.server_key {
        Some(key) => verify_server(jwt, key, now),
        None => parse_server(jwt),
    }
    .map_err(|error| causes(&error))?;
    if claims.identity != server.identity.as_str() {
        return Err(format!("it is for {}", claims.identity));
    }
    let own = server
        .disk
        .seed
        .map(|seed| hex::encode(ed25519_dalek::SigningKey::from_bytes(&seed).verifying_key().to_bytes()));
    if claims.standard.public_key != own {
        return Err("it carries another public key".to_owned());
    }
    if claims.collectives.is_empty() {
        return Err("it names no collective".to_owned());
    }
    if matches!(server.profile.server_key, Some(VerifyKey::Ed25519(_)))
        && server.profile.generation == quartermaster_proto::choria::Generation::V2
        && claims.standard.tcs.is_none()
    {
        return Err("it has no chain of trust".to_owned());
    }
    Ok(())
}

/// A decrypted key and the certificate must belong together.
pub(super) fn key_fits(key_pem: &str, certificate_pem: &str) -> Result<(), String> {
    use x509_parser::prelude::{FromDer as _, X509Certificate};
    let key = pem::parse(key_pem).map_err(|error| format!("the key is no PEM: {error}"))?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.contents()).map_err(str::to_owned)?;
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|error| error.to_string())?;
    let spki = key.public_key().ok_or("the key has no public half")?;
    let certificate =
        pem::parse(certificate_pem).map_err(|error| format!("the certificate is no PEM: {error}"))?;
    let (_, certificate) =
        X509Certificate::from_der(certificate.contents()).map_err(|error| error.to_string())?;
    if certificate.public_key().raw == spki.as_ref() {
        Ok(())
    } else {
        Err("they hold different keys".to_owned())
    }
}
