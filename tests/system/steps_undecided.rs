//! A step whose outcome nobody can tell, in a whole site: its server waits for an operator, who sees it and decides.

use std::fs;

use super::control_site::{Instance, client, verb};
use super::prove_site::PATIENCE;
use super::steps_site::Steps;
use super::support::eventually;

const HOST: &str = "web1.example.net";

/// The site with providers that cannot be asked what became of a call, and one of them killed after it did a step and before it said so.
async fn undecided() -> Option<(Steps, Instance, quartermaster::emulate::FleetHandle, String)> {
    let steps = Steps::new()?;
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/steps/registry.py");
    let text = fs::read_to_string(example).unwrap();
    let forgetful = text.replace(r#""call_context": True, "lookup": True"#, r#""call_context": True"#);
    assert_ne!(text, forgetful);
    let program = steps.site.path("forgetful.py");
    fs::write(&program, forgetful).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let config = fs::read_to_string(&steps.site.files.config).unwrap();
    fs::write(&steps.site.files.config, config.replace(example, program.to_str().unwrap())).unwrap();
    steps.hold("after", "record_create");
    let client = client(&steps.site).await;
    let mut instance = Instance::start(&steps.site, "prov1.example.net", "");
    instance.answers(&client).await;
    let fleet = steps.site.servers("web", 1, |_| {}).await;
    steps.seen("done record_create", 1).await;
    assert!(kill("dns", program.to_str().unwrap()), "its process is found");
    steps.let_go();
    let url = steps.site.broker.url();
    eventually("the server waits for an operator", || instance.log().contains("retry or forget decides"))
        .await;
    let status = verb(&["status", "--server", &url, "--json"]).await;
    assert!(
        status.out.contains("\"not_taken_back\": 1") || status.out.contains("\"not_taken_back\":1"),
        "{status:?}"
    );
    let status = verb(&["status", "--server", &url]).await;
    assert!(status.out.contains("1 of them wait for `retry` or `forget`"), "{status:?}");
    let host = verb(&["host", HOST, "--server", &url]).await;
    assert!(host.out.contains("step_unknown") && host.out.contains("record"), "{host:?}");
    assert_eq!(steps.things("dns").len(), 1, "it was done, and nothing was repeated or taken back");
    Some((steps, instance, fleet, url))
}

/// Kills the process of this provider that runs this program.
fn kill(provider: &str, program: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        let ours = holds(&read("cmdline"), program)
            && holds(&read("environ"), &format!("X_PROVIDER_NAME={provider}"));
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(rustix::process::Pid::from_raw);
        ours && pid
            .is_some_and(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok())
    })
}

#[tokio::test]
async fn retry_counts_the_step_as_not_done_and_the_server_is_provisioned() {
    let Some((steps, instance, fleet, url)) = undecided().await else { return };
    // The operator looks, and removes what it made.
    fs::write(steps.path("dns.json"), "{}").unwrap();
    let ran = verb(&["retry", HOST, "--why", "the record is gone", "--server", &url]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 1).await.unwrap();
    eventually("the inventory has it", || steps.things("cmdb").len() == 1).await;
    steps.assert_complete(HOST);
    assert!(instance.log().contains("An operator decided about the steps of web1.example.net"));
    let status = verb(&["status", "--server", &url]).await;
    assert!(!status.out.contains("wait for `retry`"), "{status:?}");
}

#[tokio::test]
async fn forget_leaves_what_was_done_and_names_it() {
    let Some((steps, instance, fleet, url)) = undecided().await else { return };
    let first: Vec<String> = steps.things("dns").into_keys().collect();
    let ran = verb(&["forget", HOST, "--why", "we keep the record", "--server", &url]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    eventually("what is left is named", || {
        instance.log().contains("Left as it is, web1.example.net is no longer ours")
    })
    .await;
    let status = verb(&["status", "--server", &url]).await;
    assert!(!status.out.contains("wait for `retry`"), "{status:?}");
    assert!(
        steps.things("dns").contains_key(&first[0])
            && !steps.log().iter().any(|line| line.contains("remove"))
    );
    drop(fleet);
}
