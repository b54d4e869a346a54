use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use quartermaster_proto::choria::Generation;
use secrecy::ExposeSecret as _;

use super::*;
use crate::config::raw::KEYS;
use crate::config::surroundings::Names;
use crate::config::{
    ClusterMode, DEFAULT_FILE, HelperProtocol, ListenAddress, LogLevel, LogTarget, Security, ServerSource,
    VerifyKeySource,
};

/// A machine that is `hostname` and knows itself as `full`.
struct Machine {
    hostname: &'static str,
    full: Option<&'static str>,
}

impl Names for Machine {
    fn hostname(&self) -> String {
        self.hostname.to_owned()
    }
    fn full_name(&self) -> Option<String> {
        self.full.map(str::to_owned)
    }
    fn domain(&self) -> Option<String> {
        self.full.and_then(|name| name.split_once('.')).map(|(_, domain)| domain.to_owned())
    }
}

struct Case {
    yaml: String,
    cfg: String,
    env: BTreeMap<String, String>,
    machine: Machine,
    is_root: bool,
}

fn case(yaml: &str, cfg: &str) -> Case {
    let machine = Machine { hostname: "prov", full: Some("prov.example.net") };
    Case { yaml: yaml.to_owned(), cfg: cfg.to_owned(), env: BTreeMap::new(), machine, is_root: true }
}

impl Case {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self) -> Loaded {
        let root = tempfile::tempdir().unwrap();
        let (yaml, cfg) = (root.path().join("p.yaml"), root.path().join("choria.cfg"));
        std::fs::write(&yaml, &self.yaml).unwrap();
        std::fs::write(&cfg, &self.cfg).unwrap();
        std::fs::write(root.path().join("signer.pem"), "-----BEGIN CERTIFICATE-----\n").unwrap();
        let around = Surroundings {
            env: &self.env,
            names: &self.machine,
            cwd: root.path().to_owned(),
            is_root: self.is_root,
            cpus: NonZeroUsize::new(6).unwrap(),
        };
        load(&yaml, Some(&cfg), &around)
    }

    fn config(&self) -> Config {
        let loaded = self.load();
        assert!(loaded.faults.may_start(), "{:?}", loaded.faults.list());
        loaded.config.unwrap()
    }

    /// Expects exactly one fault, of this severity, about `key`, with `words` in it.
    fn fault(&self, severity: Severity, key: &str, words: &str) {
        let loaded = self.load();
        let [fault] = loaded.faults.list() else {
            panic!("{}{}: {:#?}", self.yaml, self.cfg, loaded.faults.list())
        };
        assert_eq!((fault.severity, fault.key.as_deref()), (severity, Some(key)), "{fault:?}");
        let all = format!("{} | {}", fault.what, fault.help.clone().unwrap_or_default());
        assert!(all.contains(words), "{all} does not say {words}");
        assert!(fault.file.is_some() || fault.place.is_none());
    }
}

const HELPER: &str = "helper: /bin/true\n";
const PASSWORD: &str = "broker_provisioning_password: s3cret-pass\n";
const FILES: &str = "plugin.security.provider = file\nplugin.security.file.certificate = /c.pem\n\
                     plugin.security.file.key = /k.pem\nplugin.security.file.ca = /ca.pem\n\
                     plugin.choria.middleware_hosts = broker.example.net:4222\n";
const ISSUER: &str = "plugin.security.provider = choria\nplugin.security.choria.token_file = /t.jwt\n\
                      plugin.security.choria.seed_file = /t.seed\nplugin.choria.middleware_hosts = b:4222\n";

/// The YAML text in an x509 network where nothing else is wrong.
fn yaml(text: &str) -> Case {
    let helper = if text.contains("helper:") { "" } else { HELPER };
    case(&format!("{text}{helper}{PASSWORD}"), FILES)
}

/// The choria.cfg text, with a YAML file where nothing is wrong.
fn cfg(text: &str) -> Case {
    case(&format!("{HELPER}{PASSWORD}"), text)
}

use Severity::{Error, Warning};

