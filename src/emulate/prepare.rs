//! `emulate --prepare`: all files of a test network in one directory, so that broker, fleet and provisioner meet.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use serde_json::json;

use super::authority::{self, AuthorityError};
use super::dice::Dice;
use super::mint::{self, ClientOrder, ProvisioningOrder};
use crate::clock;

/// What the files shall say.
#[derive(Debug, Clone)]
pub struct PrepareSettings {
    /// The broker's address, `host:port`.
    pub broker: String,
    /// The shared provisioning token.
    pub token: String,
    /// The provisioner's workers; none leaves its default.
    pub workers: Option<usize>,
    /// The port of the provisioner's metrics; none for no listener.
    pub monitor_port: Option<u16>,
    /// Servers may be upgraded.
    pub upgradable: bool,
    /// Repeats the keys; none draws new ones.
    pub seed: Option<u64>,
}

impl Default for PrepareSettings {
    fn default() -> Self {
        Self {
            broker: "127.0.0.1:4222".to_owned(),
            token: "s3cret".to_owned(),
            workers: None,
            monitor_port: None,
            upgradable: false,
            seed: None,
        }
    }
}

/// Where the files of one network are.
#[derive(Debug, Clone)]
pub struct NetworkFiles {
    /// The directory, for [`super::Network::load`].
    pub dir: PathBuf,
    /// The provisioner's YAML file.
    pub config: PathBuf,
    /// The provisioner's choria.cfg.
    pub choria_config: PathBuf,
    /// The sample helper.
    pub helper: PathBuf,
}

/// Where everything is.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Protocol 1, unsigned.
    pub plain: NetworkFiles,
    /// Protocol 2 with an organisation issuer.
    pub issuer: NetworkFiles,
    /// Protocol 1 signed with certificates.
    pub x509: NetworkFiles,
    /// A configuration for nats-server: TLS and, beside it, clear text.
    pub broker_config: PathBuf,
    /// A configuration for a Choria broker that serves the issuer network.
    pub choria_broker_config: PathBuf,
}

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A file could not be written.
    #[error("could not write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// Writes everything below `dir`, which is created.
pub fn prepare(dir: &Path, settings: &PrepareSettings) -> Result<Prepared, PrepareError> {
    let random = || u64::from_be_bytes(std::array::from_fn(|_| rand::random()));
    let mut dice = Dice::new(settings.seed.unwrap_or_else(random), "prepare");
    let dir =
        std::path::absolute(dir).map_err(|source| PrepareError::Write { path: dir.to_owned(), source })?;
    let files = Files { dir: dir.clone() };
    let prepared = Prepared {
        plain: plain(&files.below("plain"), settings, &mut dice)?,
        issuer: issuer(&files.below("issuer"), settings, &mut dice)?,
        x509: x509(&files.below("x509"), settings, &mut dice)?,
        broker_config: broker(&files, settings)?,
        choria_broker_config: choria_broker(&files.below("issuer"), settings, &mut dice)?,
    };
    Ok(prepared)
}

struct Files {
    dir: PathBuf,
}

impl Files {
    fn below(&self, name: &str) -> Self {
        Self { dir: self.dir.join(name) }
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf, PrepareError> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.dir.join(name);
        std::fs::create_dir_all(&self.dir)
            .and_then(|()| std::fs::write(&path, text))
            .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)))
            .map_err(|source| PrepareError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    fn key(&self, name: &str, dice: &mut Dice) -> Result<SigningKey, PrepareError> {
        let key = SigningKey::from_bytes(&dice.bytes32());
        self.write(&format!("{name}.seed"), &hex::encode(key.to_bytes()), 0o600)?;
        self.write(&format!("{name}.public"), &hex::encode(key.verifying_key().to_bytes()), 0o644)?;
        Ok(key)
    }
}

