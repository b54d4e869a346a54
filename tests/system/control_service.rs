//! The control service as any NATS client meets it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use quartermaster::emulate::FaultPlan;
use serde_json::{Value, json};

use super::control_schema::faults;
use super::control_site::{Instance, all, ask, by, client, good};
use super::prove_site::{PATIENCE, Site};
use super::support::{BrokerOptions, eventually};

const ONE: &str = "prov1.example.net";
const TWO: &str = "prov2.example.net";
const BAD: &str = "web3.example.net";

/// The published schemas by endpoint: request, answer, error.
async fn schemas(client: &async_nats::Client) -> BTreeMap<String, [Value; 3]> {
    let info = good(client, "$SRV.INFO.quartermaster", json!({})).await;
    assert_eq!(info["metadata"], json!({"site": "emulated", "instance": ONE}));
    let endpoints = info["endpoints"].as_array().unwrap();
    let of = |endpoint: &Value| {
        let read = |key: &str| serde_json::from_str(endpoint["metadata"][key].as_str().unwrap()).unwrap();
        let name = endpoint["name"].as_str().unwrap().to_owned();
        assert_eq!(endpoint["subject"], format!("quartermaster.{name}"));
        (name, ["request_schema", "response_schema", "error_schema"].map(read))
    };
    endpoints.iter().map(of).collect()
}

#[tokio::test]
async fn every_endpoint_answers_as_its_schemas_say() {
    let Some(site) = Site::new() else { return };
    site.yaml("retry:\n  first: 10m");
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let fleet = site
        .servers("web", 4, |settings| {
            settings.faults = FaultPlan::parse(&format!("jwt_alg_none=@{BAD}")).unwrap();
        })
        .await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 3).await.unwrap();
    let schemas = schemas(&client).await;
    let cooling = json!({"state": "cooling"});
    let mut page = good(&client, "quartermaster.hosts", cooling.clone()).await;
    while page["total"] != 1 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        page = good(&client, "quartermaster.hosts", cooling.clone()).await;
    }
    let named = |mut body: Value| {
        body["name"] = json!(BAD);
        body
    };
    let ann = by("ann", "a test");
    let asked = [
        ("ping", json!({})),
        ("status", json!({})),
        ("hosts", json!({"most": 2})),
        ("hosts", json!({"state": "cooling", "text": "web", "after": "web1.example.net", "most": 1})),
        ("host", named(json!({}))),
        ("host", json!({"name": "web1.example.net"})),
        ("discover", ann.clone()),
        ("pause", ann.clone()),
        ("flip", ann.clone()),
        ("pause", ann.clone()),
        ("resume", ann.clone()),
        ("retry", named(ann.clone())),
        ("config", json!({})),
        ("forget", named(ann.clone())),
        ("drain", ann.clone()),
    ];
    for (verb, body) in &asked {
        let [request, reply, _] = &schemas[*verb];
        assert_eq!(faults(request, body), Vec::<String>::new(), "{verb}");
        // By turns everybody and this instance alone are asked, but for what happens only once.
        let subject = format!("quartermaster.{verb}.{ONE}");
        let answer = good(&client, &subject, body.clone()).await;
        assert_eq!(faults(reply, &answer), Vec::<String>::new(), "{verb}: {answer}");
        assert_eq!(answer["instance"], ONE);
    }
    assert!(schemas.keys().all(|verb| asked.iter().any(|(name, _)| name == verb)), "{schemas:?}");
    assert_eq!(instance.ended().await, Some(0), "{}", instance.log());
    fleet.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_place_and_a_stable_code() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let error_schema = schemas(&client).await["pause"][2].clone();
    let ann = json!({"who": "ann", "why": "x", "name": "nosuch.example.net"});
    for (subject, body, status, code, at) in [
        ("pause", json!({}), "400", "bad_input", Some("/who")),
        ("pause", json!({"who": "ann", "why": "a\nb"}), "400", "bad_input", Some("/why")),
        ("pause", json!([1]), "400", "bad_input", Some("")),
        ("status", json!({"x": 1}), "400", "bad_input", Some("/x")),
        ("hosts", json!({"most": 5000}), "400", "bad_input", Some("/most")),
        ("host", json!({"name": "a b"}), "400", "bad_input", Some("/name")),
        ("host", json!({"name": "nosuch.example.net"}), "404", "unknown_host", None),
        ("retry", ann.clone(), "404", "unknown_host", None),
        ("forget", ann, "404", "unknown_host", None),
    ] {
        let (answer, number) = ask(&client, &format!("quartermaster.{subject}"), body).await;
        assert_eq!(number.as_deref(), Some(status), "{subject}: {answer}");
        assert_eq!(faults(&error_schema, &answer), Vec::<String>::new(), "{answer}");
        assert_eq!((answer["error"]["code"].as_str(), answer["error"]["at"].as_str()), (Some(code), at));
    }
    good(&client, "quartermaster.pause", by("ann", "x")).await;
    let (answer, number) = ask(&client, "quartermaster.discover", by("ann", "x")).await;
    assert_eq!((number.as_deref(), answer["error"]["code"].as_str()), (Some("409"), Some("not_now")));
    assert!(client.request("quartermaster.nosuch", "".into()).await.is_err(), "nobody answers it");
}

