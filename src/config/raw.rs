//! The YAML file as it stands: every known key with the type the peer's own reader would accept, nothing checked beyond that.
//!
//! The peer turns YAML into JSON and that into its structure, so: `null` leaves the default, upper and lower case of a key do not
//! matter, the later of two equal keys wins, a number is no text and a text is no number.

use std::fmt;
use std::path::Path;

use super::fault::Faults;
use super::providers::RawProvider;
use super::section::Section;
use super::steps::RawSteps;
use super::yaml::{Key, Node, Value};

/// The keys of the file by section; the empty section is the top level. Everything that reads, documents or suggests keys uses this table.
pub const KEYS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "workers",
            "interval",
            "logfile",
            "loglevel",
            "helper",
            "token",
            "lifecycle_component",
            "choria_insecure",
            "site",
            "monitor_port",
            "broker_port",
            "rego_policy",
            "broker_provisioning_password",
            "cert_deny_list",
            "jwt_verify_cert",
            "jwt_signing_key",
            "jwt_signing_token",
            "server_jwt_validity",
            "leader_election",
            "upgrades_repository",
            "upgrades_optional",
            "features",
            "helper_timeout",
            "helper_protocol",
            "helper_env",
            "in_flight",
            "queue",
            "retry",
            "listen",
            "listen_tls",
            "web",
            "state_dir",
            "control",
            "cluster",
            "providers",
            "providers_dir",
            "providers_allow",
            "steps",
            "strict",
        ],
    ),
    ("features", &["pki", "jwt", "ed25519", "upgrades"]),
    ("retry", &["first", "cap", "give_up_after"]),
    (
        "control",
        &[
            "enabled",
            "subject_prefix",
            "server",
            "credentials",
            "user",
            "password",
            "ca",
            "certificate",
            "key",
        ],
    ),
    ("listen_tls", &["certificate", "key"]),
    ("web", &["admin_token_file", "read_token_file", "names"]),
    ("cluster", &["mode", "connection", "bucket", "ttl", "replicas"]),
    ("steps", &["before", "after"]),
];

/// The file, every key optional: `None` is unset or `null`.
#[derive(Default, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are the file's keys; docs/configuration.md and default.yaml explain each"
)]
pub struct RawConfig {
    pub workers: Option<i64>,
    pub interval: Option<String>,
    pub logfile: Option<String>,
    pub loglevel: Option<String>,
    pub helper: Option<String>,
    pub token: Option<String>,
    pub lifecycle_component: Option<String>,
    pub choria_insecure: Option<bool>,
    pub site: Option<String>,
    pub monitor_port: Option<i64>,
    pub broker_port: Option<i64>,
    pub rego_policy: Option<String>,
    pub broker_provisioning_password: Option<String>,
    pub cert_deny_list: Option<Vec<String>>,
    pub jwt_verify_cert: Option<String>,
    pub jwt_signing_key: Option<String>,
    pub jwt_signing_token: Option<String>,
    pub server_jwt_validity: Option<String>,
    pub leader_election: Option<bool>,
    pub upgrades_repository: Option<String>,
    pub upgrades_optional: Option<bool>,
    pub features: RawFeatures,
    pub helper_timeout: Option<String>,
    pub helper_protocol: Option<String>,
    pub helper_env: Option<Vec<String>>,
    pub in_flight: Option<i64>,
    pub queue: Option<i64>,
    pub retry: RawRetry,
    pub listen: Option<String>,
    pub listen_tls: RawListenTls,
    pub web: RawWeb,
    pub state_dir: Option<String>,
    pub control: RawControl,
    pub cluster: RawCluster,
    pub providers: Vec<RawProvider>,
    pub providers_dir: Option<String>,
    pub providers_allow: Option<Vec<String>>,
    pub steps: RawSteps,
    pub strict: Option<bool>,
}

/// It holds the token and the password as they stand in the file.
impl fmt::Debug for RawConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConfig").finish_non_exhaustive()
    }
}

/// `features`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawFeatures {
    pub pki: Option<bool>,
    pub jwt: Option<bool>,
    pub ed25519: Option<bool>,
    pub upgrades: Option<bool>,
}

/// `retry`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawRetry {
    pub first: Option<String>,
    pub cap: Option<String>,
    pub give_up_after: Option<String>,
}

/// `control`.
#[derive(Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawControl {
    pub enabled: Option<bool>,
    pub subject_prefix: Option<String>,
    pub server: Option<String>,
    pub credentials: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub ca: Option<String>,
    pub certificate: Option<String>,
    pub key: Option<String>,
}

