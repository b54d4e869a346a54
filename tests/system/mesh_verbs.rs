//! `quartermaster mesh …` from an empty folder to a machine's module, against a real broker that lets in whom the folder says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quartermaster_node::client::bus::{Bus, BusSettings};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::report::{Outcome, Report};
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};

use super::support::{Broker, BrokerOptions};

/// An operator's machine: a folder of keys, a catalogue, and the broker.
struct Operator {
    dir: tempfile::TempDir,
    servers: Option<String>,
}

impl Operator {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), servers: None }
    }

    fn at(&self, rest: &str) -> PathBuf {
        self.dir.path().join(rest)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.arg("mesh").args(line.split(' ')).arg("--site").arg(self.at("mesh"));
        if let Some(servers) = &self.servers {
            command.args(["--servers", servers]);
        }
        command.env_remove("QM_MESH_SERVERS").current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a verb that must end with this code; what it printed and what it said.
    #[track_caller]
    fn ends(&self, line: &str, code: i32) -> (String, String) {
        let output = self.run(line);
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(code), "mesh {line}\n{out}{err}");
        (out, err)
    }

    #[track_caller]
    fn done(&self, line: &str) -> String {
        self.ends(line, 0).0
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        let text = self.done(&format!("{line} --json"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[track_caller]
    fn fails(&self, line: &str, code: i32, says: &str) {
        let (out, err) = self.ends(line, code);
        assert!(err.contains(says), "mesh {line}\n{out}{err}");
    }

    fn options(&self) -> BrokerOptions {
        BrokerOptions::new().jetstream().extra(&std::fs::read_to_string(self.at("mesh/broker.conf")).unwrap())
    }

    fn module(&self, name: &str, file: &str, template: &str) {
        let folder = self.at("catalogue").join(name);
        std::fs::create_dir_all(folder.join("templates")).unwrap();
        std::fs::write(folder.join("module.json"), file).unwrap();
        std::fs::write(folder.join("templates/a"), template).unwrap();
    }
}

const WEB: &str = r#"{"files":[{"path":"/etc/web.conf","template":"a","owner-at-runtime":"owned"}],
  "provisions":[{"provision":"sql","provider":"db","credential":"pair","name":"pw"}]}"#;
const DB: &str = r#"{"files":[{"path":"/etc/db.json","template":"a","owner-at-runtime":"owned","mode":"0600"}],"provides":["sql"]}"#;

/// Keys, then a broker that was started with them, then buckets; a second time nothing is made.
#[test]
fn a_mesh_begins_with_an_empty_folder() {
    let mut operator = Operator::new();
    operator.fails("node add web1", 4, "is no folder of a mesh: `quartermaster mesh init` makes one");
    let first = operator.json("init");
    assert!(first["pin"].as_str().unwrap().starts_with('U'), "{first}");
    operator.fails("report", 1, "where is the broker?");
    operator.done("node add web1 --provider db");
    let Some(broker) = operator.options().start() else { return };
    operator.servers = Some(broker.url());
    let made = operator.json("init --box-key KEY");
    assert_eq!(made["pin"], first["pin"]);
    assert_eq!(
        (made["made"].as_array().unwrap().len(), made["registered"].as_array().unwrap().len()),
        (8, 13)
    );
    operator.servers = None;
    let again = operator.json("init");
    assert_eq!(again["registered"], json!([]), "what it was told the first time is remembered");
    assert!(again["made"].as_array().unwrap().iter().all(|made| made["new"] == false), "{again}");
    assert_eq!(operator.json("show"), json!({"modules": [], "registry": []}));
    drop(broker);
    operator.fails("show", 5, "cannot be reached");
}

/// A mesh of a machine for a web app and one for its provider, and its broker; none, said in one line, where there is no broker.
fn web_and_db() -> Option<(Operator, Broker)> {
    let mut operator = Operator::new();
    operator.done("init");
    operator.done("node add web1");
    operator.done("node add db1 --provider db");
    let broker = operator.options().start()?;
    operator.servers = Some(broker.url());
    operator.done("init");
    Some((operator, broker))
}

/// T38, D31: checked, published, assigned, given its values, bound, looked at, and taken off.
#[test]
fn a_module_goes_from_the_catalogue_to_a_machine() {
    let Some((operator, _broker)) = web_and_db() else { return };
    operator.module("web", WEB, "port ${config:port} ${bound:sql:host} ${port:admin} ${secret:pw}\n");
    operator.module("db", DB, "${consumers:sql}");
    let checked = operator.json("check catalogue");
    assert_eq!((&checked["ok"], checked["files"].as_array().unwrap().len()), (&json!(true), 2), "{checked}");

    // What the catalogue refuses reaches no machine.
    operator.module("bad", &DB.replace("0600", "0640"), "${consumers:sql}");
    operator.ends("check catalogue/bad", 1);
    operator.fails(
        "assign db1 db --module catalogue/bad/module.json --templates catalogue/bad/templates",
        1,
        "refused: ",
    );
    operator.fails("assign web1 web --module catalogue/web/module.json", 1, "where do the templates lie?");
    operator.fails("assign web1 web --module catalogue/none.json", 4, "none.json");
    operator.ends("assign web1 web --module catalogue/web/module.json --set x.y=1", 2);
    assert_eq!(operator.json("show")["modules"], json!([]));

    let published = operator.json("publish catalogue/web/templates");
    assert_eq!(operator.json("publish catalogue/web/templates")["new"], false);
    let reference = published["reference"].as_str().unwrap();
    assert!(reference.starts_with("nats-object:mesh-templates/web-"), "{published}");
    let assigned = operator.json(&format!(
        "assign web1 web --module catalogue/web/module.json --templates {reference} --set port.admin=81"
    ));
    assert_eq!(assigned["digest"], published["digest"]);
    operator.done("assign db1 db --module catalogue/db/module.json --templates catalogue/db/templates");
    operator.done("assign db1 bare");

    operator.done("config set web1 web port 3000");
    operator.done("config set web1 web name a-b");
    operator.fails("config set web1 web port null", 1, "config unset");
    operator.done("config unset web1 web name");
    operator.done(r#"bind web1 web sql {"state":"bound","values":{"host":"db1.example"}}"#);
    operator.done("bind web1 web sql --refuse full");
    operator.done("bind web1 web sql --remove");
    operator.fails("bind web1 web other --remove", 1, "no plan of web on web1 has the provision `other`");
    operator.fails("bind web1 web sql {}", 1, "state: ");

    let shown = operator.json("show web1 web");
    let web = &shown["modules"][0];
    assert_eq!(web["provisioning"]["placement"]["port"]["admin"], 81, "{web}");
    assert_eq!(
        (&web["disbelieved"], &web["fault"], &web["serial"]),
        (&Value::Null, &Value::Null, &assigned["serial"])
    );
    assert!(operator.done("show").contains("not filled"), "the one without a plan");
    assert!(operator.done("show db1 db").contains("provides   sql"));
    operator.ends("show web1 none", 1);
    assert_eq!((operator.json("report"), operator.json("needs")), (json!([]), json!([])));

    operator.done("unassign web1 web");
    operator.fails("unassign web1 web", 1, "web is not assigned to web1");
}

/// What is printed for scripts by the verbs that change something.
#[test]
fn verbs_say_for_scripts_what_they_did() {
    let Some((operator, _broker)) = web_and_db() else { return };
    operator.module("web", WEB, "a");
    operator.module("db", DB, "${consumers:sql}");
    operator.fails(
        "bind web1 web sql --refuse full --provider db",
        1,
        "there is no place for web1.web.sql in db_bound on the broker: `quartermaster mesh init` makes what every mesh has, and \
         assigning a provider what is its own",
    );
    operator.done("assign db1 db --module catalogue/db/module.json --templates catalogue/db/templates");
    operator.done("assign web1 web --module catalogue/web/module.json --templates catalogue/web/templates");
    // As JSON on one line, but for the revision, which must be a number.
    let said = |line: &str, code: i32| {
        let (out, _) = operator.ends(&format!("{line} --json"), code);
        assert_eq!(out.lines().count(), 1, "{out}");
        let mut said: Value = serde_json::from_str(&out).unwrap();
        let revision = said.as_object_mut().unwrap().remove("revision").unwrap();
        assert_eq!(revision.is_u64(), code == 0, "{out}");
        said
    };
    let big = "123456789012345678901234567890";
    let (out, _) = operator.ends(&format!("config set web1 web port {big} --json"), 0);
    assert!(
        out.starts_with(&format!(r#"{{"node":"web1","module":"web","key":"port","value":{big},"#)),
        "{out}"
    );
    let value = |value: Value| json!({"node": "web1", "module": "web", "key": "title", "value": value});
    assert_eq!(said("config set web1 web title ours", 0), value(json!("ours")));
    assert_eq!(said("config unset web1 web title", 0), value(Value::Null));
    let bound = |state: &str| {
        json!({
            "node": "web1", "module": "web", "provision": "sql", "local": null, "state": state, "provider": "db",
            "account": "provider.db1.db",
        })
    };
    let entry = r#"{"state":"bound","values":{"host":"db1.example"}}"#;
    assert_eq!(said(&format!("bind web1 web sql {entry}"), 0), bound("bound"));
    assert_eq!(said("bind web1 web sql --refuse full", 0), bound("refused"));
    assert_eq!(said("bind web1 web sql --remove", 0), bound("unbound"));
    let shown = operator.json("show");
    assert_eq!(shown["modules"][1]["state"], "not heard of", "{shown}");
    let gone = |removed: bool| json!({"node": "web1", "module": "web", "removed": removed});
    assert_eq!(said("unassign web1 web", 0), gone(true));
    assert_eq!(said("unassign web1 web", 1), gone(false));
}

/// Where `node rotate` and `remove` gave the broker other keys, the old ones open nothing any more.
#[test]
fn a_machine_that_is_shut_out_stays_out() {
    let mut operator = Operator::new();
    operator.done("init");
    operator.done("node add db1 --provider db");
    let Some(mut broker) = operator.options().start() else { return };
    operator.servers = Some(broker.url());
    operator.done("init");
    operator.module("db", DB, "${consumers:sql}");
    operator.done("assign db1 db --module catalogue/db/module.json --templates catalogue/db/templates");
    let bound = "bind web1 web sql --refuse full --provider db";
    operator.done(bound);
    let old = std::fs::read(operator.at("mesh/accounts/provider.db1.db")).unwrap();
    operator.done("node rotate db1");
    operator.fails(bound, 5, "does not let provider.db1.db in");
    broker.restart_with(operator.options());
    operator.servers = Some(broker.url());
    operator.done(bound);
    operator.done("node remove db1");
    operator.fails(bound, 4, "node add NODE --provider MODULE");
    operator.fails("node remove db1", 1, "has no account here");
    std::fs::write(operator.at("mesh/accounts/provider.db1.db"), old).unwrap();
    operator.fails(bound, 5, "does not let provider.db1.db in");
    operator.fails("node add a/b", 2, "the machine's name");
    let seeds = |path: &Path| std::fs::read_to_string(path).unwrap().contains("nkey: S");
    assert!(!seeds(&operator.at("mesh/broker.conf")), "the broker is told public keys alone");
}

/// D31: a client's credential also lies in the vault, under the name by which a plan of that machine asks for it.
#[test]
fn the_vault_keeps_a_machines_credential() {
    let operator = Operator::new();
    operator.done("init");
    operator.fails("node add web1 --vault none.sock", 7, "no vault answers");
    // Stands in for the vault's side of the socket.
    let vault = UnixListener::bind(operator.at("vault.sock")).unwrap();
    let answers = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for reply in [r#"{"version":1}"#, r#"{"error":"no"}"#, r#"{"deleted":"x"}"#] {
            let (mut stream, _) = vault.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            writeln!(stream, "{reply}").unwrap();
            asked.push(serde_json::from_str::<Value>(&line).unwrap());
        }
        asked
    });
    operator.done("node add web1 --vault vault.sock");
    operator.fails("node rotate web1 --vault vault.sock", 8, "the vault refuses: no");
    let seed = std::fs::read(operator.at("mesh/accounts/provisioner.web1")).unwrap();
    operator.done("node remove web1 --vault vault.sock");
    let asked = answers.join().unwrap();
    let name = "own/mesh-provisioner-client/provisioner-broker/web1";
    let words: Vec<_> = asked.iter().map(|asked| (asked["op"].as_str().unwrap(), &asked["name"])).collect();
    assert_eq!(words, [("set", &json!(name)), ("set", &json!(name)), ("delete", &json!(name))]);
    assert_eq!(STANDARD.decode(asked[1]["value"].as_str().unwrap()).unwrap(), seed);
}

/// What is reported while somebody watches is shown as it comes, and ends the watch where that was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn reports_are_watched() {
    let mut operator = Operator::new();
    operator.done("init");
    operator.done("node add web1");
    let Some(broker) = operator.options().start() else { return };
    operator.servers = Some(broker.url());
    operator.done("init");
    let settings = BusSettings {
        servers: broker.url(),
        account: Account::Provisioner { node: "web1".to_owned() },
        credentials: Some(operator.at("mesh/accounts/provisioner.web1")),
    };
    let client = Bus::connect_once(settings).await.unwrap();
    let report = |module: &str, outcome| Report {
        node: "web1".to_owned(),
        module: module.to_owned(),
        run: "r".to_owned(),
        revision: 1,
        at: WallClock::from_seconds(1_795_975_200),
        outcome,
    };
    // One is there already; once it is shown, the watch listens.
    let kept = report("kept", Outcome::Applied { files: vec![], programs: vec![] });
    let subject = key::kv_subject(key::APPLIED, "web1.kept");
    client.client().request(subject, kept.encode().into()).await.unwrap();
    let mut watch = operator
        .command("report web1 --watch --json --fail-on failed")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || Report::read(lines.next().unwrap().unwrap().as_bytes()).unwrap();
    assert_eq!(next(), kept);
    let said = report("web", Outcome::failed("why", None));
    let other = Report { node: "web2".to_owned(), ..said.clone() };
    for told in [&other, &said] {
        let subject = key::applied_subject("web1", &told.module);
        client.client().publish(subject, told.encode().into()).await.unwrap();
    }
    client.client().flush().await.unwrap();
    assert_eq!(next(), said, "that of another machine is not shown");
    assert_eq!(watch.wait().unwrap().code(), Some(1));
    operator.ends("report --fail-on failed", 0);
    operator.ends("report --fail-on applied,failed", 1);
}