#[tokio::test]
async fn all_instances_are_asked_or_one_and_every_change_is_audited() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let (mut one, mut two) = (Instance::start(&site, ONE, ""), Instance::start(&site, TWO, ""));
    one.answers(&client).await;
    two.answers(&client).await;
    let mut heard = client.subscribe("quartermaster.audit").await.unwrap();
    let names = |answers: &[Value]| -> Vec<String> {
        answers.iter().map(|answer| answer["instance"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&all(&client, "quartermaster.ping", json!({}), 2).await), [ONE, TWO]);
    good(&client, &format!("quartermaster.pause.{TWO}"), by("ann", "only two")).await;
    let states = all(&client, "quartermaster.status", json!({}), 2).await;
    let says = |at: usize| states[at]["run_state"]["says"].as_str().unwrap().to_owned();
    assert_eq!(says(0), "working");
    assert!(
        says(1).starts_with("paused by ann since ") && says(1).ends_with(" because only two"),
        "{}",
        says(1)
    );
    all(&client, "quartermaster.flip", by("bob", "both"), 2).await;
    let states = all(&client, "quartermaster.status", json!({}), 2).await;
    assert_eq!(
        (states[0]["ready"]["role"].as_str(), states[1]["ready"]["role"].as_str()),
        (Some("paused"), Some("leading"))
    );

    assert_eq!((one.audited().len(), two.audited().len()), (1, 2));
    let record = &two.audited()[0];
    for (key, value) in
        [("verb", "pause"), ("who", "ann"), ("why", "only two"), ("via", "message"), ("outcome", "done")]
    {
        assert_eq!(record[key], value, "{record}");
    }
    let mut published = Vec::new();
    for _ in 0..3 {
        let next = tokio::time::timeout(Duration::from_secs(20), heard.next());
        published.push(serde_json::from_slice::<Value>(&next.await.unwrap().unwrap().payload).unwrap());
    }
    let mut kept: Vec<_> = one.audited().into_iter().chain(two.audited()).collect();
    for records in [&mut published, &mut kept] {
        records.sort_by_key(|record| record["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(published, kept);
    assert!(two.log().contains("ann asked for pause: done; now paused by ann since "), "{}", two.log());
}

#[tokio::test]
async fn a_broker_that_comes_back_finds_the_same_service_with_its_numbers() {
    let Some(mut site) = Site::new() else { return };
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    good(&client, "quartermaster.pause", by("ann", "x")).await;
    let before = good(&client, "$SRV.STATS.quartermaster", json!({})).await;
    site.broker.restart();
    instance.answers(&client).await;
    let after = good(&client, "$SRV.STATS.quartermaster", json!({})).await;
    assert_eq!(after["id"], before["id"]);
    let pauses = |stats: &Value| {
        let endpoints = stats["endpoints"].as_array().unwrap();
        endpoints.iter().find(|endpoint| endpoint["name"] == "pause").unwrap()["num_requests"].clone()
    };
    assert_eq!((pauses(&before), pauses(&after)), (json!(1), json!(1)));
    let status = good(&client, "quartermaster.status", json!({})).await;
    assert_eq!(status["ready"]["role"], "paused");
}

/// Two accounts on one broker: nothing of the one is seen in the other.
const ACCOUNTS: &str = "accounts {
  PROVISIONING { users: [ { user: provisioner, password: p } ] }
  CONTROL { users: [ { user: control, password: c } ] }
}";

#[tokio::test]
async fn control_may_run_in_an_account_of_its_own() {
    let Some(site) = Site::with(BrokerOptions::new().extra(ACCOUNTS)) else { return };
    let login = |name: &str, password: &str| {
        async_nats::ConnectOptions::with_user_and_password(name.to_owned(), password.to_owned())
            .connect(site.broker.url())
    };
    let control = login("control", "c").await.unwrap();
    let provisioning = login("provisioner", "p").await.unwrap();
    let yaml = "broker_provisioning_password: p\ncontrol:\n  user: control\n  password: c\n";
    let mut instance = Instance::start(&site, ONE, yaml);
    instance.answers(&control).await;
    let mut heard = control.subscribe("quartermaster.audit").await.unwrap();
    // The two connections do not wait for each other.
    let end = Instant::now() + Duration::from_mins(1);
    let status = loop {
        let status = good(&control, "quartermaster.status", json!({})).await;
        if status["link"]["connected"] == true {
            break status;
        }
        assert!(Instant::now() < end, "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(status["actors"].as_array().unwrap().iter().any(|actor| actor["name"] == "control_link"));
    good(&control, "quartermaster.pause", by("ann", "x")).await;
    let record = tokio::time::timeout(Duration::from_secs(20), heard.next()).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&record.payload).unwrap()["who"], "ann");
    assert!(provisioning.request("quartermaster.ping", "".into()).await.is_err(), "nobody hears it there");
    let shown = good(&control, "quartermaster.config", json!({})).await;
    assert_eq!(shown["config"]["control"]["login"]["password"], "[redacted]");
    assert!(!instance.log().contains("password: c"));
    // A control connection that is away does not stop the work, nor the other way round.
    eventually("the provisioner's own link is there", || site.broker.connections() >= 4).await;
}
