//! What the pages ask about this instance and tell it to do: a port, so that the pages know nobody behind it.

use futures::future::BoxFuture;

use quartermaster_actors::fleet::FleetOverview;

use crate::operate::{ChangeReport, HealthView, HostReport, HostsReport, ReadyView, StatusReport};

/// Most hosts in one answer.
pub const MAX_PAGE: usize = 500;
/// Longest text to search for, and longest name of a host, in bytes.
pub const MAX_SEARCH: usize = 255;

/// Which hosts are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSearch {
    /// Those in this state only.
    pub state: Option<String>,
    /// Those with this text in their name only.
    pub text: Option<String>,
    /// Those after this name only.
    pub after: Option<String>,
    /// At most so many.
    pub most: usize,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Pause.
    Pause,
    /// Resume.
    Resume,
    /// Look for hosts now.
    Discover,
    /// Try this host now.
    Retry {
        /// Its name.
        host: String,
    },
}

/// Why a question or change came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct DeskError {
    /// The number that goes with it, with the meaning it has in HTTP.
    pub status: u16,
    /// A stable word for programs.
    pub code: String,
    /// The sentence for people.
    pub sentence: String,
}

/// An answer on its way.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, DeskError>>;

/// Who answers.
pub trait Desk: Send + Sync {
    /// Live, and why not.
    fn health(&self) -> HealthView;

    /// Ready, and why not.
    fn ready(&self) -> ReadyView;

    /// Everything that is published, at once.
    fn status(&self) -> StatusReport;

    /// The oldest waiting host, the slowest step, and the hosts that failed last.
    fn overview(&self) -> Answer<'_, FleetOverview>;

    /// Hosts, by name.
    fn hosts(&self, search: HostSearch) -> Answer<'_, HostsReport>;

    /// One host with its history.
    fn host(&self, name: String) -> Answer<'_, HostReport>;

    /// Makes a change for `who`, who says `why`; it is logged and audited behind here, whoever asks.
    fn change(&self, wish: Wish, who: String, why: String) -> Answer<'_, ChangeReport>;
}