#[rustfmt::skip]
mod refused {
    use super::*;
    #[test] fn a_short_interval() { yaml("interval: 59s\n").fault(Error, "interval", "shorter than a minute") }
    #[test] fn an_interval_that_is_none() { yaml("interval: often\n").fault(Error, "interval", "`often`") }
    #[test] fn negative_workers() { yaml("workers: -1\n").fault(Error, "workers", "-1") }
    #[test] fn a_component_with_a_dot() { yaml("lifecycle_component: a.b\n").fault(Error, "lifecycle_component", "dot") }
    #[test] fn a_component_with_wildcards() { yaml("lifecycle_component: a>\n").fault(Error, "lifecycle_component", "wildcard"); yaml("lifecycle_component: '*'\n").fault(Error, "lifecycle_component", "wildcard") }
    #[test] fn pki_with_ed25519() { yaml("features: {pki: true, ed25519: true}\njwt_verify_cert: signer.pem\njwt_signing_key: k\n").fault(Error, "features.pki", "x509") }
    #[test] fn jwt_without_a_key_to_verify() { yaml("features: {jwt: true}\n").fault(Error, "features.jwt", "jwt_verify_cert") }
    #[test] fn ed25519_without_a_key_to_sign() { yaml("features: {ed25519: true}\njwt_verify_cert: signer.pem\n").fault(Error, "features.ed25519", "jwt_signing_key") }
    #[test] fn a_verify_key_that_is_neither_file_nor_key() { yaml("jwt_verify_cert: nothere.pem\n").fault(Error, "jwt_verify_cert", "neither a file") }
    #[test] fn an_unbalanced_quote_in_the_helper() { yaml("helper: /opt/h 'a\n").fault(Error, "helper", "character 8") }
    #[test] fn an_empty_helper() { yaml("helper: ''\n").fault(Error, "helper", "names no program"); yaml("helper: \"''\"\n").fault(Error, "helper", "names no program") }
    #[test] fn no_helper() { case(PASSWORD, FILES).fault(Error, "helper", "not set") }
    #[test] fn a_pattern_that_does_not_compile() { yaml("cert_deny_list: [ok, '(x']\n").fault(Error, "cert_deny_list[1]", "does not compile") }
    #[test] fn a_timeout_of_nothing() { yaml("helper_timeout: 0s\n").fault(Error, "helper_timeout", "more than nothing") }
    #[test] fn two_programs_for_one_helper() { yaml("helper: /bin/true\nhelper_protocol: provider\nproviders: {helper: {source: 'exec:/bin/true'}}\n").fault(Error, "helper", "names the program already") }
    #[test] fn a_protocol_that_is_none() { yaml("helper_protocol: exce\n").fault(Error, "helper_protocol", "exce") }
    #[test] fn credentials_for_helpers() { yaml("helper_env: [PATH, MCOLLECTIVE_*]\n").fault(Error, "helper_env[1]", "credentials"); yaml("helper_env: ['*']\n").fault(Error, "helper_env[0]", "no name") }
    #[test] fn a_cap_below_first() { yaml("retry: {first: 5m, cap: 1m}\n").fault(Error, "retry.cap", "shorter") }
    #[test] fn a_bucket_that_cannot_be() { yaml("cluster: {bucket: a.b}\n").fault(Error, "cluster.bucket", "a.b") }
    #[test] fn claims_that_expire_too_soon() { yaml("cluster: {ttl: 1s}\n").fault(Error, "cluster.ttl", "between 5s and 1h") }
    #[test] fn claims_where_nobody_logs_in() { yaml("cluster: {connection: control}\n").fault(Error, "cluster.connection", "no login of its own") }
    #[test] fn too_many_copies() { yaml("cluster: {replicas: 6}\n").fault(Error, "cluster.replicas", "between 0 and 5") }
    #[test] fn shared_work_with_a_leader() { yaml("leader_election: true\ncluster: {mode: shared}\n").fault(Error, "cluster.mode", "leader_election") }
    #[test] fn two_words_about_the_election() { yaml("leader_election: true\ncluster: {mode: 'off'}\n").fault(Error, "cluster.mode", "leader_election") }
    #[test] fn a_control_user_without_password() { yaml("control: {user: ops}\n").fault(Error, "control.user", "needs control.password") }
    #[test] fn a_control_password_without_user() { yaml("control: {password: x}\n").fault(Error, "control.password", "needs control.user") }
    #[test] fn a_control_server_without_port() { yaml("control: {server: broker}\n").fault(Error, "control.server", "no port") }
    #[test] fn a_control_server_of_another_scheme() { yaml("control: {server: 'http://b:1'}\n").fault(Error, "control.server", "unknown") }
    #[test] fn a_control_certificate_without_key() { yaml("control: {certificate: x.pem}\n").fault(Error, "control.certificate", "go together") }
    #[test] fn a_control_certificate_without_authority() { yaml("control: {certificate: x.pem, key: y.pem}\n").fault(Error, "control.certificate", "needs control.ca") }
    #[test] fn a_subject_of_the_system() { yaml("control: {subject_prefix: $SRV}\n").fault(Error, "control.subject_prefix", "cannot begin") }
    #[test] fn a_subject_with_wildcards() { let loaded = yaml("control: {subject_prefix: 'a.>'}\n").load(); assert!(!loaded.faults.may_start()) }
    #[test] fn a_port_beyond_all_ports() { yaml("monitor_port: 70000\n").fault(Error, "monitor_port", "65535") }
    #[test] fn two_ports() { yaml("monitor_port: 1\nlisten: 127.0.0.1:2\n").fault(Error, "listen", "monitor_port") }
    #[test] fn half_a_certificate() { yaml("listen: 9090\nlisten_tls: {certificate: /c}\n").fault(Error, "listen_tls.key", "missing"); yaml("listen: 9090\nlisten_tls: {key: /c}\n").fault(Error, "listen_tls.certificate", "missing") }
    #[test] fn a_name_with_a_port() { yaml("web: {names: [a.example, 'b:1']}\n").fault(Error, "web.names[1]", "without scheme or port") }
    #[test] fn no_address() { yaml("listen: here\n").fault(Error, "listen", "here") }
    #[test] fn a_provider_that_is_none() { cfg("plugin.security.provider = fiel\nplugin.choria.middleware_hosts = b:1\n").fault(Error, "plugin.security.provider", "`file`") }
    #[test] fn a_provider_that_is_not_supported() { cfg("plugin.security.provider = pkcs11\nplugin.choria.middleware_hosts = b:1\n").fault(Error, "plugin.security.provider", "not supported") }
    #[test] fn a_missing_certificate() { cfg(&FILES.replace("plugin.security.file.ca = /ca.pem\n", "")).fault(Error, "plugin.security.file.ca", "not set") }
    #[test] fn a_missing_seed() { cfg(&ISSUER.replace("plugin.security.choria.seed_file = /t.seed\n", "")).fault(Error, "plugin.security.choria.seed_file", "not set") }
    #[test] fn federation() { cfg(&format!("{FILES}plugin.choria.federation.collectives = a\n")).fault(Error, "plugin.choria.federation.collectives", "federation") }
    #[test] fn federation_by_environment() { cfg(FILES).env("CHORIA_FED_COLLECTIVE", "a").fault(Error, "plugin.choria.federation.collectives", "CHORIA_FED_COLLECTIVE") }
    #[test] fn a_broker_without_port() { cfg(&FILES.replace(":4222", "")).load().faults.errors().next().unwrap(); }
    #[test] fn a_connect_timeout_beyond_two_minutes() { cfg(&format!("{FILES}plugin.choria.network.connect_timeout = 121\n")).fault(Error, "plugin.choria.network.connect_timeout", "two minutes") }
    #[test] fn an_identity_with_spaces() { cfg(&format!("{FILES}identity = a b\n")).fault(Error, "identity", "full name") }
    #[test] fn an_empty_file() { for text in ["", "# only this\n", "null\n", "---\n"] { let loaded = case(text, FILES).load(); assert!(loaded.config.is_none() && loaded.faults.list()[0].what.contains("empty"), "{text:?}") } }
    #[test] fn a_list_for_a_file() { let loaded = case("- a\n", FILES).load(); assert!(loaded.faults.list()[0].what.contains("a list")) }
    #[test] fn a_state_folder_that_is_a_file() { yaml("state_dir: /dev/null\n").fault(Error, "state_dir", "no folder") }
    #[test] fn a_missing_file() {
        let around = crate::machine::surroundings();
        let loaded = load(Path::new("/no/such.yaml"), Some(Path::new("/no/such.cfg")), &around);
        assert_eq!((loaded.faults.list().len(), loaded.config.is_none()), (2, true), "both files are named");
    }
}

