//! The fault matrix, as far as it is about the site's helper: storms of helpers that hang, fail or flood.

use super::fault_stage::{Row, Stage};

/// What every helper does from now on. The next run reads it, so a storm begins and ends at once.
fn weather(stage: &Stage, storm: Option<&str>) {
    let file = stage.path("storm");
    match storm {
        Some(lines) => {
            // Whole or not at all: a helper may be reading it.
            let new = stage.path("storm.new");
            std::fs::write(&new, lines).unwrap();
            std::fs::rename(&new, &file).unwrap();
        }
        None => drop(std::fs::remove_file(&file)),
    }
}

/// Fifty rounds of storm, each with a chance of calm so that something gets through; then calm.
async fn storms(name: &'static str, storm: &'static str) {
    let row = Row {
        // Reads its orders, if there are any.
        helper: "if [ -e DIR/storm ]; then . DIR/storm; fi",
        yaml: "helper_timeout: 1s",
        ..Row::new(name)
    };
    let Some(mut stage) = Stage::start(row).await else { return };
    stage
        .rounds(async |stage, _| {
            let calm = rand::RngExt::random_bool(&mut stage.rng, 0.2);
            weather(stage, (!calm).then_some(storm));
        })
        .await;
    weather(&stage, None);
    stage.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helpers_that_all_hang_lose_no_server() {
    // One in the foreground and one that holds the pipes open.
    storms("helpers hang", "sleep 15 & sleep 15\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helpers_that_all_fail_lose_no_server() {
    storms("helpers fail", "echo no such role >&2; exit 1\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helpers_that_all_flood_lose_no_server() {
    // Eight megabytes on standard error, part of it without any line end, then output without end.
    let flood = "{ yes 'all work and no play' | head -c 4000000; head -c 4000000 /dev/zero; } >&2; yes\n";
    storms("helpers flood", flood).await;
}
