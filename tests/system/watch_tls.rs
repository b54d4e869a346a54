//! The web listener of a running provisioner with a certificate: it is shown, renewed without a restart, and a token file is obeyed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quartermaster::emulate::{PrepareSettings, prepare};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::support::{BrokerOptions, Daemon, append};

const TOKEN: &str = "a-token-that-only-the-test-knows";

/// Writes a certificate of its own and its key; answers the certificate.
fn issue(folder: &Path) -> CertificateDer<'static> {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("web.key"), issued.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(folder.join("web.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(folder.join("web.pem"), issued.cert.pem()).unwrap();
    issued.cert.der().clone()
}

/// Asks over TLS, trusting this certificate alone; none when the listener shows another.
fn ask(port: u16, trusted: &CertificateDer<'static>, request: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    stream
        .write_all(format!("{request}Host: localhost:{port}\r\nConnection: close\r\n\r\n").as_bytes())
        .ok()?;
    let mut text = String::new();
    // The listener may close without a goodbye of TLS; what came before it counts.
    let _ = stream.read_to_string(&mut text);
    Some(text)
}

#[actix::test]
async fn the_listener_shows_its_certificate_renews_it_and_asks_for_the_read_token() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = PrepareSettings {
        broker: format!("127.0.0.1:{}", broker.port()),
        seed: Some(9),
        ..PrepareSettings::default()
    };
    let files = prepare(dir.path(), &settings).unwrap().plain;
    let first = issue(&files.dir);
    let token = files.dir.join("read.token");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    append(
        &files.config,
        &format!(
            "listen: 127.0.0.1:0\nlisten_tls:\n  certificate: {0}/web.pem\n  key: {0}/web.key\nweb:\n  read_token_file: {1}\n",
            files.dir.display(),
            token.display()
        ),
    );
    let mut daemon = Daemon::start(&files);
    daemon.listens().await;
    let port = daemon.port();

    let health = ask(port, &first, "GET /healthz HTTP/1.1\r\n").unwrap();
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    let refused = ask(port, &first, "GET /api/v1/status HTTP/1.1\r\n").unwrap();
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let with = format!("GET /api/v1/status HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n");
    assert!(ask(port, &first, &with).unwrap().starts_with("HTTP/1.1 200"));

    std::fs::write(&token, "another-token-of-this-test").unwrap();
    let refused = ask(port, &first, &with).unwrap();
    assert!(refused.starts_with("HTTP/1.1 401"), "a replaced token counts at once: {refused}");

    let second = issue(&files.dir);
    let end = Instant::now() + Duration::from_secs(40);
    let renewed = loop {
        match ask(port, &second, "GET /healthz HTTP/1.1\r\n") {
            Some(health) if health.starts_with("HTTP/1.1 200") => break true,
            _ if Instant::now() > end => break false,
            _ => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    };
    assert!(renewed, "the new certificate is shown:\n{}", daemon.stderr());
    assert!(!daemon.stderr().contains(TOKEN) && daemon.stderr().contains("A wrong token was shown"));
    daemon.assert_alive();
}
