//! The TLS configuration, shown by handshakes in memory.

use std::sync::Arc;

use quartermaster_actors::vault::{ClientTls, Security, TlsMode, VaultError, VaultSettings};
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
};

use crate::site::{CA, RSA, Site, certificate, chain, vault};

fn roots() -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CA.pem().as_bytes()).unwrap()).unwrap();
    Arc::new(roots)
}

struct Broker {
    name: &'static str,
    wants_certificate: bool,
    versions: Vec<&'static SupportedProtocolVersion>,
    of_our_ca: bool,
}

fn broker() -> Broker {
    Broker {
        name: "broker.example.net",
        wants_certificate: false,
        versions: vec![&TLS12, &TLS13],
        of_our_ca: true,
    }
}

impl Broker {
    fn connection(self) -> ServerConnection {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = KeyPair::generate().unwrap();
        let pem = if self.of_our_ca {
            certificate(self.name, &key)
        } else {
            rcgen::CertificateParams::new([self.name.to_owned()]).unwrap().self_signed(&key).unwrap().pem()
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions)
            .unwrap();
        let builder = if self.wants_certificate {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        ServerConnection::new(Arc::new(builder.with_single_cert(chain, key).unwrap())).unwrap()
    }
}

/// Shakes hands in memory: the client's certificates as the broker saw them, or the first error of either side.
fn handshake(client: Arc<ClientConfig>, broker: Broker) -> Result<usize, String> {
    let name = ServerName::try_from("broker.example.net").unwrap();
    let mut client = ClientConnection::new(client, name).unwrap();
    let mut server = broker.connection();
    while client.is_handshaking() || server.is_handshaking() {
        let mut to_server = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut to_server).unwrap();
        }
        server.read_tls(&mut to_server.as_slice()).unwrap();
        server.process_new_packets().map_err(|error| format!("broker: {error}"))?;
        let mut to_client = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut to_client).unwrap();
        }
        client.read_tls(&mut to_client.as_slice()).unwrap();
        client.process_new_packets().map_err(|error| format!("client: {error}"))?;
    }
    Ok(server.peer_certificates().map_or(0, <[_]>::len))
}

async fn config(settings: VaultSettings) -> Arc<ClientConfig> {
    vault(settings).tls_config().await.unwrap().unwrap()
}

async fn fault(settings: VaultSettings) -> String {
    chain(&vault(settings).tls_config().await.unwrap_err())
}

fn issuer_tls(site: &Site, mode: TlsMode, names: [Option<&str>; 3]) -> VaultSettings {
    let [certificate, key, ca] = names.map(|name| name.map(|name| site.path(name)));
    let tls = ClientTls { certificate, key, ca };
    let security = Security::Choria { token_file: site.path("token"), seed_file: site.path("seed"), tls };
    VaultSettings { security, tls: mode, ..site.plain() }
}

#[actix::test]
async fn a_clear_text_connection_has_no_tls_configuration() {
    assert!(vault(Site::new().plain()).tls_config().await.unwrap().is_none());
}

#[actix::test]
async fn an_x509_network_shows_its_certificate_and_verifies_the_brokers() {
    let config = config(Site::new().x509()).await;
    assert_eq!(handshake(Arc::clone(&config), Broker { wants_certificate: true, ..broker() }), Ok(1));
    assert_eq!(handshake(Arc::clone(&config), broker()), Ok(0));
    let stranger = handshake(Arc::clone(&config), Broker { of_our_ca: false, ..broker() }).unwrap_err();
    assert!(stranger.starts_with("client: invalid peer certificate"), "{stranger}");
    let misnamed = handshake(config, Broker { name: "other.example.net", ..broker() }).unwrap_err();
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}

#[actix::test]
async fn without_a_ca_any_broker_is_taken() {
    let site = Site::new();
    let config = config(issuer_tls(&site, TlsMode::Insecure, [None; 3])).await;
    assert_eq!(
        handshake(Arc::clone(&config), Broker { of_our_ca: false, name: "other.example.net", ..broker() }),
        Ok(0)
    );
    let refused = handshake(config, Broker { wants_certificate: true, ..broker() }).unwrap_err();
    assert!(refused.starts_with("broker:"), "{refused}");
}

#[actix::test]
async fn an_issuer_network_may_show_a_certificate_too() {
    let site = Site::new();
    let files = [Some("certificate.pem"), Some("key.pem"), Some("ca.pem")];
    let config = config(issuer_tls(&site, TlsMode::Verify, files)).await;
    assert_eq!(handshake(config, Broker { wants_certificate: true, ..broker() }), Ok(1));
}

#[actix::test]
async fn tls_12_is_spoken_and_both_versions_work() {
    for version in [&TLS12, &TLS13] {
        let config = config(Site::new().x509()).await;
        assert_eq!(
            handshake(config, Broker { versions: vec![version], wants_certificate: true, ..broker() }),
            Ok(1)
        );
    }
}

#[actix::test]
async fn each_connect_takes_renewed_files() {
    let site = Site::new();
    let vault = vault(site.x509());
    site.put("key.pem", &RSA[1].serialize_pem());
    let mismatch = vault.tls_config().await.unwrap_err();
    assert!(matches!(mismatch, VaultError::Tls(_)), "{mismatch}");
    site.put("certificate.pem", &certificate("provisioner.mcollective", &RSA[1]));
    assert!(vault.tls_config().await.is_ok());
}

#[actix::test]
async fn files_that_do_not_make_tls_are_named() {
    let site = Site::new();
    let verify = TlsMode::Verify;
    assert!(fault(issuer_tls(&site, verify, [None; 3])).await.contains("the CA to verify the broker with"));
    let half = fault(issuer_tls(&site, TlsMode::Insecure, [Some("certificate.pem"), None, None])).await;
    assert!(half.contains("private key of the client certificate"), "{half}");
    let half = fault(issuer_tls(&site, TlsMode::Insecure, [None, Some("key.pem"), None])).await;
    assert!(half.contains("client certificate of the private key"), "{half}");
    let no_certificate = fault(issuer_tls(&site, verify, [None, None, Some("seed")])).await;
    assert!(no_certificate.contains("holds no certificate"), "{no_certificate}");
    let no_key =
        fault(issuer_tls(&site, TlsMode::Insecure, [Some("certificate.pem"), Some("seed"), None])).await;
    assert!(no_key.contains("no private key in PEM"), "{no_key}");
}
