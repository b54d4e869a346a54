//! The fault matrix's last row: everything at once, with servers that have faults of their own.

use std::time::Duration;

use rand::RngExt as _;

use super::fault_stage::{Row, Stage};

/// Servers that are slow, lose replies, refuse at first, repeat themselves, lose their power in the middle, fall back.
const FAULTY: &str = "late:400ms=0.1,lose_reply:1/configure=0.1,lose_reply:2/restart=0.05,abort_configure:1=0.05,duplicate=0.1,\
                      vanish:1s/configure=0.05,vanish:1s/restart=0.05,relapse=0.05,clock:30s=0.2,clock:-30s=0.2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_rounds_of_everything_at_once_lose_no_server() {
    let row = Row {
        faults: FAULTY,
        yaml: "helper_timeout: 1s",
        helper: "if [ -e DIR/storm ]; then . DIR/storm; fi",
        ..Row::new("everything")
    };
    let Some(mut stage) = Stage::start(row).await else { return };
    stage
        .rounds(async |stage, _| {
            match stage.rng.random_range(0..6) {
                0 => stage.restart_broker(0),
                1 => stage.proxies[0].half_open(),
                2 => std::fs::write(stage.path("storm"), "sleep 15\n").unwrap(),
                3 => std::fs::write(stage.path("storm"), "echo no; exit 1\n").unwrap(),
                4 => {
                    stage.brokers[0].freeze();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    stage.brokers[0].thaw();
                }
                _ => drop(std::fs::remove_file(stage.path("storm"))),
            }
            for _ in 0..2 {
                stage.break_something();
            }
        })
        .await;
    drop(std::fs::remove_file(stage.path("storm")));
    stage.judge().await;
}