#[rustfmt::skip]
mod warned {
    use super::*;
    #[test] fn choria_insecure() { case(&format!("choria_insecure: true\n{HELPER}"), FILES).fault(Warning, "choria_insecure", "TLS") }
    #[test] fn no_password() { case(HELPER, FILES).fault(Warning, "broker_provisioning_password", "client_password") }
    #[test] fn an_unknown_level() { yaml("loglevel: loud\n").fault(Warning, "loglevel", "warn is used") }
    #[test] fn upgrades_without_a_repository() { yaml("features: {upgrades: true}\n").fault(Warning, "features.upgrades", "upgrades_repository") }
    #[test] fn a_listener_for_everybody() { yaml("monitor_port: 9090\n").fault(Warning, "monitor_port", "neither TLS nor a token"); yaml("listen: 0.0.0.0:1\n").fault(Warning, "listen", "listen: 127.0.0.1") }
    #[test] fn an_open_listener_without_tls() { yaml("listen: '[::]:1'\nweb: {read_token_file: /t}\n").fault(Warning, "listen", "no TLS") }
    #[test] fn an_open_listener_without_a_token() { yaml("listen: 10.1.2.3:1\nlisten_tls: {certificate: /c, key: /k}\n").fault(Warning, "listen", "no token") }
    #[test] fn a_token_without_a_listener() { yaml("web: {admin_token_file: /t}\n").fault(Warning, "web.admin_token_file", "no effect") }
    #[test] fn an_address_without_a_port() { yaml("listen: 127.0.0.1\n").fault(Warning, "listen", "no port") }
    #[test] fn a_short_ttl_in_protocol_1() { cfg(&format!("{FILES}ttl = 10\n")).fault(Warning, "ttl", "30 seconds") }
    #[test] fn half_a_client_certificate() { cfg(&format!("{ISSUER}plugin.security.choria.key = /k\n")).fault(Warning, "plugin.security.choria.key", "no effect") }
    #[test] fn a_second_document() { let loaded = case(&format!("{HELPER}{PASSWORD}---\nx: 1\n"), FILES).load(); assert!(loaded.faults.list()[0].what.contains("second document")) }
    #[test] fn no_domain_for_srv() { let mut case = cfg(&FILES.replace("plugin.choria.middleware_hosts", "x")); case.machine.full = None; case.fault(Warning, "plugin.choria.srv_domain", "puppet:4222") }
}

