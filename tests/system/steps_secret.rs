//! What steps are given of a helper's reply is secret: it stands in no journal, log, trace or message, whatever the schema says of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;

use super::prove_site::PATIENCE;
use super::steps_site::Steps;
use super::support::eventually;

const SECRET: &str = "hunter2-of-the-site";

/// A site whose helper says the secret, and whose steps hand it on: to an attribute that is declared sensitive and to one that is not.
fn secretive() -> Option<Steps> {
    let steps = Steps::new()?;
    let text = fs::read_to_string(&steps.site.files.helper).unwrap();
    let told = text.replace(
        r#"\"configuration\": {"#,
        &format!(r#"\"configuration\": {{ \"site.secret\": \"{SECRET}\","#),
    );
    assert!(told.contains(SECRET), "{text}");
    fs::remove_file(&steps.site.files.helper).unwrap();
    write_program(&steps.site.files.helper, &told);
    let yaml = fs::read_to_string(&steps.site.files.config).unwrap();
    let yaml = yaml.replace("plugin.choria.server.provision\\\"]", "site.secret\\\"]");
    let secret = r#"${helper.configuration[\"site.secret\"]}"#;
    let yaml =
        yaml.replace("certificate: \"${steps.certificate.id}\"", &format!("certificate: \"{secret}\""));
    assert_eq!(yaml.matches("site.secret").count(), 2);
    fs::write(&steps.site.files.config, yaml.replace("loglevel: info", "loglevel: debug")).unwrap();
    Some(steps)
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn what_the_helper_said_is_in_neither_the_journal_nor_the_log() {
    let Some(steps) = secretive() else { return };
    steps.hold("before", "enter");
    let mut process = steps.site.run();
    process.ready().await;
    let _fleet = steps.site.servers("web", 1, |_| {}).await;
    steps.seen("begin enter", 1).await;
    process.signal(Signal::KILL);
    process.wait(PATIENCE).await;
    let journal = fs::read(steps.site.path("state").join("journal.redb")).unwrap();
    let holds = |text: &str| journal.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("inventory") && !holds(SECRET), "the records are there, the secret is not");
    assert!(!process.log().contains(SECRET));
}

#[tokio::test]
async fn nor_is_it_in_the_trace_of_frames_or_in_what_is_said_of_an_error_that_repeats_it() {
    let Some(steps) = secretive() else { return };
    // A provider that says what it was given.
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/steps/registry.py");
    let text = fs::read_to_string(example).unwrap();
    let telling = text.replace("\"the inventory takes no more\"", "\"no more of \" + attrs[\"certificate\"]");
    assert_ne!(text, telling);
    let program = steps.site.path("telling.py");
    write_program(&program, &telling);
    let yaml = fs::read_to_string(&steps.site.files.config).unwrap();
    fs::write(&steps.site.files.config, yaml.replace(example, program.to_str().unwrap())).unwrap();
    steps.refuse(true);
    let trace = steps.site.path("trace");
    let mut process = steps.site.run_with(&["--trace-wire", trace.to_str().unwrap()]);
    process.ready().await;
    let _fleet = steps.site.servers("web", 1, |_| {}).await;
    steps.seen("done remove", 2).await;
    eventually("the attempt is over", || process.log().contains("Step record taken back")).await;
    let (_, host) = process.get("/api/v1/hosts/web1.example.net").unwrap();
    let page = process.get("/hosts/web1.example.net").unwrap().1;
    let frames = fs::read_to_string(&trace).unwrap();
    for action in ["record_create", "sign", "enter", "remove"] {
        assert!(frames.contains(action), "{action}: {frames}");
    }
    assert!(host.contains("no more of"), "the message is there: {host}");
    for (what, text) in [("log", process.log()), ("trace", frames), ("answer", host), ("page", page)] {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(SECRET)).collect();
        assert!(lines.is_empty(), "{what}: {lines:#?}");
    }
    process.signal(Signal::TERM);
    process.wait(PATIENCE).await;
}