fn order(settings: &PrepareSettings, v2: bool, dice: &mut Dice) -> ProvisioningOrder {
    ProvisioningOrder {
        token: settings.token.clone(),
        urls: format!("nats://{}", settings.broker),
        extensions: Some(json!({"rack": "r1"})),
        v2,
        upgradable: settings.upgradable,
        from: clock::now(),
        valid_seconds: 365 * 86_400,
        id: dice.bytes16(),
    }
}

fn plain(files: &Files, settings: &PrepareSettings, dice: &mut Dice) -> Result<NetworkFiles, PrepareError> {
    let key = files.key("signer", dice)?;
    files.write("provisioning.jwt", &mint::provisioning_token(&order(settings, false, dice), &key), 0o600)?;
    let configuration = [
        ("identity", "$identity"),
        ("loglevel", "info"),
        ("plugin.choria.middleware_hosts", settings.broker.as_str()),
        ("plugin.choria.server.provision", "false"),
        ("plugin.choria.use_srv", "false"),
        ("plugin.security.provider", "file"),
    ];
    let helper = files.write("helper.sh", &helper(&configuration), 0o755)?;
    static_helpers(files, &configuration)?;
    let choria = "identity = provisioner.example.net\nplugin.choria.use_srv = false\nplugin.security.provider = file\n";
    let choria = format!("{choria}plugin.choria.middleware_hosts = nats://{}\n", settings.broker);
    let choria_config = files.write("choria.cfg", &choria, 0o644)?;
    let mut yaml = yaml(settings, &helper);
    let dir = files.dir.display();
    let _ = write!(
        yaml,
        "choria_insecure: true\njwt_verify_cert: {dir}/signer.public\njwt_signing_key: {dir}/signer.seed\n\
         features:\n  jwt: true\n  ed25519: true\n"
    );
    let config = files.write("provisioner.yaml", &yaml, 0o600)?;
    Ok(NetworkFiles { dir: files.dir.clone(), config, choria_config, helper })
}

fn issuer(files: &Files, settings: &PrepareSettings, dice: &mut Dice) -> Result<NetworkFiles, PrepareError> {
    let issuer = files.key("issuer", dice)?;
    let signer = files.key("signer", dice)?;
    let client = ClientOrder {
        caller: "choria=provisioner_signer".to_owned(),
        public_key: signer.verifying_key().to_bytes(),
        from: clock::now(),
        valid_seconds: 365 * 86_400,
        id: dice.bytes16(),
    };
    files.write("signer.jwt", &mint::client_token(&client, &issuer), 0o600)?;
    files.write(
        "provisioning.jwt",
        &mint::provisioning_token(&order(settings, true, dice), &issuer),
        0o600,
    )?;
    let public = hex::encode(issuer.verifying_key().to_bytes());
    let configuration = [
        ("identity", "$identity"),
        ("loglevel", "info"),
        ("plugin.choria.middleware_hosts", settings.broker.as_str()),
        ("plugin.choria.server.provision", "false"),
        ("plugin.choria.use_srv", "false"),
        ("plugin.security.choria.seed_file", "/etc/choria/server.seed"),
        ("plugin.security.choria.token_file", "/etc/choria/server.jwt"),
        ("plugin.security.issuer.choria.public", public.as_str()),
        ("plugin.security.issuer.names", "choria"),
        ("plugin.security.provider", "choria"),
    ];
    let helper = files.write("helper.sh", &helper(&configuration), 0o755)?;
    static_helpers(files, &configuration)?;
    let dir = files.dir.display();
    let choria = format!(
        "identity = provisioner_signer\nplugin.choria.middleware_hosts = nats://{}\nplugin.choria.use_srv = false\n\
         plugin.security.provider = choria\nplugin.security.choria.token_file = {dir}/signer.jwt\n\
         plugin.security.choria.seed_file = {dir}/signer.seed\n",
        settings.broker
    );
    let choria_config = files.write("choria.cfg", &choria, 0o644)?;
    let mut yaml = yaml(settings, &helper);
    let _ = write!(
        yaml,
        "broker_provisioning_password: provSecret\njwt_verify_cert: {dir}/issuer.public\n\
         jwt_signing_key: {dir}/signer.seed\njwt_signing_token: {dir}/signer.jwt\n\
         features:\n  jwt: true\n  ed25519: true\n"
    );
    let config = files.write("provisioner.yaml", &yaml, 0o600)?;
    Ok(NetworkFiles { dir: files.dir.clone(), config, choria_config, helper })
}

