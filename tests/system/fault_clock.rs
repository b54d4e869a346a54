//! The fault matrix, as far as it is about clocks: those of the servers, half of them half a minute ahead, half behind.

use quartermaster::emulate::ServerReport;

use super::fault_stage::{Row, Stage};
use super::support::{Authority, BrokerOptions};

const OFF: &str = "clock:30s=0.5,clock:-30s=all";

async fn clocks_are_off(row: Row) {
    let Some(mut stage) = Stage::start(Row { faults: OFF, ..row }).await else { return };
    let report = stage.fleet.report();
    for offset in ["ClockOff(30)", "ClockOff(-30)"] {
        let count =
            report.servers.values().filter(|one| one.faults.first().is_some_and(|fault| fault == offset));
        assert!(count.count() >= stage.servers / 3, "{offset}: {}", stage.told());
    }
    stage.rounds(async |_, _| ()).await;
    // Not one request was too old or too new for its server, and every token held by its clock. One that lost its power may
    // have lost the key that its token is for.
    let stats = stage.fleet.stats();
    assert_eq!(stats.dropped, 0, "{}: {stats:?}", stage.told());
    let report = stage.fleet.report();
    let complains = |one: &&ServerReport| one.record.power_cuts == 0 && one.record.complaints > 0;
    let unhappy: Vec<_> = report.servers.values().filter(complains).collect();
    assert!(unhappy.is_empty(), "{}: {unhappy:#?}", stage.told());
    stage.judge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_whose_clocks_are_half_a_minute_off_are_provisioned_with_protocol_1() {
    clocks_are_off(Row::new("clocks off, protocol 1")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_whose_clocks_are_half_a_minute_off_are_provisioned_with_protocol_2() {
    let brokers = vec![BrokerOptions::new().tls(&Authority::new("clocks")).extra("max_pending: 256MB")];
    clocks_are_off(Row { brokers, issuer: true, ..Row::new("clocks off, protocol 2") }).await;
}
