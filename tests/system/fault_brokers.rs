//! The fault matrix, as far as it is about brokers and the way to them.

use std::time::Duration;

use super::fault_stage::{CALM, Row, Stage};
use super::support::{Authority, BrokerOptions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_restarts_fifty_times_loses_no_server() {
    let Some(mut stage) = Stage::start(Row { kill_broker: false, ..Row::new("broker restart") }).await else {
        return;
    };
    stage.rounds(async |stage, _| stage.restart_broker(0)).await;
    stage.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_half_open_is_replaced_fifty_times() {
    let Some(mut stage) = Stage::start(Row::new("half-open link")).await else { return };
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
