//! The section `cluster`: several instances beside each other.

use std::time::Duration;

use super::checked::{ClaimsConfig, ClusterMode};
use super::control::ControlConfig;
use super::daemon::duration;
use super::duration::show_duration;
use super::fault::Faults;
use super::raw::RawConfig;

const DEFAULT_BUCKET: &str = "QUARTERMASTER_CLAIMS";
const DEFAULT_TTL: Duration = Duration::from_mins(1);
/// Below it a busy broker or a short pause of the process would cost claims.
const SHORTEST_TTL: Duration = Duration::from_secs(5);
const LONGEST_TTL: Duration = Duration::from_hours(1);
/// The most that JetStream keeps.
const MOST_REPLICAS: usize = 5;

pub(super) fn mode(raw: &RawConfig, faults: &mut Faults) -> ClusterMode {
    const KEY: &str = "cluster.mode";
    let elected = raw.leader_election == Some(true);
    match raw.cluster.mode.as_deref() {
        None if elected => ClusterMode::Election,
        None => ClusterMode::Off,
        Some("election") => ClusterMode::Election,
        Some(word @ ("off" | "shared")) => {
            if elected {
                let what = format!("it is {word} while leader_election is true");
                faults.error(KEY, what, "remove one of the two");
            }
            if word == "shared" { ClusterMode::Shared } else { ClusterMode::Off }
        }
        Some(other) => {
            faults.error(KEY, format!("there is no mode {other:?}"), "write off, election or shared");
            ClusterMode::Off
        }
    }
}

pub(super) fn claims(raw: &RawConfig, control: &ControlConfig, faults: &mut Faults) -> ClaimsConfig {
    let raw = &raw.cluster;
    let over_control = match raw.connection.as_deref() {
        None | Some("provisioning") => false,
        Some("control") => {
            if !control.enabled || control.login.is_none() {
                let help = "set control.server or control.credentials, or write provisioning";
                faults.error("cluster.connection", "control has no login of its own", help);
            }
            true
        }
        Some(other) => {
            let what = format!("there is no connection {other:?}");
            faults.error("cluster.connection", what, "write provisioning or control");
            false
        }
    };
    let bucket = raw.bucket.clone().unwrap_or_else(|| DEFAULT_BUCKET.to_owned());
    if bucket.is_empty() || !bucket.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
        let help = "write letters, digits, - and _";
        faults.error("cluster.bucket", format!("{bucket:?} cannot be the name of a bucket"), help);
    }
    let ttl = duration(faults, "cluster.ttl", raw.ttl.as_ref()).unwrap_or(DEFAULT_TTL);
    if !(SHORTEST_TTL..=LONGEST_TTL).contains(&ttl) {
        let what = format!("{} is not between 5s and 1h", show_duration(ttl));
        faults.error("cluster.ttl", what, "the default is 1m");
    }
    let replicas = raw.replicas.unwrap_or(0);
    let replicas =
        usize::try_from(replicas).ok().filter(|count| *count <= MOST_REPLICAS).unwrap_or_else(|| {
            let what = format!("{replicas} is not between 0 and {MOST_REPLICAS}");
            faults.error(
                "cluster.replicas",
                what,
                "0 stands for three in a cluster of brokers and one elsewhere",
            );
            0
        });
    ClaimsConfig { over_control, bucket, ttl, replicas: (replicas > 0).then_some(replicas) }
}