/// What both networks' YAML files have in common.
fn yaml(settings: &PrepareSettings, helper: &Path) -> String {
    let mut text = format!(
        "interval: 1m\nlogfile: stderr\nloglevel: info\nhelper: {}\ntoken: {}\nsite: emulated\n",
        helper.display(),
        json!(settings.token)
    );
    if let Some(workers) = settings.workers {
        let _ = writeln!(text, "workers: {workers}");
    }
    if let Some(port) = settings.monitor_port {
        let _ = writeln!(text, "monitor_port: {port}");
    }
    text
}

/// What the simplest helpers there are answer for every server, for measurements: `static.sh` reads its request and does not
/// look at it; `decision.json` is for whoever answers without a process of its own.
fn static_helpers(files: &Files, configuration: &[(&str, &str)]) -> Result<(), PrepareError> {
    let members = configuration.iter().filter(|(key, _)| *key != "identity");
    let members: serde_json::Map<_, _> =
        members.map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let decision = json!({"defer": false, "configuration": members}).to_string();
    files.write("decision.json", &decision, 0o644)?;
    files.write("static.sh", &format!("#!/bin/sh\ncat >/dev/null; echo '{decision}'\n"), 0o755)?;
    Ok(())
}

/// A helper in plain shell. It uses nothing but builtins, so a run costs one process.
fn helper(configuration: &[(&str, &str)]) -> String {
    let members: Vec<String> =
        configuration.iter().map(|(key, value)| format!("    \"{key}\": \"{value}\"")).collect();
    format!(
        r#"#!/bin/sh
# Decides what a server gets. The request arrives as one JSON object on stdin, the answer goes to stdout.
request=""
while IFS= read -r line || [ -n "$line" ]; do request="$request$line"; done

# The identity is the first member of the request.
identity=${{request#*\"identity\":\"}}
identity=${{identity%%\"*}}

printf '%s\n' "{{
  \"defer\": false,
  \"msg\": \"configured by the sample helper\",
  \"configuration\": {{
{}
  }}
}}"
"#,
        members.join(",\n").replace('"', "\\\"")
    )
}

/// Protocol 1 signed with the provisioner's certificate. The servers' requests are signed by the helper, with the files of the
/// authority that also stands behind the broker's certificate.
fn x509(files: &Files, settings: &PrepareSettings, dice: &mut Dice) -> Result<NetworkFiles, PrepareError> {
    let key = files.key("signer", dice)?;
    files.write("provisioning.jwt", &mint::provisioning_token(&order(settings, false, dice), &key), 0o600)?;
    // Written again beside a broker that runs already, the files must go on fitting its certificate.
    if !files.dir.join("ca.key").exists() {
        let issued = authority::establish()?;
        for (name, pair) in
            [("ca", issued.authority), ("broker", issued.broker), ("provisioner", issued.provisioner)]
        {
            files.write(&format!("{name}.pem"), &pair.certificate, 0o644)?;
            files.write(&format!("{name}.key"), &pair.key, 0o600)?;
        }
    }
    let dir = files.dir.display();
    let program = std::env::current_exe()
        .map_err(|source| PrepareError::Write { path: files.dir.join("helper.sh"), source })?;
    let script = format!("#!/bin/sh\nexec '{}' bench --sign-as '{dir}'\n", program.display());
    let helper = files.write("helper.sh", &script, 0o755)?;
    let port = settings.broker.rsplit_once(':').map_or("4222", |(_, port)| port);
    let choria = format!(
        "identity = provisioner.mcollective\nplugin.choria.use_srv = false\nplugin.security.provider = file\n\
         plugin.choria.middleware_hosts = nats://localhost:{port}\n\
         plugin.security.file.certificate = {dir}/provisioner.pem\nplugin.security.file.key = {dir}/provisioner.key\n\
         plugin.security.file.ca = {dir}/ca.pem\n"
    );
    let choria_config = files.write("choria.cfg", &choria, 0o644)?;
    let mut yaml = yaml(settings, &helper);
    let _ = write!(
        yaml,
        "broker_provisioning_password: provSecret\njwt_verify_cert: {dir}/signer.public\nfeatures:\n  jwt: true\n  pki: true\n"
    );
    let config = files.write("provisioner.yaml", &yaml, 0o600)?;
    Ok(NetworkFiles { dir: files.dir.clone(), config, choria_config, helper })
}

