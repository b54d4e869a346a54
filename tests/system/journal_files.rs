//! A state folder that is full, damaged or taken stops nothing, or says plainly why it does.

use rustix::process::Signal;

use super::prove_site::{PATIENCE, Site};
use super::support::eventually;

fn site_with_state() -> Option<Site> {
    let site = Site::new()?;
    site.yaml(&format!("state_dir: {}", site.path("state").display()));
    Some(site)
}

#[tokio::test]
async fn a_second_instance_on_one_state_folder_is_refused() {
    let Some(site) = site_with_state() else { return };
    let mut first = site.run();
    first.ready().await;
    site.yaml("listen: 127.0.0.1:0");
    let mut second = site.run();
    assert_eq!(second.wait(PATIENCE).await.code(), Some(1));
    assert!(second.log().contains("another instance uses the state folder"), "{}", second.log());
    assert!(first.exited().is_none());
}

#[tokio::test]
async fn a_damaged_journal_is_kept_aside_and_servers_are_provisioned_all_the_same() {
    let Some(site) = site_with_state() else { return };
    std::fs::create_dir(site.path("state")).unwrap();
    std::fs::write(site.path("state").join("journal.redb"), "redb, but no more").unwrap();
    let mut process = site.run();
    process.ready().await;
    let fleet = site.servers("web", 5, |_| {}).await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 5).await.unwrap();
    let log = process.log();
    assert!(log.contains("cannot be used") && log.contains("kept as"), "{log}");
    let names = std::fs::read_dir(site.path("state")).unwrap();
    assert!(names.into_iter().any(|name| name.unwrap().file_name().to_string_lossy().contains("aside")));
    assert!(
        process
            .series()
            .iter()
            .any(|line| line.starts_with("quartermaster_journal_durable") && line.ends_with(" 1"))
    );
}

#[tokio::test]
async fn on_a_full_disk_servers_are_provisioned_and_the_error_is_said() {
    let Some(site) = site_with_state() else { return };
    // A limit on the size of files stands for the disk: the journal can be begun, and soon not be written any more.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 1600; exec {} run --config {} --choria-config {}",
        env!("CARGO_BIN_EXE_quartermaster"),
        site.files.config.display(),
        site.files.choria_config.display()
    );
    let mut process = site.run_shell(&limited);
    process.ready().await;
    let fleet = site.servers("web", 400, |_| {}).await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 400).await.unwrap();
    assert_eq!(fleet.stats().repeated_configures, 0);
    let durable = |value: &str| {
        process
            .series()
            .iter()
            .any(|line| line.starts_with("quartermaster_journal_durable") && line.ends_with(value))
    };
    eventually("the journal is in memory", || durable(" 0")).await;
    assert!(process.metric("quartermaster_journal_errors_total") >= 1);
    let log = process.log();
    assert!(log.contains("the journal cannot be written") && log.contains("kept as"), "{log}");
    process.signal(Signal::TERM);
    assert!(process.wait(PATIENCE).await.success());
}

#[tokio::test]
async fn without_a_state_folder_there_is_one_warning() {
    let Some(site) = Site::new() else { return };
    let mut process = site.run();
    process.ready().await;
    let fleet = site.servers("web", 3, |_| {}).await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 3).await.unwrap();
    assert_eq!(process.log().matches("no state_dir").count(), 1, "{}", process.log());
}
