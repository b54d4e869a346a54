//! HashiCorp Vault's own core as a process (`tests/node/kv-lab`), for whoever asks for it with `QM_KV_LAB=1`: its Go modules are large
//! and take minutes to build for the first time.
#![allow(dead_code, reason = "several test programs share this and each uses a part of it")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The mount of the key-value engine.
pub const MOUNT: &str = "secret";
/// What docs/node.md says that the vault needs there.
const POLICY: &str = r#"path "secret/*" { capabilities = ["create", "read", "update", "delete", "list"] }"#;

/// A running core with a key-value engine of version 2, a login by `AppRole` and a policy for the vault; killed when dropped.
pub struct KvLab {
    process: Child,
    /// It ends when this is closed, however the test ends.
    _alive: Option<ChildStdin>,
    /// Where it listens, in the clear.
    pub address: String,
    /// Where it listens with the certificate for tests, if that was wanted.
    pub tls: Option<String>,
    root: String,
    unseal: String,
}

impl KvLab {
    /// A core for this test; none, and a line that says so, where nobody asked for one.
    pub fn start(certificate: &[PathBuf]) -> Option<Self> {
        let program = program()?;
        let mut process = Command::new(program)
            .args(certificate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| ready[name].as_str().map(str::to_owned);
        let lab = Self {
            _alive: process.stdin.take(),
            process,
            address: text("address").unwrap(),
            tls: text("tls"),
            root: text("token").unwrap(),
            unseal: text("unseal").unwrap(),
        };
        lab.must("POST", &format!("sys/mounts/{MOUNT}"), &json!({"type": "kv", "options": {"version": "2"}}));
        lab.must("POST", "sys/auth/approle", &json!({"type": "approle"}));
        lab.must("PUT", "sys/policies/acl/mesh-vault", &json!({ "policy": POLICY }));
        let end = Instant::now() + Duration::from_secs(20);
        // A new engine makes itself ready first.
        while lab.ask("GET", &format!("{MOUNT}/data/none"), &Value::Null).0 != 404 {
            assert!(Instant::now() < end, "the key-value engine does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(lab)
    }

    /// Asks as its administrator; answers status and body.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let host = self.address.strip_prefix("http://").unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut connection = TcpStream::connect(host).unwrap();
        // The older version of the protocol, in which an answer is not cut into chunks.
        let request = format!(
            "{method} /v1/{path} HTTP/1.0\r\nHost: {host}\r\nX-Vault-Token: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.root,
            body.len()
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// The same; panics unless it is done. Answers what is in the body.
    #[track_caller]
    pub fn must(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, said) = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {said}");
        said
    }

    /// Somebody writes a value of their own there.
    #[track_caller]
    pub fn write(&self, name: &str, value: &str) {
        self.must("POST", &format!("{MOUNT}/data/{name}"), &json!({"data": {"value": value}}));
    }

    /// A token of the vault's policy, which lives so long.
    pub fn token(&self, life: &str) -> String {
        let made = self.must(
            "POST",
            "auth/token/create",
            &json!({"policies": ["mesh-vault"], "ttl": life, "explicit_max_ttl": life}),
        );
        made["auth"]["client_token"].as_str().unwrap().to_owned()
    }

    /// Ends a token before its time.
    pub fn revoke(&self, token: &str) {
        self.must("POST", "auth/token/revoke", &json!({ "token": token }));
    }

    /// Ends every token that an `AppRole` has handed out.
    pub fn revoke_logins(&self) {
        self.must("PUT", "sys/leases/revoke-force/auth/approle", &json!({}));
    }

    /// An `AppRole` of the vault's policy whose tokens live so long; answers its id.
    pub fn role(&self, life: &str) -> String {
        let more = json!({"token_policies": ["mesh-vault"], "token_ttl": life, "token_max_ttl": life});
        self.must("POST", "auth/approle/role/mesh", &more);
        let id = self.must("GET", "auth/approle/role/mesh/role-id", &Value::Null);
        id["data"]["role_id"].as_str().unwrap().to_owned()
    }

    /// A role whose tokens live so long, and a secret id of it.
    pub fn secret_id_of(&self, life: &str) -> String {
        self.role(life);
        self.secret_id()
    }

    /// Another secret id of the role.
    pub fn secret_id(&self) -> String {
        let made = self.must("POST", "auth/approle/role/mesh/secret-id", &json!({}));
        made["data"]["secret_id"].as_str().unwrap().to_owned()
    }

    /// Takes a secret id back.
    pub fn destroy(&self, secret_id: &str) {
        self.must("POST", "auth/approle/role/mesh/secret-id/destroy", &json!({ "secret_id": secret_id }));
    }

    /// Seals it.
    pub fn seal(&self) {
        self.must("PUT", "sys/seal", &json!({}));
    }

    /// Unseals it.
    pub fn unseal(&self) {
        let said = self.must("PUT", "sys/unseal", &json!({ "key": self.unseal }));
        assert_eq!(said["sealed"], false);
    }

    /// A file of a credential in this folder that only its owner may read.
    pub fn credential(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}

impl Drop for KvLab {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The built program.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if std::env::var("QM_KV_LAB").as_deref() != Ok("1") {
            eprintln!("SKIPPED: HashiCorp Vault itself is met with QM_KV_LAB=1, which needs Go and some minutes at first");
            return None;
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = here.ancestors().map(|folder| folder.join("tests/node/kv-lab")).find(|lab| lab.exists());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kv-lab");
        fs::create_dir_all(&folder).unwrap();
        let fresh = folder.join(format!("kv-lab.{}", std::process::id()));
        let built = Command::new("go")
            .args(["build", "-buildvcs=false", "-o"])
            .args([fresh.as_os_str(), ".".as_ref()])
            .current_dir(source.unwrap())
            .status();
        assert!(built.is_ok_and(|status| status.success()), "tests/node/kv-lab does not build");
        let program = folder.join("kv-lab");
        fs::rename(&fresh, &program).unwrap();
        Some(program)
    });
    built.as_deref()
}