#[test]
fn a_small_file_means_what_it_means_to_the_peer() {
    let config = yaml("token: s3cret\n").config();
    assert_eq!((config.workers.get(), config.interval), (6, Duration::from_mins(1)));
    assert_eq!((config.log.target.clone(), config.log.level), (LogTarget::Stdout, LogLevel::Info));
    assert_eq!(config.lifecycle_component, "provision_mode_server");
    assert_eq!(config.enroll.server_jwt_validity, Duration::from_hours(365 * 24));
    assert_eq!(
        config.enroll.deny_list.iter().map(regex::Regex::as_str).collect::<Vec<_>>(),
        crate::config::DEFAULT_DENY_LIST
    );
    assert_eq!((config.listen, config.cluster), (None, ClusterMode::Off));
    assert_eq!(config.token.expose_secret(), "s3cret");
    assert_eq!(
        (config.helper.timeout, config.helper.protocol),
        (Duration::from_secs(10), HelperProtocol::Exec)
    );
    assert_eq!((config.in_flight.get(), config.queue.get()), (6 * 32, 50_000));
    assert_eq!((config.broker.user.as_deref(), config.broker.ttl.get()), (Some("provisioner"), 60));
    assert_eq!(
        (config.broker.connect_timeout, config.broker.discovery_timeout),
        (Duration::from_secs(2), Duration::from_secs(2))
    );
    assert_eq!((config.identity.as_str(), config.generation()), ("prov.example.net", Generation::V1));
}

