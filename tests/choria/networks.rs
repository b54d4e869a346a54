//! Two servers in each kind of network, provisioned from start to finish with the files of the network's provisioner.
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::support::json::{Json, differences};
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::server::Server;
use super::support::site::Site;

/// The first one is the server of the recordings.
const SERVERS: [&str; 2] = ["web1.example.net", "web2.example.net"];
const POLICY: &str = "policy default allow\n";
const REGO: &str = "package choria.aaa.policy\ndefault allow = true\n";

/// The ten arguments of `configure`, all of them always there.
const CONFIGURE: [&str; 10] = [
    "action_policies",
    "ca",
    "certificate",
    "config",
    "ecdh_public",
    "key",
    "opa_policies",
    "server_jwt",
    "ssldir",
    "token",
];

/// Starts the servers and the provisioner, waits until every server has come back as a full one, and checks what holds in
/// every network. The provisioner has been stopped when this returns.
fn provision(network: &mut Network, site: &Site) {
    for server in SERVERS {
        network.start_server(server);
    }
    let mut provisioner = Provisioner::start(network);
    for server in SERVERS {
        // Only a server whose new configuration, certificate or token the broker accepts gets to say this.
        network.tap().startup(server, "server", 1);
        assert!(network.process(server).ended().is_none(), "{server} ended");
        assert_eq!(site.received(server).len(), 1, "calls of the helper about {server}");

        let configure = network.tap().request(server, "configure", 1).json();
        let arguments: Vec<&String> = configure["data"].as_object().expect("arguments").keys().collect();
        assert_eq!(arguments, CONFIGURE, "arguments of configure for {server}");

        // One second of splay, sent as the whole number 1: the server itself says what it understood.
        let restart = network.tap().request(server, "restart", 1).json();
        assert_eq!(restart["data"], json!({"splay": 1, "token": "s3cret"}));
        let answer = network.tap().answer(server, "restart", 1).json();
        assert_eq!(answer["data"]["message"], "Restarting Choria Server after 2s");
    }
    provisioner.shows(r#"choria_provisioner_provisioned{site="lab"}"#, 2.0);
    assert_keeps_secrets(network, &provisioner.output());
    provisioner.stop();
    for server in SERVERS {
        assert_eq!(network.tap().requests(server, "configure").len(), 1, "times {server} was configured");
    }
}

/// The log is at its most talkative level that the file knows, and holds no secret of the site.
fn assert_keeps_secrets(network: &Network, log: &str) {
    let mut secrets = vec!["s3cret".to_owned(), "provSecret".to_owned(), "PRIVATE KEY".to_owned()];
    let files = ["signer.seed", "signer.jwt"].map(|name| network.file(name));
    let tokens = SERVERS.map(|name| network.server(name).folder().join("server.jwt"));
    secrets.extend(files.iter().chain(&tokens).filter_map(|file| std::fs::read_to_string(file).ok()));
    for secret in secrets {
        assert!(!log.contains(secret.trim()), "the log holds {secret}");
    }
}

/// The helper was given what the Choria Provisioner gave its helper in the recorded run of the same network.
fn assert_helper_input(site: &Site, recording: &str, varying: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/tests/vectors").join(recording);
    let recorded: Json = serde_json::from_slice(&std::fs::read(file).expect("the recording")).expect("JSON");
    let made: Json = serde_json::from_str(&site.received(SERVERS[0])[0]).expect("JSON for the helper");
    let found = differences(&recorded, &made, varying);
    assert!(found.is_empty(), "the helper's input differs from {recording}:\n{}", found.join("\n"));
}

/// The server's configuration file says who wrote it and holds these settings, no more.
fn assert_configuration(server: &Server, caller: &str, settings: &Value) {
    let (comment, found) = server.configuration();
    assert!(comment.starts_with("# configuration file written in request "), "{comment}");
    assert!(comment.contains(&format!(" from {caller} ")), "{comment}");
    let wanted: BTreeMap<String, String> =
        serde_json::from_value(settings.clone()).expect("settings are strings");
    assert_eq!(found, wanted, "settings of {}", server.name);
    server.assert_mode("server.cfg", 0o600);
}

fn plain_settings(network: &Network, server: &str) -> Value {
    json!({
        "collectives": "mcollective",
        "identity": server,
        "loglevel": "info",
        "main_collective": "mcollective",
        "plugin.choria.middleware_hosts": format!("127.0.0.1:{}", network.port()),
        "plugin.choria.server.provision": "false",
        "plugin.choria.use_srv": "false",
        "plugin.security.provider": "file",
    })
}

#[test]
fn servers_of_a_plain_network_rejoin_with_the_configuration_the_helper_gave() {
    let Some(lab) = lab() else { return };
    let mut network = Network::prepare(lab, Kind::Plain, &SERVERS);
    let site = Site::open(network.path());
    for server in SERVERS {
        site.answer(server, &json!({"configuration": plain_settings(&network, server)}));
    }
    provision(&mut network, &site);
    for name in SERVERS {
        let server = network.server(name);
        assert_configuration(&server, "choria=provisioner.example.net", &plain_settings(&network, name));
        server.assert_mode("server.jwt", 0o600);
        server.assert_mode("server.seed", 0o600);
        let claims: Value = serde_json::from_str(&network.lab("verify", name)).expect("claims");
        assert_eq!(claims["identity"], name);
        assert_eq!(claims["collectives"], json!(["mcollective"]));
        assert_eq!(claims["iss"], "Choria Provisioner");
    }
    assert_helper_input(
        &site,
        "v1-insecure.helper-input.json",
        &[
            "/ed25519_pubkey/public_key",
            "/ed25519_pubkey/directory",
            "/ed25519_pubkey/signature",
            "/jwt/chu",
            "/jwt/exp",
            "/jwt/nbf",
            "/jwt/iat",
            "/jwt/jti",
        ],
    );
}

/// Signs what `$csr` holds with the network's authority and prints a reply around the certificate; `$key` may name a file
/// whose key goes into the reply.
const SIGN: &str = r#"
printf 'subjectAltName=DNS:%s\nextendedKeyUsage=clientAuth,serverAuth\n' "$identity" > "$1.ext"
openssl x509 -req -in "$csr" -CA "$net/ca.pem" -CAkey "$net/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
  -days 1 -sha256 -extfile "$1.ext" -out "$net/issued/$identity.pem" 2>/dev/null
quoted() { awk 'BEGIN { printf "\"" } { printf "%s\\n", $0 } END { printf "\"" }' "$1"; }
printf '{"certificate":%s,"ca":%s,' "$(quoted "$net/issued/$identity.pem")" "$(quoted "$net/ca.pem")"
if [ -n "$key" ]; then printf '"key":%s,' "$(quoted "$key")"; fi
printf '%s' "$rest"
"#;

fn x509_settings(network: &Network, server: &Server) -> Value {
    json!({
        "identity": server.name,
        "loglevel": "info",
        "plugin.choria.middleware_hosts": format!("nats://localhost:{}", network.port()),
        "plugin.choria.server.provision": "false",
        "plugin.choria.use_srv": "false",
        "plugin.security.file.ca": server.path("ssl/ca.pem"),
        "plugin.security.file.certificate": server.path("ssl/certificate.pem"),
        "plugin.security.file.key": server.path("ssl/private.pem"),
        "plugin.security.provider": "file",
    })
}

/// `request` is the part of the helper that leaves the request to sign in `$csr`, and the key to hand out in `$key`.
fn x509(request: &str) -> Option<(Network, Site)> {
    let mut network = Network::prepare(lab()?, Kind::X509, &SERVERS);
    let site = Site::open(network.path());
    std::fs::create_dir(network.file("issued")).expect("a folder for what the helper issues");
    for name in SERVERS {
        let rest = json!({
            "configuration": x509_settings(&network, &network.server(name)),
            "action_policies": {"rpcutil.policy": POLICY},
            "opa_policies": {"default.rego": REGO},
        });
        let rest = rest.to_string();
        let rest = rest.strip_prefix('{').expect("an object");
        let set = format!("net='{}'\nidentity='{name}'\nrest='{rest}'\nkey=\n", network.path().display());
        site.answer_by_script(name, &[&set, request, SIGN].concat());
    }
    provision(&mut network, &site);
    for name in SERVERS {
        let server = network.server(name);
        assert_configuration(&server, "choria=provisioner.mcollective", &x509_settings(&network, &server));
        server.assert_certificate();
        for (file, mode) in [("certificate.pem", 0o644), ("ca.pem", 0o644), ("private.pem", 0o600)] {
            server.assert_mode(&format!("ssl/{file}"), mode);
        }
        let issued =
            std::fs::read_to_string(network.file(&format!("issued/{name}.pem"))).expect("a certificate");
        assert_eq!(server.text("ssl/certificate.pem").trim_end(), issued.trim_end());
        assert_eq!(server.text("policies/rpcutil.policy"), POLICY);
        assert_eq!(server.text("policies/rego/default.rego"), REGO);
        server.assert_mode("policies", 0o700);
        server.assert_mode("policies/rpcutil.policy", 0o400);
        server.assert_mode("policies/rego/default.rego", 0o400);
        assert!(!server.has("server.jwt"), "{name} got a token in a network of certificates");
    }
    assert_helper_input(
        &site,
        "v1-x509.helper-input.json",
        &[
            "/csr/csr",
            "/csr/public_key",
            "/csr/ssldir",
            "/jwt/chu",
            "/jwt/exp",
            "/jwt/nbf",
            "/jwt/iat",
            "/jwt/jti",
        ],
    );
    Some((network, site))
}

#[test]
fn servers_of_an_x509_network_rejoin_with_a_certificate_for_their_own_key() {
    let request = r#"
csr="$1.csr"
sed -n 's/.*"csr": *"\(-----BEGIN CERTIFICATE REQUEST[^"]*\)".*/\1/p' "$1" | awk '{ gsub(/\\n/, "\n"); print }' > "$csr"
"#;
    let Some((network, site)) = x509(request) else { return };
    for name in SERVERS {
        let server = network.server(name);
        assert!(server.has("ssl/csr.pem"), "the request of {name} is gone");
        let input: Value = serde_json::from_str(&site.received(name)[0]).expect("JSON");
        assert_eq!(
            input["csr"]["csr"],
            server.text("ssl/csr.pem"),
            "the request that the helper saw for {name}"
        );
        let configure = network.tap().request(name, "configure", 1).json();
        assert_eq!(configure["data"]["key"], "");
        assert_eq!(configure["data"]["ecdh_public"], "");
    }
}

#[test]
fn servers_of_an_x509_network_rejoin_with_a_certificate_and_a_key_from_the_helper() {
    let request = r#"
key="$net/issued/$identity.key"
csr="$1.csr"
openssl genrsa -traditional -out "$key" 2048 2>/dev/null || openssl genrsa -out "$key" 2048 2>/dev/null
openssl req -new -key "$key" -subj "/CN=$identity" -out "$csr"
"#;
    let Some((network, _)) = x509(request) else { return };
    for name in SERVERS {
        let server = network.server(name);
        let issued = std::fs::read_to_string(network.file(&format!("issued/{name}.key"))).expect("a key");
        assert_eq!(server.text("ssl/private.pem"), issued, "the key {name} holds");
        assert!(!server.has("ssl/csr.pem"), "{name} kept the request of a key it no longer has");
        let configure = network.tap().request(name, "configure", 1).json();
        let sent = configure["data"]["key"].as_str().expect("a key");
        assert!(sent.starts_with("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"), "{sent}");
        assert_eq!(configure["data"]["ecdh_public"].as_str().map(str::len), Some(64));
    }
}

/// Settings a server of an issuer network needs to serve in it.
pub fn issuer_settings(network: &Network, server: &Server) -> Value {
    let issuer = std::fs::read_to_string(network.file("issuer.public")).expect("the issuer's key");
    json!({
        "identity": server.name,
        "loglevel": "info",
        "plugin.choria.middleware_hosts": format!("nats://localhost:{}", network.port()),
        "plugin.choria.server.provision": "false",
        "plugin.choria.use_srv": "false",
        "plugin.security.choria.seed_file": server.path("server.seed"),
        "plugin.security.choria.token_file": server.path("server.jwt"),
        "plugin.security.issuer.choria.public": issuer,
        "plugin.security.issuer.names": "choria",
        "plugin.security.provider": "choria",
    })
}

#[test]
fn servers_of_an_issuer_network_rejoin_with_a_token_that_chains_to_the_issuer() {
    let Some(lab) = lab() else { return };
    let mut network = Network::prepare(lab, Kind::Issuer, &SERVERS);
    let site = Site::open(network.path());
    for name in SERVERS {
        let reply = json!({
            "configuration": issuer_settings(&network, &network.server(name)),
            "server_claims": {"permissions": {"submission": true, "streams": true}},
        });
        site.answer(name, &reply);
    }
    provision(&mut network, &site);
    for name in SERVERS {
        let server = network.server(name);
        assert_configuration(&server, "choria=provisioner_signer", &issuer_settings(&network, &server));
        server.assert_mode("server.jwt", 0o600);
        server.assert_mode("server.seed", 0o600);
        let claims: Value = serde_json::from_str(&network.lab("verify", name)).expect("claims");
        assert_eq!(claims["identity"], name);
        assert_eq!(claims["collectives"], json!(["choria"]));
        assert_eq!(claims["permissions"], json!({"submission": true, "streams": true}));
        assert!(claims["iss"].as_str().is_some_and(|iss| iss.starts_with("C-")), "{claims}");
    }
    assert_helper_input(
        &site,
        "v2.helper-input.json",
        &[
            "/ed25519_pubkey/public_key",
            "/ed25519_pubkey/directory",
            "/ed25519_pubkey/signature",
            "/jwt/chu",
            "/jwt/exp",
            "/jwt/nbf",
            "/jwt/iat",
            "/jwt/jti",
        ],
    );
}