/// `listen_tls`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawListenTls {
    pub certificate: Option<String>,
    pub key: Option<String>,
}

/// `web`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawWeb {
    pub admin_token_file: Option<String>,
    pub read_token_file: Option<String>,
    pub names: Option<Vec<String>>,
}

/// `cluster`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawCluster {
    pub mode: Option<String>,
    pub connection: Option<String>,
    pub bucket: Option<String>,
    pub ttl: Option<String>,
    pub replicas: Option<i64>,
}

impl RawConfig {
    /// Takes the keys out of the file's top level. Wrong types, unknown, doubled and differently written keys become faults.
    pub fn from_map(file: &Path, entries: Vec<(Key, Node)>, faults: &mut Faults) -> Self {
        // Whether unknown keys refuse must be known before the first of them is met.
        let strict =
            entries.iter().any(|(key, node)| key.text == "strict" && node.value == Value::Bool(true));
        let mut top = Section { file, name: String::new(), known: &[], entries, faults, strict };
        let mut raw = Self {
            workers: top.integer("workers"),
            interval: top.text("interval"),
            logfile: top.text("logfile"),
            loglevel: top.text("loglevel"),
            helper: top.text("helper"),
            token: top.text("token"),
            lifecycle_component: top.text("lifecycle_component"),
            choria_insecure: top.boolean("choria_insecure"),
            site: top.text("site"),
            monitor_port: top.integer("monitor_port"),
            broker_port: top.integer("broker_port"),
            rego_policy: top.text("rego_policy"),
            broker_provisioning_password: top.text("broker_provisioning_password"),
            cert_deny_list: top.list("cert_deny_list"),
            jwt_verify_cert: top.text("jwt_verify_cert"),
            jwt_signing_key: top.text("jwt_signing_key"),
            jwt_signing_token: top.text("jwt_signing_token"),
            server_jwt_validity: top.text("server_jwt_validity"),
            leader_election: top.boolean("leader_election"),
            upgrades_repository: top.text("upgrades_repository"),
            upgrades_optional: top.boolean("upgrades_optional"),
            helper_timeout: top.text("helper_timeout"),
            helper_protocol: top.text("helper_protocol"),
            helper_env: top.list("helper_env"),
            in_flight: top.integer("in_flight"),
            queue: top.integer("queue"),
            listen: top.text_or_number("listen"),
            state_dir: top.text("state_dir"),
            providers: RawProvider::all(&mut top),
            providers_dir: top.text("providers_dir"),
            providers_allow: top.list("providers_allow"),
            strict: top.boolean("strict"),
            ..Self::default()
        };
        if let Some(mut features) = top.section("features") {
            raw.features = RawFeatures {
                pki: features.boolean("pki"),
                jwt: features.boolean("jwt"),
                ed25519: features.boolean("ed25519"),
                upgrades: features.boolean("upgrades"),
            };
            features.finish();
        }
        if let Some(mut retry) = top.section("retry") {
            raw.retry = RawRetry {
                first: retry.text("first"),
                cap: retry.text("cap"),
                give_up_after: retry.text("give_up_after"),
            };
            retry.finish();
        }
        if let Some(mut control) = top.section("control") {
            raw.control = RawControl {
                enabled: control.boolean("enabled"),
                subject_prefix: control.text("subject_prefix"),
                server: control.text("server"),
                credentials: control.text("credentials"),
                user: control.text("user"),
                password: control.text("password"),
                ca: control.text("ca"),
                certificate: control.text("certificate"),
                key: control.text("key"),
            };
            control.finish();
        }
        if let Some(mut tls) = top.section("listen_tls") {
            raw.listen_tls = RawListenTls { certificate: tls.text("certificate"), key: tls.text("key") };
            tls.finish();
        }
        if let Some(mut web) = top.section("web") {
            raw.web = RawWeb {
                admin_token_file: web.text("admin_token_file"),
                read_token_file: web.text("read_token_file"),
                names: web.list("names"),
            };
            web.finish();
        }
        if let Some(mut cluster) = top.section("cluster") {
            raw.cluster = RawCluster {
                mode: cluster.text("mode"),
                connection: cluster.text("connection"),
                bucket: cluster.text("bucket"),
                ttl: cluster.text("ttl"),
                replicas: cluster.integer("replicas"),
            };
            cluster.finish();
        }
        if let Some(mut steps) = top.section("steps") {
            raw.steps = RawSteps::read(&mut steps);
            steps.finish();
        }
        top.finish();
        raw
    }
}

#[cfg(test)]
#[path = "raw_tests.rs"]
mod tests;
