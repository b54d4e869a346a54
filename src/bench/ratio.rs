//! Two provisioners side by side.

use serde::Serialize;

use super::figures::{Better, Figures, Spread, spreads};

/// One figure of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ratio {
    /// Its name.
    pub(super) figure: &'static str,
    /// Ours.
    pub(super) ours: Spread,
    /// The other's.
    pub(super) theirs: Spread,
    /// How many times better our median is than the other's; none when one of them is nothing.
    pub(super) times_better: Option<f64>,
}

/// Every figure that both have.
pub(super) fn ratios(ours: &[Figures], theirs: &[Figures]) -> Vec<Ratio> {
    let theirs = spreads(theirs);
    let pair = |(figure, ours, better): (&'static str, Spread, Better)| {
        let (_, theirs, _) = theirs.iter().find(|(name, _, _)| *name == figure)?;
        let (good, bad) = match better {
            Better::More => (ours.median, theirs.median),
            Better::Less => (theirs.median, ours.median),
        };
        let times_better = (good > 0.0 && bad > 0.0).then(|| good / bad);
        Some(Ratio { figure, ours, theirs: *theirs, times_better })
    };
    spreads(ours).into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Consumption;

    #[test]
    fn better_is_more_servers_and_less_time() {
        let run = |per_minute, cpu_s| Figures {
            per_minute,
            provisioner: Consumption { cpu_s, peak_rss_mib: 0.0 },
            ..Figures::default()
        };
        let told = ratios(&[run(30_000.0, 1.0)], &[run(2_500.0, 33.0)]);
        let times =
            |name| told.iter().find(|ratio| ratio.figure == name).and_then(|ratio| ratio.times_better);
        assert_eq!(times("servers a minute"), Some(12.0));
        assert_eq!(times("provisioner's processor time, s"), Some(33.0));
        assert_eq!(times("provisioner's peak memory, MiB"), None);
    }
}