#[test]
fn every_key_of_the_peer_is_taken() {
    let config = yaml(
        "workers: 4\ninterval: 1h30m\nlogfile: /var/log/p.log\nloglevel: error\nhelper: /opt/h --site \"a b\"\ntoken: t\n\
         lifecycle_component: other\nsite: london\nmonitor_port: 8888\nbroker_port: 1\nrego_policy: x\ncert_deny_list: [/x$/]\n\
         jwt_verify_cert: signer.pem\njwt_signing_key: k\njwt_signing_token: t\nserver_jwt_validity: 2w\nleader_election: true\n\
         upgrades_repository: http://r\nupgrades_optional: yes\nfeatures: {ed25519: on, upgrades: true}\n",
    )
    .config();
    assert_eq!((config.workers.get(), config.interval), (4, Duration::from_mins(90)));
    assert_eq!(
        (config.log.target, config.log.level),
        (LogTarget::File("/var/log/p.log".into()), LogLevel::Error)
    );
    assert_eq!(config.helper.command.argv(), ["/opt/h", "--site", "a b"]);
    assert_eq!((config.lifecycle_component.as_str(), config.site.as_str()), ("other", "london"));
    assert_eq!(config.listen, Some(ListenAddress::Everywhere { port: 8888 }));
    assert_eq!(config.enroll.deny_list[0].as_str(), "x$");
    assert_eq!(config.enroll.jwt_verify, Some(VerifyKeySource::File("signer.pem".into())));
    assert_eq!(config.enroll.jwt_signing_key.as_deref(), Some(Path::new("k")));
    assert_eq!(config.enroll.server_jwt_validity, Duration::from_hours(14 * 24));
    assert!(config.features.jwt && config.features.ed25519, "ed25519 turns jwt on");
    assert_eq!((config.upgrades.repository.as_str(), config.upgrades.optional), ("http://r", true));
    assert_eq!(config.cluster, ClusterMode::Election);
}

#[test]
fn a_verify_key_may_be_written_out() {
    let key = "3899a8bb4b6e6e09c91c27f28f086f0b40f1d3091a8c83c07320bc6cfdf67730";
    let config = yaml(&format!("jwt_verify_cert: '{key}'\n")).config();
    let Some(VerifyKeySource::Key(bytes)) = config.enroll.jwt_verify else { panic!() };
    assert_eq!(hex::encode(bytes), key);
}

#[rustfmt::skip]
mod names {
    use super::*;
    fn certname(case: &Case) -> String {
        match case.config().security { Security::X509 { certname, .. } | Security::Insecure { certname } => certname, Security::Choria { .. } => panic!("an issuer network") }
    }
    #[test] fn root_uses_the_identity() { assert_eq!(certname(&cfg(FILES).env("USER", "bob")), "prov.example.net") }
    #[test] fn a_user_uses_its_name() { let mut case = cfg(FILES).env("USER", "bob"); case.is_root = false; assert_eq!(certname(&case), "bob.mcollective") }
    #[test] fn the_environment_overrides() { assert_eq!(certname(&cfg(FILES).env("MCOLLECTIVE_CERTNAME", "p.mcollective")), "p.mcollective") }
    #[test] fn insecure_has_one_too() { assert_eq!(certname(&case(&format!("choria_insecure: true\n{HELPER}"), "plugin.choria.middleware_hosts = b:1\nplugin.security.provider = choria\n")), "prov.example.net") }
    #[test] fn puppet_names_the_files_by_user_even_for_root() {
        let case = cfg("plugin.choria.middleware_hosts = b:1\nplugin.choria.ssldir = /ssl\n").env("USER", "root");
        let Security::X509 { certname, tls } = case.config().security else { panic!() };
        assert_eq!((certname.as_str(), tls.key.unwrap().to_str().unwrap()), ("root.mcollective", "/ssl/private_keys/root.mcollective.pem"));
    }
    #[test] fn a_long_host_name_is_the_identity() { let mut case = cfg(FILES); case.machine.hostname = "a.b.c"; assert_eq!(case.config().identity.as_str(), "a.b.c") }
    #[test] fn a_short_one_is_looked_up() { let mut case = cfg(FILES); case.machine.hostname = "a.b"; assert_eq!(case.config().identity.as_str(), "prov.example.net") }
    #[test] fn without_any_other_it_must_do() { let mut case = cfg(FILES); case.machine.full = None; assert_eq!(case.config().identity.as_str(), "prov") }
    #[test] fn configured_wins() { assert_eq!(cfg(&format!("{FILES}identity = x.y\n")).config().identity.as_str(), "x.y") }
}

#[test]
fn issuer_networks_need_token_and_seed_only() {
    let config = cfg(ISSUER).config();
    assert_eq!(config.generation(), Generation::V2);
    let Security::Choria { token_file, seed_file, tls } = config.security else { panic!() };
    assert_eq!((token_file.to_str(), seed_file.to_str(), tls.ca), (Some("/t.jwt"), Some("/t.seed"), None));
}

