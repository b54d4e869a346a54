//! The series of claims, for instances that share the work; all zero for any other.

use prometheus::{IntCounter, IntGauge};

use super::Fact;
use super::store::{Maker, set};

/// Three gauges and two counters.
#[derive(Debug)]
pub(super) struct Claims {
    held: IntGauge,
    kept: IntGauge,
    members: IntGauge,
    contended: IntCounter,
    lost: IntCounter,
}

impl Claims {
    pub(super) fn new(make: &Maker<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            held: make.gauge("quartermaster_claims_held", "Hosts that this instance has claimed now")?,
            kept: make.gauge(
                "quartermaster_claims_elsewhere",
                "Hosts noticed here that are another instance's first, kept in mind",
            )?,
            members: make
                .gauge("quartermaster_cluster_members", "Instances that share the work, this one included")?,
            contended: make.counter(
                "quartermaster_claims_contended_total",
                "Hosts that were to be claimed when another instance had them",
            )?,
            lost: make
                .counter("quartermaster_claims_lost_total", "Claims that ended before their cycle did")?,
        })
    }

    /// Takes one fact about claims into the numbers.
    pub(super) fn update(&self, fact: &Fact) {
        match fact {
            Fact::ClaimContended { .. } => self.contended.inc(),
            Fact::ClaimLost { .. } => self.lost.inc(),
            Fact::ClaimsCounted { held, kept, members } => {
                set(&self.held, *held);
                set(&self.kept, *kept);
                set(&self.members, *members);
            }
            _ => {}
        }
    }
}
