//! What an operator does with the mesh, on a real broker, each verb with the account of the program it stands in for.

#![cfg(test)]

use std::sync::Arc;

use async_nats::HeaderMap;
use quartermaster_node::archive::{self, Templates};
use quartermaster_node::client::bus::Bus;
use quartermaster_node::client::templates::Fetcher;
use quartermaster_node::mesh::{
    Binding, Cause, MeshError, Order, Published, Selection, Signer, assign, assign_unchecked, bind, bundle,
    modules, needs, prepare, publish_archive, register, registry_faults, reports, rows, set_config, unassign,
    unbind, unset_config,
};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::bound::{Bound, Served};
use quartermaster_proto::mesh::need::Need;
use quartermaster_proto::mesh::plan::{Digest, Placement, read_assignment, read_module_file};
use quartermaster_proto::mesh::report::{Outcome, Report};
use quartermaster_proto::mesh::value::Json;
use quartermaster_proto::mesh::{Kind, key};
use quartermaster_proto::time::WallClock;
use support::Broker;

mod support;

const NOW: WallClock = WallClock::from_seconds(1_795_975_200);

fn client() -> Account {
    Account::Provisioner { node: "web1".to_owned() }
}

fn provider() -> Account {
    Account::Provider { node: "db1".to_owned(), module: "db".to_owned() }
}

struct Mesh {
    broker: Broker,
    controller: Bus,
    signer: Signer,
}

impl Mesh {
    async fn start() -> Option<Self> {
        let accounts = [Account::Controller, Account::Config, client(), provider()];
        let broker = Broker::start(&accounts)?;
        let controller = broker.connect(&Account::Controller).await;
        Some(Self { broker, controller, signer: Signer::from_bytes([7; 32]).unwrap() })
    }

    async fn initialised() -> Option<Self> {
        let mesh = Self::start().await?;
        prepare(&mesh.controller, 1).await.unwrap();
        register(&mesh.controller, &mesh.signer, None, false).await.unwrap();
        Some(mesh)
    }

    async fn published(&self, content: &str) -> Published {
        let bytes = bundle(&templates(content)).unwrap();
        publish_archive(&self.controller, "web.tar", bytes).await.unwrap()
    }

    async fn assigned(&self, node: &str, module: &str, file: &str) -> Result<u64, MeshError> {
        let file = Some(read_module_file(file.as_bytes()).unwrap().0);
        let order = Order {
            node: node.to_owned(),
            module: module.to_owned(),
            file,
            placement: Placement::new(),
            reference: None,
        };
        let done = assign(&self.controller, &self.signer, &order, NOW).await?;
        assert_eq!(done.shared, []);
        Ok(done.serial)
    }

    async fn keys(&self, bucket: &str) -> Vec<String> {
        let found = rows(&self.controller, bucket, ">").await.unwrap();
        found.into_iter().filter(|row| row.value.is_some()).map(|row| row.key).collect()
    }
}

fn templates(content: &str) -> Templates {
    [("a".to_owned(), Arc::from(content.as_bytes()))].into()
}

fn module(path: &str, more: &str) -> String {
    format!(
        r#"{{"templates":{{"reference":"nats-object:mesh-templates/web.tar"}},"files":[{{"path":"{path}","template":"a","owner-at-runtime":"owned","mode":"0600"}}]{more}}}"#
    )
}

/// D4, D31: buckets, streams and thirteen signed entries; done twice, nothing is done again.
#[tokio::test]
async fn a_mesh_is_made_once() {
    let Some(mesh) = Mesh::start().await else { return };
    let missing = register(&mesh.controller, &mesh.signer, None, false).await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "there is no bucket mesh-provisioner_registry on the broker: `quartermaster mesh init` makes what every mesh has, and \
         assigning a provider what is its own"
    );
    let made = prepare(&mesh.controller, 1).await.unwrap();
    assert_eq!((made.len(), made.iter().all(|made| made.is_new)), (8, true), "{made:?}");
    let again = prepare(&mesh.controller, 1).await.unwrap();
    assert!(again.iter().all(|made| !made.is_new && made.differs.is_none()), "{again:?}");

    let key = mesh.signer.public();
    assert_eq!(registry_faults(&mesh.controller, &key).await.unwrap().len(), 13);
    let registered = |box_key, anew| register(&mesh.controller, &mesh.signer, box_key, anew);
    assert_eq!(registered(None, false).await.unwrap(), Kind::ALL);
    assert_eq!(registry_faults(&mesh.controller, &key).await.unwrap(), []);
    assert_eq!(registered(None, false).await.unwrap(), []);
    assert_eq!(registered(Some("KEY"), false).await.unwrap(), [Kind::Secret, Kind::Consumers]);
    assert_eq!(registered(None, false).await.unwrap(), [], "the vault's key stays");
    // Somebody else's entry is not believed, so it is written again.
    let other = Signer::from_bytes([8; 32]).unwrap();
    register(&mesh.controller, &other, None, true).await.unwrap();
    assert_eq!(registry_faults(&mesh.controller, &key).await.unwrap().len(), 13);
    assert_eq!(registered(None, false).await.unwrap(), Kind::ALL);
}