#[rustfmt::skip]
mod brokers {
    use super::*;
    fn servers(lines: &str) -> ServerSource { cfg(&format!("{}{lines}", FILES.replace("plugin.choria.middleware_hosts = broker.example.net:4222\n", ""))).config().broker.servers }
    #[test] fn a_list() { let ServerSource::List(list) = servers("plugin.choria.middleware_hosts = a:1, tls://b:2,\n") else { panic!() }; assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>(), ["nats://a:1", "tls://b:2"]) }
    #[test] fn srv_by_default() { let ServerSource::Srv { domain, services, fallback } = servers("") else { panic!() }; assert_eq!((domain.as_deref(), services.len(), fallback.to_string().as_str()), (Some("example.net"), 2, "nats://puppet:4222")) }
    #[test] fn srv_in_a_configured_domain() { let ServerSource::Srv { domain, .. } = servers("plugin.choria.srv_domain = x.y\n") else { panic!() }; assert_eq!(domain.as_deref(), Some("x.y")) }
    #[test] fn no_srv() { let ServerSource::List(list) = servers("plugin.choria.use_srv = no\n") else { panic!() }; assert_eq!(list[0].to_string(), "nats://puppet:4222") }
    #[test] fn the_environment_names_the_domain() {
        let case = cfg(&FILES.replace("plugin.choria.middleware_hosts = broker.example.net:4222\n", "plugin.choria.srv_domain = x.y\n")).env("CHORIA_SRV_DOMAIN", "env.net");
        let ServerSource::Srv { domain, .. } = case.config().broker.servers else { panic!() };
        assert_eq!(domain.as_deref(), Some("env.net"));
    }
    #[test] fn a_nats_user_without_our_password() {
        let case = case(HELPER, &format!("{FILES}plugin.nats.user = u\nplugin.nats.pass = p\n"));
        let broker = case.config().broker;
        assert_eq!((broker.user.as_deref(), broker.password.unwrap().expose_secret()), (Some("u"), "p"));
    }
}

#[rustfmt::skip]
mod listener {
    use super::*;
    fn at(text: &str) -> Option<ListenAddress> { yaml(text).config().listen }
    #[test] fn off() { assert_eq!(at(""), None) }
    #[test] fn the_peers_port_alone() { assert_eq!(at("monitor_port: 9\n"), Some(ListenAddress::Everywhere { port: 9 })) }
    #[test] fn an_address_and_the_peers_port() { assert_eq!(at("monitor_port: 9\nlisten: 127.0.0.1\n"), Some(ListenAddress::At("127.0.0.1:9".parse().unwrap()))) }
    #[test] fn an_address_with_port() { assert_eq!(at("listen: '[::1]:9'\n"), Some(ListenAddress::At("[::1]:9".parse().unwrap()))) }
}

#[rustfmt::skip]
mod log_targets {
    use super::*;
    fn target(text: &str) -> LogTarget { yaml(text).config().log.target }
    #[test] fn names_mean_what_they_say() { assert_eq!(target("logfile: stderr\n"), LogTarget::Stderr); assert_eq!(target("logfile: DISCARD\n"), LogTarget::Discard); assert_eq!(target("logfile: stdout\n"), LogTarget::Stdout) }
    #[test] fn unset_is_no_file_named_info() { assert_eq!(target(""), LogTarget::Stdout); assert_eq!(target("logfile: ''\n"), LogTarget::Stdout) }
    #[test] fn all_else_is_a_path() { assert_eq!(target("logfile: info\n"), LogTarget::File("info".into())) }
}

