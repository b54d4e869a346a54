//! Files as sites of the three kinds of network write them, and what they mean.

use secrecy::ExposeSecret as _;

use super::*;

fn sample(yaml: &str, cfg: &str) -> (Config, Vec<String>) {
    let loaded = case(yaml, cfg).env("HOME", "/home/prov").load();
    assert!(loaded.faults.may_start(), "{:#?}", loaded.faults.list());
    let warned = loaded.faults.warnings().filter_map(|fault| fault.key.clone()).collect();
    (loaded.config.unwrap(), warned)
}

#[test]
fn a_plain_site() {
    let (config, warned) = sample(include_str!("samples/plain.yaml"), include_str!("samples/plain.cfg"));
    assert_eq!(warned, ["choria_insecure", "monitor_port"], "a listener for everybody");
    assert_eq!((config.workers.get(), config.site.as_str()), (4, "testing"));
    assert_eq!(config.log.target, LogTarget::File("/var/log/choria-provisioner.log".into()));
    assert_eq!(config.enroll.server_jwt_validity, Duration::from_hours(14 * 24));
    assert!(matches!(config.security, Security::Insecure { ref certname } if certname == "prov.example.net"));
    assert_eq!((config.broker.user, config.broker.password.is_none()), (None, true));
}

#[test]
fn an_x509_site() {
    let (config, warned) = sample(
        &include_str!("samples/x509.yaml").replace("/etc/choria-provisioner/signer-public.pem", "signer.pem"),
        include_str!("samples/x509.cfg"),
    );
    assert_eq!(
        warned,
        ["monitor_port", "management"],
        "a key of older Provisioners, which nobody reads any more"
    );
    assert_eq!(config.helper.command.argv()[1..], ["--ca", "Site CA", "--site", "north 1"]);
    assert_eq!(
        config.enroll.deny_list.iter().map(regex::Regex::as_str).collect::<Vec<_>>()[1..],
        [r"\.mcollective$", "^admin"]
    );
    assert!(config.features.pki && config.features.jwt && !config.features.ed25519);
    let ServerSource::Srv { domain, .. } = config.broker.servers else { panic!() };
    assert_eq!(domain.as_deref(), Some("north.example.net"));
    assert_eq!((config.broker.ttl.get(), config.broker.connect_timeout), (90, Duration::from_secs(5)));
    assert_eq!(config.cluster, ClusterMode::Off);
}

#[test]
fn an_issuer_site() {
    let (config, warned) = sample(include_str!("samples/issuer.yaml"), include_str!("samples/issuer.cfg"));
    assert_eq!(warned, ["interval"], "written with a capital");
    assert_eq!(config.interval, Duration::from_mins(2));
    assert_eq!(config.helper.command.argv(), ["/opt/provisioner/helper", "--zone", "eu"]);
    assert_eq!(config.token.expose_secret(), "12345");
    assert_eq!(
        config.broker.password.as_ref().map(secrecy::ExposeSecret::expose_secret),
        Some("s3cret: with # signs")
    );
    assert_eq!((config.generation(), config.cluster), (Generation::V2, ClusterMode::Election));
    let Security::Choria { token_file, .. } = &config.security else { panic!() };
    assert_eq!(token_file, Path::new("/home/prov/signer.jwt"));
    assert_eq!(config.broker.discovery_timeout, Duration::from_secs(4));
    let ServerSource::List(brokers) = &config.broker.servers else { panic!() };
    assert_eq!(brokers.len(), 2);
}
