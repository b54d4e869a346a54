//! The pages over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};

use super::support::*;
use crate::web::AccessSettings;

#[actix_web::test]
async fn pages_are_served_over_tls_and_the_cookie_never_leaves_it() {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = issued.cert.der().clone();
    let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let site = Site::open_with(AccessSettings { tls: true, ..tokens(true, false) }, Some(&server)).await;

    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (client, address) = (Arc::new(client), site.address);
    let form = format!("who=kim&token={ADMIN}");
    let request = format!(
        "POST /login HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{form}",
        address.port(),
        form.len()
    );
    let text = tokio::task::spawn_blocking(move || {
        let connection = ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        // The server may close without a goodbye of TLS; what came before it counts.
        let _ = stream.read_to_string(&mut text);
        text
    });
    let text = text.await.unwrap();
    assert!(text.starts_with("HTTP/1.1 303"), "{text}");
    let cookie = text.lines().find(|line| line.to_lowercase().starts_with("set-cookie:")).unwrap();
    assert!(cookie.contains("__Host-quartermaster-") && cookie.contains("; Secure"), "{cookie}");
    site.close().await;
}
