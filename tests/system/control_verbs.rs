//! The verbs that speak to running instances: what they show, what they leave with.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use quartermaster::emulate::FaultPlan;
use rustix::process::{Pid, Signal, kill_process};

use super::control_site::{BINARY, Instance, client, good, verb};
use super::prove_site::{PATIENCE, Site};
use super::support::{BrokerOptions, eventually};

const ONE: &str = "prov1.example.net";
const TWO: &str = "prov2.example.net";
const BAD: &str = "web2.example.net";

#[tokio::test]
async fn an_operator_watches_pauses_resumes_and_drains_two_instances() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let (mut one, mut two) = (Instance::start(&site, ONE, ""), Instance::start(&site, TWO, ""));
    one.answers(&client).await;
    two.answers(&client).await;
    let url = site.broker.url();
    let at = |arguments: &[&str]| -> Vec<String> {
        arguments.iter().copied().chain(["--server", &url]).map(str::to_owned).collect()
    };
    let run = async |arguments: &[&str]| {
        let arguments = at(arguments);
        verb(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    };

    let ran = run(&["status"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.contains(ONE) && ran.out.contains(TWO) && ran.out.contains("leading"), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "no escape sequence without a terminal");

    let ran = run(&["pause", "--why", "the move", "--instance", TWO]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with(&format!("{TWO}: pause: done; now paused by ann@")), "{}", ran.out);
    assert!(ran.out.contains("because the move"), "{}", ran.out);
    let status = run(&["status", "--json"]).await.json();
    assert_eq!(status["answers"][0]["ready"]["role"], "leading");
    assert_eq!(status["answers"][1]["ready"]["role"], "paused");
    assert!(run(&["status"]).await.out.contains(&format!("{TWO}: paused by ann@")));

    // One refuses, one does it.
    let ran = run(&["discover", "--why", "x", "--who", "bob"]).await;
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(
        ran.err.starts_with(&format!("error: {TWO}: not now: this instance is paused by ann@")),
        "{}",
        ran.err
    );
    let ran = run(&["discover", "--why", "x", "--instance", TWO, "--json"]).await;
    assert_eq!((ran.code, ran.json()["errors"][0]["error"]["code"].as_str()), (Some(8), Some("not_now")));

    let ran = run(&["flip", "--why", "x", "--json"]).await;
    assert_eq!((ran.code, ran.json()["answers"].as_array().unwrap().len()), (Some(0), 2), "{ran:?}");
    let ran = run(&["resume", "--why", "x", "--json"]).await;
    let changed: Vec<_> =
        ran.json()["answers"].as_array().unwrap().iter().map(|one| one["changed"].clone()).collect();
    assert_eq!(changed, [true, false], "only the first was paused after the flip");

    let ran = run(&["config", "--instance", ONE]).await;
    assert!(ran.code == Some(0) && ran.out.contains("\"token\": \"[redacted]\""), "{ran:?}");

    let ran = run(&["drain", "--why", "a new version"]).await;
    assert_eq!(ran.code, Some(2), "all of them only when that is said: {ran:?}");
    let ran = run(&["drain", "--why", "a new version", "--instance", ONE]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(one.ended().await, Some(0), "{}", one.log());
    assert_eq!(run(&["drain", "--all", "--why", "a new version"]).await.code, Some(0));
    assert_eq!(two.ended().await, Some(0), "{}", two.log());
    let ran = run(&["status"]).await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(7), "error: no instance answered: nobody listens there\n")
    );
}

#[tokio::test]
async fn what_happened_to_a_host_is_told_attempt_by_attempt() {
    let Some(site) = Site::new() else { return };
    site.yaml("interval: 1h\nretry:\n  first: 10m");
    site.helper_also(&format!("if test $identity = {BAD}; then echo no address left >&2; exit 3; fi"));
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let fleet = site.servers("web", 3, |settings| settings.faults = FaultPlan::default()).await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 2).await.unwrap();
    let url = site.broker.url();
    let failed = async || {
        let page = good(&client, "quartermaster.hosts", serde_json::json!({"state": "cooling"})).await;
        page["total"] == 1
    };
    while !failed().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ran = verb(&["host", BAD, "--server", &url]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "cooling, again in",
        "attempt 1 (cycle",
        "failed after",
        "jwt",
        "exited with status 3",
        "| no address left",
    ] {
        assert!(ran.out.contains(words), "{words}:\n{}", ran.out);
    }
    let ran = verb(&["hosts", "--state", "held", "--server", &url]).await;
    assert!(ran.out.contains("web1.example.net") && ran.out.contains("2 of 2 hosts"), "{}", ran.out);
    let ran = verb(&["hosts", "--most", "1", "--server", &url, "--json"]).await.json();
    assert_eq!(
        (ran["answers"][0]["hosts"].as_array().unwrap().len(), ran["answers"][0]["next"].as_str()),
        (1, Some("web1.example.net"))
    );
    let ran = verb(&["status", "--server", &url]).await;
    assert!(ran.out.contains(&format!("{ONE}: {BAD} failed ")), "{}", ran.out);

    let ran = verb(&["retry", BAD, "--why", "addresses are there", "--server", &url]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    eventually("the second attempt is in the history", || {
        let out = Command::new(BINARY).args(["host", BAD, "--server", &url]).output().unwrap().stdout;
        String::from_utf8(out).unwrap().matches("| no address left").count() == 2
    })
    .await;
    assert_eq!(verb(&["forget", BAD, "--why", "gone", "--server", &url]).await.code, Some(0));
    let ran = verb(&["host", BAD, "--server", &url]).await;
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.err.contains("is known here"), "{ran:?}");
    fleet.stop().await;
}

