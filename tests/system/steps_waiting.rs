//! A provisioner that is killed while it waits for the next try of a step.

use std::fs;

use rustix::process::Signal;

use super::prove_site::PATIENCE;
use super::steps_site::Steps;
use super::support::eventually;

#[tokio::test]
async fn killed_between_two_tries_nothing_is_lost_and_nothing_done_twice() {
    let Some(steps) = Steps::new() else { return };
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/steps/registry.py");
    // While the file is there, nothing is done, and the next try is far away.
    let busy = steps.path("busy");
    let text = fs::read_to_string(example).unwrap();
    let refusing = text.replace(
        "    if action == \"remove\":\n",
        &format!(
            "    if action == \"sign\" and os.path.exists({busy:?}):\n        note(\"busy\")\n        \
             return {{\"error\": {{\"code\": \"unavailable\", \"message\": \"not now\", \"x_retry_after_ms\": 600000}}}}\n    \
             if action == \"remove\":\n"
        ),
    );
    assert_ne!(text, refusing);
    let program = steps.site.path("busy.py");
    fs::write(&program, refusing).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let config = fs::read_to_string(&steps.site.files.config).unwrap();
    let config = config.replace(example, program.to_str().unwrap());
    let config = config.replace("      action: sign\n", "      action: sign\n      tries: 5\n");
    fs::write(&steps.site.files.config, config).unwrap();
    fs::write(&busy, "").unwrap();
    let mut process = steps.site.run();
    process.ready().await;
    let fleet = steps.site.servers("web", 1, |_| {}).await;
    steps.seen("busy", 1).await;
    // That nothing was done is written down before the wait.
    eventually("the failure of the try is known", || process.log().contains("Step certificate failed")).await;
    process.signal(Signal::KILL);
    process.wait(PATIENCE).await;
    fs::remove_file(&busy).unwrap();
    let mut process = steps.site.run();
    process.ready().await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 1).await.unwrap();
    eventually("the cycle is over", || process.fleet("in_flight") == 0).await;
    steps.assert_complete("web1.example.net");
    let log = steps.log();
    let count = |begins: &str| log.iter().filter(|line| line.starts_with(begins)).count();
    assert_eq!(count("done sign"), 1, "{log:#?}");
    assert_eq!(
        count("done record_create") - count("done remove"),
        1,
        "what was begun before was taken back: {log:#?}"
    );
    process.signal(Signal::TERM);
    process.wait(PATIENCE).await;
}