fn broker(files: &Files, settings: &PrepareSettings) -> Result<PathBuf, PrepareError> {
    let dir = files.dir.join("x509");
    let text = format!(
        "listen: {}\nallow_non_tls: true\nmax_connections: 120000\nmax_pending: 256MB\ntls {{\n  cert_file: {}\n  key_file: {}\n  timeout: 30\n}}\n",
        json!(settings.broker),
        json!(dir.join("broker.pem")),
        json!(dir.join("broker.key"))
    );
    files.write("nats-server.conf", &text, 0o600)
}

/// A Choria broker that trusts the issuer of the issuer network. Its streams have one replica, because a broker that has to
/// count its peers waits up to a minute before it makes them.
fn choria_broker(
    files: &Files,
    settings: &PrepareSettings,
    dice: &mut Dice,
) -> Result<PathBuf, PrepareError> {
    let read = |name: &str| {
        let path = files.dir.join(name);
        std::fs::read_to_string(&path).map_err(|source| PrepareError::Write { path, source })
    };
    let mut seed = zeroize::Zeroizing::new([0_u8; 32]);
    // Written a moment ago.
    let _ = hex::decode_to_slice(zeroize::Zeroizing::new(read("issuer.seed")?).trim(), seed.as_mut());
    let issuer = SigningKey::from_bytes(&seed);
    let key = files.key("broker", dice)?;
    let order = ClientOrder {
        caller: "localhost".to_owned(),
        public_key: key.verifying_key().to_bytes(),
        from: clock::now(),
        valid_seconds: 365 * 86_400,
        id: dice.bytes16(),
    };
    files.write("broker.jwt", &mint::broker_token(&order, &issuer), 0o600)?;
    let dir = files.dir.display();
    let (host, port) = settings.broker.rsplit_once(':').unwrap_or((&settings.broker, "4222"));
    let x509 = files.dir.with_file_name("x509");
    let x509 = x509.display();
    let mut text = format!(
        "identity = localhost\nloglevel = warn\nplugin.choria.use_srv = false\nplugin.choria.broker_network = true\n\
         plugin.choria.network.listen_address = {host}\nplugin.choria.network.client_port = {port}\n\
         plugin.choria.network.provisioning.client_password = provSecret\nplugin.choria.network.tls_timeout = 30s\n\
         plugin.choria.network.auth_timeout = 30s\nplugin.choria.network.system.user = system\n\
         plugin.choria.network.system.password = system\nplugin.choria.network.stream.store = {dir}/streams\n\
         plugin.security.provider = choria\nplugin.security.choria.certificate = {x509}/broker.pem\n\
         plugin.security.choria.key = {x509}/broker.key\nplugin.security.choria.seed_file = {dir}/broker.seed\n\
         plugin.security.choria.token_file = {dir}/broker.jwt\nplugin.security.issuer.names = choria\n\
         plugin.security.issuer.choria.public = {}\n",
        hex::encode(issuer.verifying_key().to_bytes())
    );
    for stream in ["event", "machine", "advisory", "executor", "leader_election"] {
        let _ = writeln!(text, "plugin.choria.network.stream.{stream}_replicas = 1");
    }
    files.write("broker.conf", &text, 0o600)
}