/// D9: what is published is what a client of any machine fetches.
#[tokio::test]
async fn templates_are_published_and_fetched() {
    let Some(mesh) = Mesh::initialised().await else { return };
    let long = "x".repeat(300_000);
    let first = mesh.published(&long).await;
    assert_eq!(first.reference.to_string(), "nats-object:mesh-templates/web.tar");
    assert!(first.is_new);
    assert!(!mesh.published(&long).await.is_new, "the same again is left alone");
    let fetcher = Fetcher::new(Some(mesh.broker.connect(&client()).await));
    let bytes = fetcher.fetch(&first.reference).await.unwrap();
    assert_eq!((Digest::of(&bytes), archive::read(&bytes).unwrap()), (first.digest, templates(&long)));
    let second = mesh.published("y").await;
    let bytes = fetcher.fetch(&second.reference).await.unwrap();
    assert_eq!(archive::read(&bytes).unwrap(), templates("y"));
    let refused = publish_archive(&mesh.controller, "web.tar", b"no archive".to_vec()).await.unwrap_err();
    assert_eq!(refused.cause(), Cause::Refused);
}

/// D3, D21, D31: an assignment is checked, signed, newer than the last one, and goes again.
#[tokio::test]
async fn a_module_is_assigned_and_taken_off() {
    let Some(mesh) = Mesh::initialised().await else { return };
    let file = module("/etc/a", "");
    let missing = mesh.assigned("web1.example", "web", &file).await.unwrap_err();
    assert!(matches!(missing, MeshError::Templates { .. }), "{missing}");
    let published = mesh.published("${config:port}").await;
    let first = mesh.assigned("web1.example", "web", &file).await.unwrap();
    let second = mesh.assigned("web1.example", "web", &file).await.unwrap();
    assert!(second > first);
    let all = Selection::default();
    let found = modules(&mesh.controller, &mesh.signer.public(), &all).await.unwrap();
    let [placed] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((placed.disbelieved.as_ref(), placed.fault(), placed.assignment.serial), (None, None, second));
    assert_eq!(placed.plan().unwrap().templates.digest, published.digest);
    assert_eq!(mesh.keys(key::ASSIGNMENTS).await, ["web1=2Eexample.web"]);

    // Without a plan it is assigned, and nothing of it is filled.
    let bare = Order {
        node: "web2".to_owned(),
        module: "web".to_owned(),
        file: None,
        placement: Placement::new(),
        reference: None,
    };
    assign(&mesh.controller, &mesh.signer, &bare, NOW).await.unwrap();
    let chosen = Selection { node: Some("web2".to_owned()), module: None };
    let found = modules(&mesh.controller, &mesh.signer.public(), &chosen).await.unwrap();
    assert_eq!(found.iter().map(|placed| placed.plan().is_some()).collect::<Vec<_>>(), [false]);

    assert!(unassign(&mesh.controller, "web1.example", "web").await.unwrap().is_some());
    assert_eq!(unassign(&mesh.controller, "web1.example", "web").await.unwrap(), None);
    assert_eq!(mesh.keys(key::ASSIGNMENTS).await, ["web2.web"]);
    assert!(mesh.assigned("web1.example", "web", &file).await.unwrap() >= first, "also after it was gone");
}

