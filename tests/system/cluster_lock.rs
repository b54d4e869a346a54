//! Two instances that know nothing of each other: the servers' own lock keeps them apart.

use std::fs;
use std::time::Duration;

use super::cluster_shared::{repeated, shares};
use super::cluster_site::{Member, PATIENCE, members};
use super::prove_site::Site;
use super::support::{BrokerOptions, eventually};

#[tokio::test]
async fn a_server_that_somebody_else_has_is_busy_and_no_error_and_both_make_progress() {
    const SERVERS: usize = 200;
    let Some(site) = Site::with(BrokerOptions::new().extra("max_pending: 256MB")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let runs = site.path("runs");
    site.helper_also(&format!("echo \"$identity\" >> {}", runs.display()));
    let mut members = members(&site, &dir, 2, "in_flight: 16");
    for member in &mut members {
        member.start();
        member.process().ready().await;
    }
    let fleet =
        site.servers("web", SERVERS, |settings| settings.reply_delay = Duration::from_millis(10)).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!(repeated(&fleet, &[]), Vec::<String>::new());
    assert_eq!(fs::read_to_string(&runs).unwrap().lines().count(), SERVERS, "no helper run was wasted");
    let shares = shares(&fleet);
    assert!(shares.len() == 2 && shares.values().all(|share| *share >= SERVERS / 20), "{shares:?}");
    let refused = fleet.stats().lock_refusals;
    assert!(refused > 0, "they never met");
    // The one that was refused counts it when its cycle has ended.
    eventually("each refusal is counted", || {
        let busy = |member: &mut Member| {
            member.process().metric_with("quartermaster_cycle_ends_total", "cause=\"busy\"")
        };
        members.iter_mut().map(busy).sum::<u64>() == refused
    })
    .await;
    for member in &mut members {
        let process = member.process();
        assert_eq!(process.metric("choria_provisioner_provision_errors"), 0, "{}", process.log());
        assert_eq!(process.fleet("failed_total"), 0);
    }
}