#[tokio::test]
async fn the_exit_code_tells_what_was_in_the_way() {
    let Some(site) = Site::with(BrokerOptions::new().user("ops", "right")) else { return };
    let url = site.broker.url();
    let password = site.path("password");
    std::fs::write(&password, "wrong\n").unwrap();
    let login = ["--user", "ops", "--password-file", password.to_str().unwrap()];
    let run =
        async |more: &[&str]| verb(&[&["status", "--server", &url, "--timeout", "3s"], more].concat()).await;

    let ran = run(&[]).await;
    assert_eq!(ran.code, Some(5), "no login: {ran:?}");
    let ran = run(&login).await;
    assert_eq!(ran.code, Some(5), "a wrong password: {ran:?}");
    assert!(ran.err.contains("refused the login"), "{ran:?}");
    std::fs::write(&password, "right\n").unwrap();
    let ran = run(&login).await;
    assert_eq!(ran.code, Some(7), "nobody is there: {ran:?}");
    let ran = run(&[&login[..], &["--json"]].concat()).await;
    assert_eq!((ran.code, ran.json()["exit"].as_u64()), (Some(7), Some(7)));
    let ran = run(&["--creds", "/nonexistent.creds"]).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(verb(&["status", "--server", "nats://127.0.0.1:1"]).await.code, Some(5), "nobody listens");
    assert_eq!(verb(&["status", "--server", "http://x"]).await.code, Some(2), "no such scheme");
    assert_eq!(verb(&["status"]).await.code, Some(2), "no way is given");
    assert_eq!(verb(&["pause", "--server", &url]).await.code, Some(2), "no reason is given");
    assert_eq!(verb(&["status", "--config", "nosuch.yaml"]).await.code, Some(3));
}

#[tokio::test]
async fn an_instance_that_hangs_is_waited_for_no_longer_than_asked() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    instance.signal(Signal::STOP);
    let url = site.broker.url();
    let ran = verb(&["status", "--instance", ONE, "--timeout", "5s", "--server", &url]).await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(7), "error: no instance answered: nothing came back in time\n")
    );
    instance.signal(Signal::CONT);
    instance.answers(&client).await;
}

#[tokio::test]
async fn the_daemons_own_files_are_login_enough() {
    let Some(site) = Site::with(BrokerOptions::new().user("provisioner", "p")) else { return };
    let mut instance =
        Instance::start(&site, ONE, "broker_provisioning_password: p\ncontrol:\n  subject_prefix: site.qm\n");
    let (config, choria) = (instance.config.clone(), instance.choria.clone());
    let files = ["--config", config.to_str().unwrap(), "--choria-config", choria.to_str().unwrap()];
    let mut ran = verb(&[&["status"], &files[..]].concat()).await;
    for _ in 0..100 {
        if ran.code == Some(0) {
            break;
        }
        assert!(instance.exited().is_none(), "{}", instance.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
        ran = verb(&[&["status"], &files[..]].concat()).await;
    }
    assert!(ran.out.contains(ONE), "{ran:?}");
}

#[tokio::test]
async fn a_watch_goes_on_until_it_is_interrupted_or_nobody_reads() {
    let Some(site) = Site::new() else { return };
    let client = client(&site).await;
    let mut instance = Instance::start(&site, ONE, "");
    instance.answers(&client).await;
    let url = site.broker.url();
    let watch = || {
        let mut command = Command::new(BINARY);
        command.args(["watch", "--every", "100ms", "--json", "--server", &url]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut watching = watch();
    let mut output = watching.stdout.take().unwrap();
    let mut read = String::new();
    while read.lines().count() < 3 {
        let mut some = [0; 4096];
        let count = output.read(&mut some).unwrap();
        assert!(count > 0, "it ended: {read}");
        read.push_str(std::str::from_utf8(&some[..count]).unwrap());
    }
    kill_process(Pid::from_child(&watching), Signal::INT).unwrap();
    assert_eq!(watching.wait().unwrap().code(), Some(0));

    let mut unread = watch();
    drop(unread.stdout.take());
    eventually("it ended when nobody read", || unread.try_wait().unwrap().is_some()).await;
    assert_eq!(unread.wait().unwrap().code(), Some(0));
}