/// The default file is the defaults: with it, everything is as without it.
#[test]
fn the_default_file_changes_nothing_and_names_every_key() {
    let bare = yaml("").load();
    let full = case(&format!("{DEFAULT_FILE}{HELPER}"), FILES).load();
    let only_no_password = |loaded: &Loaded| {
        loaded.faults.list().iter().all(|f| f.key.as_deref() == Some("broker_provisioning_password"))
    };
    assert!(only_no_password(&full), "{:#?}", full.faults.list());
    let show = |loaded: &Loaded| {
        let mut config = loaded.config.clone().unwrap();
        config.broker.user = None;
        config.broker.password = None;
        let text = format!("{config:#?}");
        text.lines()
            .filter(|line| {
                !line.contains("_file:") && !line.contains("p.yaml") && !line.contains("choria.cfg")
            })
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(show(&bare), show(&full));

    // Every commented key is one we know, and no key is left out.
    let mut section = String::new();
    let mut seen = Vec::new();
    for line in DEFAULT_FILE.lines() {
        let uncommented = line
            .trim_start()
            .strip_prefix('#')
            .filter(|rest| !rest.starts_with(' '))
            .unwrap_or(line.trim_start());
        let Some((key, _)) = uncommented.split_once(':').filter(|(key, _)| {
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        }) else {
            continue;
        };
        let indented = line.starts_with(' ');
        if !indented {
            key.clone_into(&mut section);
        }
        seen.push(if indented { (section.clone(), key.to_owned()) } else { (String::new(), key.to_owned()) });
    }
    for (section, keys) in KEYS {
        for key in *keys {
            assert!(
                seen.contains(&((*section).to_owned(), (*key).to_owned())),
                "{section} {key} is not in the default file"
            );
        }
    }
    for (section, key) in &seen {
        assert!(
            KEYS.iter().any(|(name, keys)| name == section && keys.contains(&key.as_str())),
            "{section} {key} is unknown"
        );
    }
}

#[test]
fn a_listener_is_on_the_loopback_address_unless_told_and_says_nothing_when_it_is() {
    let at = |text: &str| {
        let loaded = yaml(text).load();
        assert!(loaded.faults.list().is_empty(), "{text}: {:?}", loaded.faults.list());
        loaded.config.unwrap().listen
    };
    let loopback = Some(ListenAddress::At(([127, 0, 0, 1], 9090).into()));
    for text in ["listen: 9090\n", "listen: ':9090'\n", "listen: '9090'\n", "listen: 127.0.0.1:9090\n"] {
        assert_eq!(at(text), loopback, "{text}");
    }
    assert_eq!(at("listen: 127.0.0.1\nmonitor_port: 9090\n"), loopback);
    let guarded =
        "listen: 0.0.0.0:9090\nlisten_tls: {certificate: /c, key: /k}\nweb: {read_token_file: /t}\n";
    assert!(at(guarded).is_some());
    let config = yaml("listen: 9090\nweb: {names: [fleet.example.net]}\n").config();
    assert_eq!(config.web.names, ["fleet.example.net", "prov.example.net"], "and our own name");
}

#[test]
fn all_faults_of_both_files_are_reported_in_the_order_of_the_files() {
    let loaded =
        case("interval: 60\nhelper: \"'\"\nworkerz: 1\n", "ttl = x\nplugin.security.provider = fiel\n")
            .load();
    let keys: Vec<_> = loaded.faults.list().iter().filter_map(|f| f.key.as_deref()).collect();
    for key in ["interval", "helper", "workerz", "ttl", "plugin.security.provider"] {
        assert!(keys.contains(&key), "{key} is missing in {keys:?}");
    }
    let lines: Vec<_> = loaded
        .faults
        .list()
        .iter()
        .filter(|f| f.file.as_deref().is_some_and(|f| f.ends_with("p.yaml")))
        .filter_map(|f| f.place.map(|p| p.line))
        .collect();
    assert!(lines.is_sorted(), "{lines:?}");
}

#[test]
fn no_secret_is_shown_by_debug() {
    let loaded = case(&format!("token: t0ken-secret\n{HELPER}{PASSWORD}"), FILES).load();
    let text = format!("{loaded:?}");
    assert!(!text.contains("t0ken-secret") && !text.contains("s3cret-pass"), "{text}");
}

#[path = "sample_tests.rs"]
mod samples;

#[test]
fn the_state_folder_is_the_first_of_systemds() {
    let state_dir = |case: Case| case.config().state_dir;
    assert_eq!(state_dir(cfg(FILES)), None);
    let given = cfg(FILES).env("STATE_DIRECTORY", "/var/lib/a:/var/lib/b");
    assert_eq!(state_dir(given).unwrap().to_str(), Some("/var/lib/a"));
    let both = yaml("state_dir: /var/lib/q\n").env("STATE_DIRECTORY", "/var/lib/a");
    assert_eq!(state_dir(both).unwrap().to_str(), Some("/var/lib/q"));
}
