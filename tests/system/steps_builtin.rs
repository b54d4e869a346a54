//! Builtin providers and confined ones among the steps of a whole site.

use std::fs;

use rustix::process::Signal;

use super::prove_site::PATIENCE;
use super::steps_site::Steps;
use super::support::eventually;

#[tokio::test]
async fn a_builtin_provider_keeps_a_list_and_a_confined_one_runs_confined() {
    let Some(steps) = Steps::new() else { return };
    let folder = steps.path("hold").parent().unwrap().to_owned();
    let config = fs::read_to_string(&steps.site.files.config).unwrap();
    let files =
        format!("  files:\n    source: builtin/file\n    config: {{root: {}}}\n\nsteps:\n", folder.display());
    let listed = "    - name: listed\n      provider: files\n      action: line_add\n      attrs: {path: list, line: \"${server.identity}\"}\n    - name: inventory\n";
    let config = config
        .replace("\nsteps:\n", &files)
        .replace("    - name: inventory\n", listed)
        .replace("  dns:\n", "  dns:\n    confine: {no_new_privileges: true, open_files: 77}\n");
    fs::write(&steps.site.files.config, config).unwrap();
    steps.refuse(true);
    steps.hold("before", "enter");
    let mut process = steps.site.run();
    process.ready().await;
    let fleet = steps.site.servers("web", 1, |_| {}).await;
    steps.seen("begin enter", 1).await;
    let list = || fs::read_to_string(folder.join("list")).unwrap_or_default();
    assert_eq!(list(), "web1.example.net\n");
    let confined = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        read("cmdline").contains("registry.py")
            && read("environ").contains("X_PROVIDER_NAME=dns")
            && read("status").contains("NoNewPrivs:\t1")
            && read("limits").lines().any(|line| line.starts_with("Max open files") && line.contains(" 77 "))
    });
    assert!(confined, "the provider runs with what it was left");
    steps.let_go();
    // The inventory refuses: the list is as it was.
    eventually("the line is taken back", || list().is_empty()).await;
    steps.refuse(false);
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 1).await.unwrap();
    eventually("the cycle is over", || process.fleet("in_flight") == 0).await;
    assert_eq!(list(), "web1.example.net\n");
    process.signal(Signal::TERM);
    process.wait(PATIENCE).await;
}
