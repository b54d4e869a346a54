//! The fault matrix, as far as it is about brokers and the way to them.

use std::time::Duration;

use super::fault_stage::{CALM, CONNECTIONS, Row, Stage};
use super::support::{Authority, BrokerOptions};

/// A second connection of ours at a broker shows up a moment after the first is gone.
const MOVED: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_restarts_fifty_times_loses_no_server() {
    let Some(mut stage) = Stage::start(Row { kill_broker: false, ..Row::new("broker restart") }).await else {
        return;
    };
    stage.rounds(async |stage, _| stage.restart_broker(0)).await;
    stage.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_freezes_is_left_for_the_other_one_fifty_times() {
    // What a frozen broker held is delivered late. Without keys, since the late reply to a request for one may be lost with the
    // next broker that freezes, and then nobody knows that the server has another key: docs/faults.md.
    let (first, second) = (free_port(), free_port());
    let options = |own, other| BrokerOptions::new().extra("max_pending: 256MB").cluster(own, &[other]);
    let brokers = vec![options(first, second), options(second, first)];
    let row = Row {
        brokers,
        keys: false,
        kill_broker: false,
        freezes: true,
        shipped: Some(1),
        ..Row::new("broker frozen")
    };
    let Some(mut stage) = Stage::start(row).await else { return };
    stage
        .rounds(async |stage, _| {
            // The provisioner's, in the first round; afterwards all are at the same.
            let used = usize::from(stage.ours_at(1) > 0);
            stage.brokers[used].freeze();
            stage.note_broker();
            let other = 1 - used;
            stage
                .in_time("all went to the other broker", MOVED, |stage| {
                    connected(stage, other) == CONNECTIONS + 1
                })
                .await;
            stage.brokers[used].thaw();
        })
        .await;
    stage.judge().await;
}

fn connected(stage: &Stage, broker: usize) -> usize {
    usize::try_from(stage.brokers[broker].connections()).unwrap()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_half_open_is_replaced_fifty_times() {
    let row = Row { shipped: Some(4), ..Row::new("half-open link") };
    let Some(mut stage) = Stage::start(row).await else { return };
    stage.rounds(async |stage, _| stage.proxies[0].half_open()).await;
    stage.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_wrong_for_a_while_fifty_times_loses_no_server() {
    let options = |password: &str| {
        BrokerOptions::new().user("provisioner", password).user("node", "n0de").extra("max_pending: 256MB")
    };
    let row = Row {
        brokers: vec![options("s3cret-pass")],
        user: Some(("node".to_owned(), "n0de".to_owned())),
        yaml: "broker_provisioning_password: s3cret-pass",
        kill_broker: false,
        ..Row::new("wrong password")
    };
    let Some(mut stage) = Stage::start(row).await else { return };
    stage
        .rounds(async |stage, _| {
            stage.restart_broker_with(0, options("another"));
            stage
                .in_time("a login is refused", CALM, |stage| {
                    stage.brokers[0].log().contains("authentication error")
                })
                .await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            stage.restart_broker_with(0, options("s3cret-pass"));
        })
        .await;
    stage.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_whose_certificate_is_replaced_fifty_times_loses_no_server() {
    let authority = |round: usize| Authority::new(&format!("authority {round}"));
    let options = |authority: &Authority| BrokerOptions::new().tls(authority).extra("max_pending: 256MB");
    let mut current = authority(0);
    let row = Row {
        brokers: vec![options(&current)],
        issuer: true,
        choria: "plugin.security.choria.ca = DIR/ca.pem",
        authority: Some(current.pem().to_owned()),
        kill_broker: false,
        ..Row::new("certificate replaced")
    };
    let Some(mut stage) = Stage::start(row).await else { return };
    stage
        .rounds(async |stage, round| {
            if round % 2 == 0 {
                // Another certificate of the authority that is trusted.
                stage.restart_broker_with(0, options(&current));
                return;
            }
            // One of an authority that is trusted a little later, or already.
            current = authority(round);
            if round % 4 == 1 {
                stage.restart_broker_with(0, options(&current));
                tokio::time::sleep(Duration::from_millis(200)).await;
                std::fs::write(stage.path("ca.pem"), current.pem()).unwrap();
            } else {
                std::fs::write(stage.path("ca.pem"), current.pem()).unwrap();
                stage.restart_broker_with(0, options(&current));
            }
        })
        .await;
    stage.judge().await;
}