/// T38: what the catalogue refuses is not published, and is told in full.
#[tokio::test]
async fn what_can_never_be_right_is_published_to_nobody() {
    let Some(mesh) = Mesh::initialised().await else { return };
    mesh.published("${consumers:sql}\n${foo:x}\n").await;
    let refused = mesh.assigned("db1", "db", &module("/etc/a", "")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "refused: template `a`, line 1: consumers sql: the module does not provide this; template `a`, line 2: foo x: no such \
         kind of placeholder is known"
    );
    assert_eq!(refused.cause(), Cause::Refused);
    mesh.published("${consumers:sql}\n").await;
    let open = module("/etc/a", r#","provides":["sql"]"#).replace("0600", "0640");
    assert_eq!(mesh.assigned("db1", "db", &open).await.unwrap_err().cause(), Cause::Refused);
    let wrong = module("/etc/a", r#","provides":["sql"]"#)
        .replace("web.tar\"", &format!("web.tar\",\"digest\":\"{}\"", Digest::of(b"")));
    assert!(mesh.assigned("db1", "db", &wrong).await.unwrap_err().to_string().contains("templates.digest"));
    assert_eq!(mesh.assigned("a/b", "db", &open).await.unwrap_err().cause(), Cause::Refused);
    assert_eq!(mesh.keys(key::ASSIGNMENTS).await, Vec::<String>::new());
    // Past the catalogue, as a test may want it.
    let text = br#"{"node":"db1","module":"db","provisioning":{}}"#.to_vec();
    assign_unchecked(&mesh.controller, &mesh.signer, "db1", "db", text).await.unwrap();
    let found = modules(&mesh.controller, &mesh.signer.public(), &Selection::default()).await.unwrap();
    assert!(found[0].fault().is_some() && found[0].disbelieved.is_none(), "{found:?}");
}

/// D15, D31: config values as `mesh-config`, what a provider serves as its helper; each in keys that a client understands.
#[tokio::test]
async fn values_are_written_by_their_owners() {
    let Some(mesh) = Mesh::initialised().await else { return };
    let config = mesh.broker.connect(&Account::Config).await;
    let value = Json::read("9007199254740993").unwrap();
    set_config(&config, "web1", "web", "http.port", &value).await.unwrap();
    let found = rows(&mesh.controller, key::CONFIG, "web1.>").await.unwrap();
    assert_eq!(found[0].key, "web1.web.http=2Eport");
    assert_eq!(found[0].value.as_deref(), Some(b"9007199254740993".as_slice()));
    unset_config(&config, "web1", "web", "http.port").await.unwrap();
    assert_eq!(mesh.keys(key::CONFIG).await, Vec::<String>::new());

    let helper = mesh.broker.connect(&provider()).await;
    let binding =
        Binding { provider: "db", node: "web1", module: "web", provision: "sql", local: Some("main") };
    let served = Bound::Served(Served { user: Some(Json::string("web1")), ..Served::default() });
    let missing = bind(&helper, &binding, &served).await.unwrap_err();
    assert!(matches!(missing, MeshError::NoStream(_)), "{missing}");
    mesh.published("${consumers:sql}\n").await;
    mesh.assigned("db1", "db", &module("/etc/a", r#","provides":["sql"]"#)).await.unwrap();
    bind(&helper, &binding, &served).await.unwrap();
    let found = rows(&mesh.controller, "db_bound", ">").await.unwrap();
    assert_eq!(found[0].key, "web1.web.sql.main");
    assert_eq!(Bound::read(found[0].value.as_deref().unwrap()), Ok(served));
    unbind(&helper, &binding).await.unwrap();
    assert_eq!(mesh.keys("db_bound").await, Vec::<String>::new());
}

/// N5 to N7: an account that may not is told so, and nothing is written.
#[tokio::test]
async fn an_account_writes_only_what_its_row_says() {
    let Some(mesh) = Mesh::initialised().await else { return };
    let config = mesh.broker.connect(&Account::Config).await;
    let order = br#"{"node":"web1","module":"web","serial":1}"#.to_vec();
    let refused = assign_unchecked(&config, &mesh.signer, "web1", "web", order).await.unwrap_err();
    assert_eq!(refused.cause(), Cause::Away, "{refused}");
    assert!(refused.to_string().contains("does not let this account"), "{refused}");
    assert_eq!(mesh.keys(key::ASSIGNMENTS).await, Vec::<String>::new());
}

/// What a client wrote is shown: reports with their module, needs in order, those of a chosen machine alone.
#[tokio::test]
async fn what_clients_say_is_shown() {
    let Some(mesh) = Mesh::initialised().await else { return };
    let web1 = mesh.broker.connect(&client()).await;
    let stored = |bucket: &str, key: &str, body: Vec<u8>| {
        let context = async_nats::jetstream::new(web1.client().clone());
        let subject = key::kv_subject(bucket, key);
        async move {
            let stored = context.publish_with_headers(subject, HeaderMap::new(), body.into()).await.unwrap();
            stored.await.unwrap();
        }
    };
    let report = Report {
        node: "web1".to_owned(),
        module: "web".to_owned(),
        run: "r".to_owned(),
        revision: 1,
        at: NOW,
        outcome: Outcome::failed("why", None),
    };
    stored(key::APPLIED, "web1.web", report.encode()).await;
    stored(key::APPLIED, "web1.other", b"{}".to_vec()).await;
    for name in ["b", "a"] {
        let need = Need {
            node: "web1".to_owned(),
            module: "web".to_owned(),
            kind: "config".to_owned(),
            name: name.to_owned(),
            owner: None,
            by: vec![],
        };
        stored(key::NEEDS, &need.key().unwrap(), need.encode()).await;
    }
    let all = Selection::default();
    assert_eq!(reports(&mesh.controller, &all).await.unwrap(), std::slice::from_ref(&report));
    // As mesh-config, who may read needs.
    let config = mesh.broker.connect(&Account::Config).await;
    let found = needs(&config, &all).await.unwrap();
    assert_eq!(found.iter().map(|need| need.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let other = Selection { node: Some("web2".to_owned()), module: None };
    assert_eq!(
        (reports(&mesh.controller, &other).await.unwrap().len(), needs(&config, &other).await.unwrap().len()),
        (0, 0)
    );
    let (assignment, _) = read_assignment("web1.web", br#"{"node":"web1","module":"web"}"#).unwrap();
    assign_unchecked(&mesh.controller, &mesh.signer, "web1", "web", assignment.encode()).await.unwrap();
    let found = modules(&mesh.controller, &mesh.signer.public(), &all).await.unwrap();
    assert_eq!(found[0].report.as_ref(), Some(&report));
}
